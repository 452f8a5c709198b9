// Answers, each with a timeline of its events and its bindings.

import { data, el, short, shown, span, time } from "./dom.js";

const LANES = 4;
const ROWS = 30;

// `knowledge` asks what the answer used of the knowledge base; absent if its query reads none.
export function answerNode(answer, knowledge) {
  const [start, end] = [Date.parse(answer.start), Date.parse(answer.end)];
  const head = el("h3", {}, el("time", { datetime: answer.end }, time(answer.end)),
    el("span", { class: "quiet" }, ` \u00b7 ${span(end - start)} \u00b7 ${events(answer.trace.length)}`));
  return el("article", { class: "answer" }, head, timeline(answer, start, end),
    answer.bindings ? bindings(answer.bindings) : null,
    answer.graph ? triples("Makes the event", answer.graph, answer.event) : null,
    details(answer, start), knowledge ? used(knowledge) : null);
}

// What an answer says, in one line: its values by name, or the statements that it makes.
export function said(answer) {
  const parts = answer.bindings
    ? Object.entries(answer.bindings).slice(0, 12).map(([name, value]) => [name, brief(value)])
    : statements(answer.graph || []);
  const words = parts.map(([name, value]) =>
    el("span", { class: "pair" }, el("span", { class: "quiet" }, name ? `${shown(name, 40)} ` : ""), data(value, 80)));
  return words.length ? words : [el("span", { class: "quiet" }, `${events(answer.trace.length)} matched`)];
}

const TOLD = 3; // events of an alert whose words are shown at once

// What the events of an answer said, in words: the last ones, or all of them.
export function eventsSaid({ said = [], trace }, all = false) {
  const some = all ? said : said.slice(-TOLD);
  const windows = trace.filter((step) => step.from).slice(-TOLD).map(windowSaid);
  return [...some.map(eventSaid), ...windows];
}

function eventSaid({ gpm, time: at, said, more }) {
  let before = null;
  const words = said.flatMap(([subject, predicate, object]) => {
    const begin = subject && subject !== before ? [data(subject, 60)] : [];
    before = subject || before;
    return [el("span", { class: "pair" }, ...begin.map((name) => [name, " "]),
      el("span", { class: "quiet" }, `${shown(predicate, 60)} `), data(object, 80))];
  });
  if (more) words.push(el("span", { class: "quiet" }, `and ${short(more)} more`));
  if (!words.length) words.push(el("span", { class: "quiet" }, "nothing but its time"));
  return el("li", {}, step(gpm, at), el("span", { class: "words" }, words));
}

const step = (gpm, at) => el("span", { class: "step quiet", title: time(at) },
  `${shown(gpm, 30)} ${at.slice(11, 19)}`);

function windowSaid({ gpm, stream, time: at, from, events: count }) {
  return el("li", {}, step(gpm, at), el("span", { class: "quiet" },
    `${events(count)} of ${shown(stream, 60)} since ${time(from)}`));
}

// Triples as (predicate, object); each subject is named once.
function statements(graph) {
  let before = null;
  return graph.slice(0, 12).flatMap(({ subject, predicate, object }) => {
    const name = subject.type === "uri" ? brief(subject) : "";
    const begin = name && name !== before ? [["", name]] : [];
    before = name || before;
    return [...begin, [local(predicate.value), brief(object)]];
  });
}

// A term in a few words: the end of an IRI, a point as latitude and longitude, or a value.
function brief(value) {
  if (value == null) return "\u2013";
  if (Array.isArray(value)) return value.map(brief).join(", ");
  if (value.type === "triple") return "a statement";
  if (value.type === "uri") return local(value.value) || value.value;
  const point = value.datatype?.endsWith("#wktLiteral") && value.value.match(/POINT\s*\(\s*(\S+)\s+(\S+)\s*\)/i);
  return point ? `${point[2]}, ${point[1]}` : value.value;
}

const events = (count) => `${count} event${count === 1 ? "" : "s"}`;

function timeline(answer, start, end) {
  const total = Math.max(end - start, 1);
  const last = [];
  const list = el("ol", { class: "timeline", "aria-label": "Events in time" });
  for (const step of answer.trace.slice(0, 200)) {
    const at = answer.trace.length === 1 ? 50 : ((Date.parse(step.time) - start) / total) * 100;
    let lane = last.findIndex((x) => x == null || at - x > 7);
    if (lane < 0) lane = last.length < LANES ? last.length : LANES - 1;
    last[lane] = at;
    const item = el("li", {
      title: `${step.gpm}: ${time(step.time)}`, "data-lane": lane,
    }, el("span", { class: "step" }, step.gpm));
    item.style.left = `${Math.min(100, Math.max(0, at)).toFixed(2)}%`;
    item.style.setProperty("--lane", lane);
    list.append(item);
  }
  list.style.setProperty("--lanes", Math.max(1, last.length));
  return list;
}

