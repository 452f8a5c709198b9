// Answers, each with a timeline of its events and its bindings.

import { data, el, short, span, time } from "./dom.js";

const LANES = 4;

export function answerNode(answer) {
  const [start, end] = [Date.parse(answer.start), Date.parse(answer.end)];
  const head = el("h3", {}, el("time", { datetime: answer.end }, time(answer.end)),
    el("span", { class: "quiet" }, ` \u00b7 ${span(end - start)} \u00b7 ${events(answer.trace.length)}`));
  return el("article", { class: "answer" }, head, timeline(answer, start, end),
    answer.bindings ? bindings(answer.bindings) : null,
    answer.graph ? triples("Makes the event", answer.graph, answer.event) : null,
    answer.knowledge ? triples("Used of the knowledge base", answer.knowledge) : null,
    details(answer, start));
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
  return el("div", { class: "triples" },
    el("h4", {}, title, iri ? [" ", data(iri)] : null),
    el("table", {}, el("tbody", {}, graph.slice(0, 30).map((triple) =>
      el("tr", {}, ["subject", "predicate", "object"].map((part) =>
        el("td", {}, term(triple[part]))))))));
}

function details(answer, start) {
  const rows = answer.trace.slice(0, 200).map((step) => el("tr", {},
    el("td", {}, step.gpm),
    el("td", { class: "number" }, `+${span(Date.parse(step.time) - start)}`),
    el("td", {}, time(step.time)),
    el("td", {}, data(step.event ?? "blank graph")),
    el("td", {}, data(step.stream))));
  return el("details", {}, el("summary", {}, "Events"),
    el("div", { class: "wide" },
      el("table", {},
        el("thead", {}, el("tr", {}, ["Step", "After", "Time", "Event", "Stream"].map((title, i) =>
          el("th", { scope: "col", class: i === 1 ? "number" : null }, title)))),
        el("tbody", {}, rows))),
    answer.id ? el("p", { class: "quiet" }, "Answer ", data(answer.id)) : null);
}
