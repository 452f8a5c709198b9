// The streams: rates, watermarks, lag, and whom everybody waits for.

import { data, el, grouped, keep, perSecond, say, shown, span, time } from "./dom.js";

// Who waits for whom: by the name of a stream, the queries that wait for it, and how far it is
// behind the newest stream of a query (ms; infinite before its first watermark).
export function waits(queries, streams) {
  const found = new Map(streams.map((stream) => [stream.name, { queries: [], gap: null }]));
  for (const query of queries) {
    const own = streams.filter((stream) => query.streams.includes(stream.iri));
    if (own.length < 2) continue;
    const marks = own.map((s) => (s.watermark == null ? -Infinity : Date.parse(s.watermark)));
    const [least, newest] = [Math.min(...marks), Math.max(...marks)];
    if (newest === -Infinity) continue;
    own.forEach((stream, i) => {
      const wait = found.get(stream.name);
      wait.gap = Math.max(wait.gap ?? 0, newest - marks[i]);
      if (marks[i] === least && least < newest) wait.queries.push(query.name);
    });
  }
  return found;
}

export function behind({ gap }) {
  if (gap == null) return "\u2013";
  return gap === Infinity ? "no watermark yet" : gap ? span(gap) : "0 s";
}

function waitWords(found, queries) {
  const waited = [...found].filter(([, wait]) => wait.queries.length);
  if (!waited.length) return "No stream keeps a query waiting.";
  const joining = queries.filter((query) => query.streams.length > 1).length;
  if (waited.length === 1 && waited[0][1].queries.length === joining) {
    return `Everybody waits for ${waited[0][0]}.`;
  }
  return waited.map(([name, { queries: some }]) => {
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
  const empty = el("p", { class: "empty", hidden: true }, "The configuration names no streams.");
  const table = el("table", { class: "list" },
    el("thead", {}, el("tr", {}, titles.map((title, i) =>
      el("th", { scope: "col", class: [1, 2, 3, 4, 6, 7, 8, 9].includes(i) ? "number" : null }, title)))),
    body);
  const node = el("section", {}, el("h1", {}, "Streams"), words,
    el("div", { class: "wide" }, table), empty,
    el("p", { class: "quiet" }, "A query waits for the slowest of its streams: a match may still need an event of it. ",
      "Late events came behind the watermark; duplicate ones were dropped, as their graph had been seen before (dedup); bad messages were no events."));

  function row(stream) {
    const kinds = ["number", "number", "number", "number", "", "number behind", "number late",
      "number duplicate", "number bad", ""];
    return el("tr", {},
      el("th", { scope: "row" }, stream.name, el("div", { class: "quiet" }, data(stream.iri, 80))),
      kinds.map((kind) => el("td", { class: kind || null })));
  }

  function update({ queries, streams, accepted }) {
    const found = waits(queries, streams);
    keep(body, streams, (s) => s.name, row, (node, stream) => {
      const [, rate, curve, count, lag, mark, gap, late, duplicate, bad, source] = node.children;
      node.classList.toggle("slowest", found.get(stream.name).queries.length > 0);
      say(rate, perSecond(accepted.of(stream.name)));
      curve.replaceChildren(accepted.curve(stream.name));
      say(count, grouped(stream.accepted));
      say(lag, grouped(stream.lag));
      say(mark, time(stream.watermark));
      say(gap, behind(found.get(stream.name)));
      say(late, grouped(stream.late));
      say(duplicate, grouped(stream.duplicates));
      say(bad, grouped(stream.bad));
      late.classList.toggle("alarm", stream.late > 0);
      bad.classList.toggle("alarm", stream.bad > 0);
      say(source, shown(stream.source || "HTTP", 80));
    });
    table.hidden = !streams.length;
    empty.hidden = streams.length > 0;
    say(words, waitWords(found, queries));
  }
  return { title: "Streams", node, update };
}