function bindings(bound) {
  const names = Object.keys(bound);
  if (!names.length) return null;
  return el("dl", { class: "bindings" }, names.map((name) =>
    el("div", {}, el("dt", {}, `?${name}`), el("dd", {}, term(bound[name])))));
}

function term(value) {
  if (value == null) return el("span", { class: "quiet" }, "unbound");
  if (Array.isArray(value)) {
    const some = value.slice(0, 12).map((item) => el("li", {}, term(item)));
    if (value.length > 12) some.push(el("li", { class: "quiet" }, `${short(value.length - 12)} more`));
    return el("ul", { class: "terms" }, some);
  }
  if (value.type === "triple") {
    const { subject, predicate, object } = value.value;
    return el("span", {}, term(subject), " ", term(predicate), " ", term(object));
  }
  const kind = value["xml:lang"] ? `@${value["xml:lang"]}` : local(value.datatype);
  return el("span", { class: `term ${value.type === "uri" ? "iri" : "literal"}` },
    data(value.value), kind ? el("span", { class: "quiet" }, ` ${kind}`) : null);
}

const local = (iri) => (iri ? iri.split(/[#/]/).at(-1).slice(0, 40) : "");

function triples(title, graph, iri) {
  const rest = graph.length - ROWS;
  return el("div", { class: "triples" },
    el("h4", {}, title, iri ? [" ", data(iri)] : null),
    el("div", { class: "wide" }, el("table", {}, el("tbody", {}, graph.slice(0, ROWS).map((triple) =>
      el("tr", {}, el("td", {}, term(triple.subject)), el("td", {}, predicate(triple.predicate)),
        el("td", {}, term(triple.object)),
        triple.until ? el("td", { class: "quiet" }, "until ", time(triple.until)) : null))))),
    rest > 0 ? el("p", { class: "quiet" }, `${short(rest)} more`) : null);
}

// A predicate by the end of its IRI; the whole is in its title.
function predicate({ value }) {
  const node = data(local(value) || value);
  node.title = shown(value, 400);
  return node;
}

// What was used of the knowledge base, asked for when it is opened.
function used(knowledge) {
  const body = el("div", { "aria-live": "polite" });
  const node = el("details", { class: "used" }, el("summary", {}, "Used of the knowledge base"), body);
  node.addEventListener("toggle", async () => {
    if (!node.open || body.dataset.is) return;
    body.dataset.is = "asked";
    body.replaceChildren(el("p", { class: "quiet" }, "Looking it up \u2026"));
    try {
      body.replaceChildren(...usedParts(await knowledge()));
    } catch (failure) {
      delete body.dataset.is;
      body.replaceChildren(el("p", { class: "error" },
        shown([failure.message, failure.hint].filter(Boolean).join(" \u2013 "), 400)));
    }
  });
  return node;
}

function usedParts({ changed, events: found }) {
  const parts = found.map(({ gpm, time: at, event, exact, graphs, more }) => el("section", { "aria-label": gpm },
    el("h4", {}, gpm, el("span", { class: "quiet" }, " ", time(at), " ", event ? data(event) : null)),
    exact ? null : el("p", { class: "quiet" }, "The event is not in its log any more: these are all triples that fit the bindings."),
    graphs.map(({ graph, triples: some }) => triples("In", some, graph)),
    graphs.length ? null : el("p", { class: "quiet" }, "Nothing that is there now."),
    more ? el("p", { class: "quiet" }, `${short(more)} more`) : null));
  if (changed) {
    parts.unshift(el("p", { class: "notice" },
      "The knowledge base has changed since: this is what it has now, not what the answer used."));
  }
  return parts.length ? parts : [el("p", { class: "quiet" }, "No step of this answer reads a graph.")];
}

function details(answer, start) {
  const rows = answer.trace.slice(0, 200).map((step) => el("tr", {},
    el("td", {}, step.gpm),
    el("td", { class: "number" }, `+${span(Date.parse(step.time) - start)}`),
    el("td", {}, time(step.time)),
    el("td", {}, step.event ? data(step.event) : el("span", { class: "quiet" }, "without a name")),
    el("td", {}, data(step.stream))));
  return el("details", {}, el("summary", {}, "Events"),
    el("div", { class: "wide" },
      el("table", {},
        el("thead", {}, el("tr", {}, ["Step", "After", "Time", "Event", "Stream"].map((title, i) =>
          el("th", { scope: "col", class: i === 1 ? "number" : null }, title)))),
        el("tbody", {}, rows))),
    answer.id ? el("p", { class: "quiet" }, "Answer ", data(answer.id)) : null);
}
