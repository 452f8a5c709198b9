// The streams: rates, watermarks, lag, and whom everybody waits for.

import { data, el, grouped, keep, perSecond, say, shown, span, time } from "./dom.js";

// The streams, of those that some queries read, behind which all others have to wait.
export function slowest(streams, read) {
  const asked = streams.filter((stream) => read.has(stream.iri));
  if (asked.length < 2) return { names: new Set(), newest: null };
  const marks = asked.map((s) => (s.watermark == null ? -Infinity : Date.parse(s.watermark)));
  const [least, newest] = [Math.min(...marks), Math.max(...marks)];
  const names = asked.filter((_, i) => marks[i] === least && least < newest).map((s) => s.name);
  return { names: new Set(names), newest: Number.isFinite(newest) ? newest : null };
}

export function behind(stream, newest) {
  if (newest == null) return "\u2013";
  if (stream.watermark == null) return "no watermark yet";
  const gap = newest - Date.parse(stream.watermark);
  return gap > 0 ? span(gap) : "0 s";
}

export function streamsView() {
  const body = el("tbody");
  const titles = [
    "Stream", "Events/s", "Last minute", "Accepted", "Not evaluated yet", "Watermark", "Behind",
    "Late", "Bad", "Source",
  ];
  const words = el("p", { class: "lead" });
  const empty = el("p", { class: "empty", hidden: true }, "The configuration names no streams.");
  const table = el("table", { class: "list" },
    el("thead", {}, el("tr", {}, titles.map((title, i) =>
      el("th", { scope: "col", class: [1, 2, 3, 4, 6, 7, 8].includes(i) ? "number" : null }, title)))),
    body);
  const node = el("section", {}, el("h1", {}, "Streams"), words,
    el("div", { class: "wide" }, table), empty,
    el("p", { class: "quiet" }, "A query waits for the slowest of its streams: a match may still need an event of it. ",
      "Late events came behind the watermark; bad messages were no events."));

  function row(stream) {
    const kinds = ["number", "number", "number", "number", "", "number behind", "number late",
      "number bad", ""];
    return el("tr", {},
      el("th", { scope: "row" }, stream.name, el("div", { class: "quiet" }, data(stream.iri, 80))),
      kinds.map((kind) => el("td", { class: kind || null })));
  }

  function update({ queries, streams, accepted }) {
    const read = new Set(queries.flatMap((query) => query.streams));
    const { names, newest } = slowest(streams, read);
    keep(body, streams, (s) => s.name, row, (node, stream) => {
      const [, rate, curve, count, lag, mark, gap, late, bad, source] = node.children;
      node.classList.toggle("slowest", names.has(stream.name));
      say(rate, perSecond(accepted.of(stream.name)));
      curve.replaceChildren(accepted.curve(stream.name));
      say(count, grouped(stream.accepted));
      say(lag, grouped(stream.lag));
      say(mark, time(stream.watermark));
      say(gap, behind(stream, newest));
      say(late, grouped(stream.late));
      say(bad, grouped(stream.bad));
      late.classList.toggle("alarm", stream.late > 0);
      bad.classList.toggle("alarm", stream.bad > 0);
      say(source, shown(stream.source || "HTTP", 80));
    });
    const waited = [...names];
    table.hidden = !streams.length;
    empty.hidden = streams.length > 0;
    say(words, waited.length
      ? `Everybody waits for ${waited.join(", ")}.`
      : "No stream keeps the others waiting.");
  }
  return { title: "Streams", node, update };
}
