// The streams: rates, watermarks, lag, and which queries wait for them.

import { data, el, grouped, keep, perSecond, say, shown, span, time } from "./dom.js";

// How far each stream is behind the newest one of a query, by its name (ms; infinite before its
// first watermark).
function gaps(queries, streams) {
  const found = new Map();
  for (const query of queries) {
    const own = streams.filter((stream) => query.streams.includes(stream.iri));
    const marks = own.map((s) => (s.watermark == null ? -Infinity : Date.parse(s.watermark)));
    const newest = Math.max(...marks);
    if (own.length < 2 || newest === -Infinity) continue;
    own.forEach(({ name }, i) => found.set(name, Math.max(found.get(name) ?? 0, newest - marks[i])));
  }
  return found;
}

function behind(gap) {
  if (gap == null) return "\u2013";
  return gap === Infinity ? "no watermark yet" : gap ? span(gap) : "0 s";
}

// The names of the queries that have waited for a stream for a minute, by its IRI.
function waits({ waiting = [] }) {
  const found = new Map();
  for (const { query, stream } of waiting) found.set(stream, [...(found.get(stream) || []), query]);
  return found;
}

function waitWords(found, queries, streams) {
  if (!found.size) return "No query has waited for a stream for a minute.";
  const running = queries.filter((query) => query.state === "running").length;
  return [...found].map(([iri, some]) => {
    const name = shown(streams.find((stream) => stream.iri === iri)?.name || iri, 80);
    if (running > 1 && some.length === running) return `Everybody waits for ${name}.`;
    const who = some.length > 3 ? `${grouped(some.length)} queries wait` : `${some.join(", ")} ${some.length > 1 ? "wait" : "waits"}`;
    return `${who} for ${name}.`;
  }).join(" ");
}

export function streamsView() {
  const body = el("tbody");
  const titles = [
    "Stream", "Events/s", "Last minute", "Accepted", "Not evaluated yet", "Watermark", "Behind",
    "Late", "Duplicate", "Bad", "Source",
  ];
  const words = el("p", { class: "lead" });
  const empty = el("div", { class: "empty", hidden: true },
    el("p", {}, "The configuration names no streams, so no events can come."),
    el("p", {}, "Add a table ", el("code", {}, "[streams.NAME]"), " with an ", el("code", {}, "iri"),
      " to it, and start the server again."));
  const table = el("table", { class: "list" },
    el("thead", {}, el("tr", {}, titles.map((title, i) =>
      el("th", { scope: "col", class: [1, 2, 3, 4, 6, 7, 8, 9].includes(i) ? "number" : null }, title)))),
    body);
  const legend = el("p", { class: "quiet" }, "Answers and windows wait for the slowest stream of their query: a match may still need an event of it. ",
      "Late events came behind the watermark; duplicate ones were dropped, as their graph had been seen before (dedup); bad messages were no events.");
  const node = el("section", {}, el("h1", {}, "Streams"), words,
    el("div", { class: "wide" }, table), empty, legend);

  function row(stream) {
    const kinds = ["number", "number", "number", "number", "", "number behind", "number late",
      "number duplicate", "number bad", ""];
    return el("tr", {},
      el("th", { scope: "row" }, stream.name, el("div", { class: "quiet" }, data(stream.iri, 80))),
      kinds.map((kind) => el("td", { class: kind || null })));
  }

  function update({ queries, streams, accepted, health }) {
    const [found, gap] = [waits(health), gaps(queries, streams)];
    keep(body, streams, (s) => s.name, row, (node, stream) => {
      const [, rate, curve, count, lag, mark, far, late, duplicate, bad, source] = node.children;
      node.classList.toggle("slowest", found.has(stream.iri));
      say(rate, perSecond(accepted.of(stream.name)));
      curve.replaceChildren(accepted.curve(stream.name));
      say(count, grouped(stream.accepted));
      say(lag, grouped(stream.lag));
      say(mark, time(stream.watermark));
      say(far, behind(gap.get(stream.name)));
      say(late, grouped(stream.late));
      say(duplicate, grouped(stream.duplicates));
      say(bad, grouped(stream.bad));
      late.classList.toggle("alarm", stream.late > 0);
      bad.classList.toggle("alarm", stream.bad > 0);
      say(source, shown(stream.source || "HTTP", 80));
    });
    table.hidden = legend.hidden = words.hidden = !streams.length;
    empty.hidden = streams.length > 0;
    say(words, waitWords(found, queries, streams));
  }
  return { title: "Streams", node, update };
}
