// The list of queries, and the sums over all of them.

import { el, grouped, keep, perSecond, say, shown, short } from "./dom.js";

const MOST = 200;

export function statePill(state) {
  return el("span", { class: `pill ${state.replace(" ", "-")}` }, state);
}

export function queriesView() {
  const tiles = el("div", { class: "tiles" });
  const problems = el("ul", { class: "problems", "aria-label": "Problems" });
  const filter = el("input", {
    type: "search", id: "filter", placeholder: "name", "aria-label": "Show queries whose names have",
    oninput: () => last && update(last),
  });
  const body = el("tbody");
  const empty = el("p", { class: "empty", hidden: true }, "No query runs yet. ",
    el("a", { href: "#/new" }, "Write one"), ", or put a file into the directory of queries.");
  const more = el("p", { class: "quiet" });
  const table = el("table", { class: "list" },
    el("thead", {}, el("tr", {},
      ["Query", "State", "Answers/s", "Last minute", "Answers", "Partial matches", "Streams"].map(
        (title, i) => el("th", { scope: "col", class: i > 1 && i < 6 ? "number" : null }, title)))),
    body);
  const node = el("section", {},
    el("div", { class: "title" }, el("h1", {}, "Queries"), filter),
    tiles, problems, el("div", { class: "wide" }, table), empty, more);
  let last = null;

  function row(query) {
    const cells = ["state", "rate", "curve", "answers", "live", "streams"].map((name) =>
      el("td", { class: name === "state" || name === "streams" ? name : `number ${name}` }));
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `#/query/${query.name}` }, query.name)), cells);
  }

  function fill(node, query) {
    const [, state, rate, curve, answers, live, streams] = node.children;
    if (state.dataset.is !== query.state + (query.reason || "")) {
      state.dataset.is = query.state + (query.reason || "");
      state.replaceChildren(statePill(query.state),
        query.reason ? el("div", { class: "reason" }, shown(query.reason, 120)) : "");
    }
    say(rate, perSecond(last.answered.of(query.name)));
    curve.replaceChildren(last.answered.curve(query.name));
    say(answers, grouped(query.answers));
    say(live, short(query.live));
    say(streams, query.streams.map((iri) => nameOf(iri)).join(", "));
  }

  const nameOf = (iri) => shown(last.streams.find((stream) => stream.iri === iri)?.name || iri, 60);

  function update(known) {
    last = known;
    const wanted = known.queries.filter((q) => q.name.includes(filter.value.trim()));
    keep(body, wanted.slice(0, MOST), (q) => q.name, row, fill);
    table.hidden = !known.queries.length;
    empty.hidden = known.queries.length > 0;
    say(more, wanted.length > MOST ? `${grouped(wanted.length - MOST)} more: name one above` : "");
    keep(tiles, sums(known), (t) => t.name, tile, (node, t) => {
      say(node.firstChild, t.value);
      node.classList.toggle("alarm", t.alarm);
    });
    keep(problems, known.health.problems || [], (p) => p, (p) => el("li", {}, shown(p, 400)));
  }
  return { title: "Queries", node, update };
}

const tile = (t) => el("div", { class: "tile" }, el("span", { class: "value" }), el("span", {}, t.name));

function sums({ queries, streams, answered, accepted }) {
  const total = (items, field) => items.reduce((sum, item) => sum + (item[field] || 0), 0);
  const rate = (items, rates) => {
    const found = items.map((item) => rates.of(item.name)).filter((r) => r != null);
    return found.length ? found.reduce((sum, r) => sum + r, 0) : null;
  };
  const failed = queries.filter((query) => query.state === "failed").length;
  const count = (name, value) => ({ name, value: grouped(value), alarm: value > 0 });
  return [
    { name: "events", value: perSecond(rate(streams, accepted)), alarm: false },
    { name: "answers", value: perSecond(rate(queries, answered)), alarm: false },
    { name: "partial matches", value: short(total(queries, "live")), alarm: false },
    { ...count("not evaluated yet", total(streams, "lag")), alarm: false },
    count("late", total(streams, "late")),
    count("bad", total(streams, "bad")),
    count("failed queries", failed),
  ];
}
