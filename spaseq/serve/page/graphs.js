// The graphs of the knowledge base: their sizes, and when they changed last.

import * as api from "./api.js";
import { data, el, grouped, shown, time } from "./dom.js";

const EVERY_MS = 5000;

export function graphsView() {
  const body = el("tbody");
  const words = el("p", { class: "lead", role: "status" }, "Looking \u2026");
  const table = el("table", { class: "list" },
    el("thead", {}, el("tr", {}, ["Graph", "Triples", "Last change", "Changes by"].map((title, i) =>
      el("th", { scope: "col", class: i === 1 ? "number" : null }, title)))),
    body);
  const node = el("section", {}, el("h1", {}, "Knowledge"), words, el("div", { class: "wide" }, table));

  async function look() {
    try {
      const found = await api.graphs();
      show(Array.isArray(found) ? found : []);
    } catch (failure) {
      words.textContent = shown(failure.message, 400);
    }
  }

  function show(graphs) {
    words.textContent = graphs.length
      ? "Each event sees a graph as it was at the event\u2019s own time."
      : "There are no graphs that may change.";
    table.hidden = !graphs.length;
    body.replaceChildren(...graphs.map((graph) => el("tr", {},
      el("th", { scope: "row" }, data(graph.graph, 160)),
      el("td", { class: "number" }, grouped(graph.triples)),
      el("td", {}, graph.since ? time(graph.since) : "\u2013"),
      el("td", {}, by(graph)))));
  }

  const timer = setInterval(look, EVERY_MS);
  look();
  return { title: "Knowledge", node, update() {}, close: () => clearInterval(timer) };
}

function by({ watched, writable }) {
  const found = [...watched.map((path) => shown(path, 80)), ...(writable ? ["requests"] : [])];
  return found.join(", ") || "\u2013";
}
