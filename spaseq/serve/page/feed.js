// The feed: the newest answers of all queries, with what they say, and who has taken note of them.

import * as api from "./api.js";
import { answerNode, eventsSaid, said } from "./answers.js";
import { button, el, grouped, keep, noted, say, shown, time } from "./dom.js";

const NEWEST = 100;
const AGAIN_MS = 5000;

export function feedView() {
  const query = select("feed-query", "Query", "all queries");
  const severity = select("feed-severity", "Severity", "any severity");
  const open = el("input", { type: "checkbox", id: "feed-open", onchange: draw });
  const words = el("p", { class: "lead", role: "status" });
  const problems = el("ul", { class: "problems", "aria-label": "Problems" });
  const list = el("div", { class: "feed" });
  const empty = el("div", { class: "empty", hidden: true });
  const error = el("p", { class: "error", role: "alert" });
  const node = el("section", {},
    el("div", { class: "title" }, el("h1", {}, "Alerts"),
      el("form", { class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
        query.node, severity.node, el("label", { for: "feed-open", class: "check" }, open, " not acknowledged"))),
    problems, words, error, empty, list);
  let found = null;
  let asked = "";
  let at = 0;
  let last = null;

  function select(id, name, all) {
    const field = el("select", { id, "aria-label": name, onchange: () => { at = 0; if (last) update(last); } },
      el("option", { value: "" }, all));
    const fill = (values) => keep(field, ["", ...values], (value) => value,
      (value) => el("option", { value }, value ? shown(value, 60) : all));
    return { node: field, fill };
  }

  // Asks again if there are more answers, if the filters have changed, or after a while.
  async function update(known) {
    last = known;
    const state = JSON.stringify([known.queries.map((q) => q.answers), query.node.value, severity.node.value]);
    if (state !== asked || performance.now() - at > AGAIN_MS) {
      const given = { limit: NEWEST, said: true, query: query.node.value, severity: severity.node.value };
      found = (await api.feed(given)).reverse().sort((a, b) => Date.parse(b.end) - Date.parse(a.end));
      [asked, at] = [state, performance.now()];
    }
    query.fill(known.queries.map((q) => q.name));
    severity.fill(severities());
    keep(problems, known.health.problems || [], (p) => p, (p) => el("li", {}, shown(p, 400)));
    draw();
  }

  const seen = new Set();
  function severities() {
    for (const answer of found) if (answer.severity) seen.add(answer.severity);
    return [...seen].sort();
  }

  function draw() {
    if (!found) return;
    const wanted = open.checked ? found.filter((answer) => !answer.acknowledged) : found;
    keep(list, wanted, (answer) => answer.id, item, fill);
    empty.hidden = wanted.length > 0;
    if (!wanted.length) empty.replaceChildren(...emptyWords());
    say(words, wanted.length ? countWords(wanted) : "");
  }

  function countWords(wanted) {
    const waiting = found.filter((answer) => !answer.acknowledged).length;
    const of = found.length === NEWEST ? `the newest ${NEWEST}` : `${grouped(found.length)}`;
    return `${grouped(wanted.length)} of ${of} shown, ${grouped(waiting)} not acknowledged.`;
  }

  function emptyWords() {
    if (query.node.value || severity.node.value || open.checked) {
      return [el("p", {}, "No alert is left by the filters."), button("Show all", () => {
        query.node.value = severity.node.value = "";
        open.checked = false;
        at = 0;
        update(last);
      })];
    }
    const { queries, streams } = last;
    const count = queries.filter((q) => q.state === "running" || q.state === "catching up").length;
    if (queries.length && !count) {
      return [el("p", {}, "No query runs: all are paused or have failed, so no alerts come."),
        el("a", { class: "button primary", href: "#/queries" }, "Look at the queries")];
    }
    if (!queries.length) {
      return [el("p", {}, "No query runs yet, so there are no alerts."),
        el("a", { class: "button primary", href: "#/new" }, "Write a query")];
    }
    const running = count === 1 ? "One query runs" : `${grouped(count)} queries run`;
    const events = streams.reduce((sum, stream) => sum + stream.accepted, 0);
    if (!events) {
      return [el("p", {}, `${running}, and no event has come yet.`),
        el("a", { class: "button primary", href: "#/streams" }, "Look at the streams")];
    }
    return [el("p", {}, `${running}, and none has answered yet.`),
      el("p", {}, "Each query's page says ", el("em", {}, "why"), " it does not match; ",
        el("a", { href: "#/streams" }, "Streams"), " shows whether events come. ",
        el("a", { href: "#/queries" }, "All queries"))];
  }

  function item(answer) {
    const details = el("details", {}, el("summary", {}, "More"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      if ((answer.said || []).length > 3) {
        details.append(el("ul", { class: "events" }, eventsSaid(answer, true)));
      }
      details.append(answerNode(answer));
    });
    return el("article", { class: "alert" },
      el("div", { class: "line" },
        answer.severity
          ? el("span", { class: `severity ${rank(answer.severity)}` }, shown(answer.severity, 20)) : null,
        el("h2", {}, shown(answer.title || answer.name, 160)),
        el("span", { class: "when quiet" })),
      el("p", { class: "said" }, said(answer)),
      el("ul", { class: "events", "aria-label": "What its events said" }, eventsSaid(answer)),
      el("div", { class: "line foot" },
        el("a", { href: `#/query/${answer.name}` }, answer.name),
        details, el("span", { class: "taken quiet" }), button("Acknowledge", () => take(answer))));
  }

  function fill(node, answer) {
    const ago = Date.now() - Date.parse(answer.end);
    const when = node.querySelector(".when");
    say(when, `${ago < 0 ? `in ${rough(-ago)}` : `${rough(ago)} ago`} \u00b7 ${time(answer.end.replace(/\.\d+/, ""))}`);
    const note = answer.acknowledged;
    node.classList.toggle("taken", Boolean(note));
    node.querySelector(".foot button").hidden = Boolean(note);
    say(node.querySelector("span.taken"), note
      ? `acknowledged by ${shown(note.who, 60)}, ${time(note.time.replace(/\.\d+/, ""))}${note.note ? `: ${shown(note.note, 200)}` : ""}`
      : "");
  }

  async function take(answer) {
    const note = await noted("Acknowledge this alert? Others see who did, and the note.", "Acknowledge");
    if (note == null) return;
    say(error, "");
    try {
      answer.acknowledged = (await api.acknowledge(answer.id, note)).acknowledged;
      for (const own of found) if (own.id === answer.id) own.acknowledged = answer.acknowledged;
      draw();
    } catch (failure) {
      say(error, [failure.message, failure.hint].filter(Boolean).join(" \u2013 "));
    }
  }
  return { title: "Alerts", node, update };
}

// A span in its largest unit, in whole numbers.
function rough(ms) {
  const [unit, length] = [["days", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]]
    .find(([, size]) => ms >= 2 * size || size === 1000);
  return `${Math.round(ms / length)} ${unit}`;
}

// How loud a severity is, of the words that people use.
function rank(severity) {
  const word = (severity || "").toLowerCase();
  if (["critical", "error", "fatal", "emergency", "high", "major", "page"].includes(word)) return "loud";
  return ["warning", "warn", "medium", "minor"].includes(word) ? "middle" : "low";
}
