// The page: asks the server every second, and shows the view that the address names.

import * as api from "./api.js";
import { el, say } from "./dom.js";
import { editor } from "./editor.js";
import { feedView } from "./feed.js";
import { graphsView } from "./graphs.js";
import { Rates } from "./rates.js";
import { queriesView } from "./queries.js";
import { queryView } from "./query.js";
import { streamsView } from "./streams.js";

const EVERY_MS = 1000;
const main = document.getElementById("main");
const notice = document.getElementById("notice");
const badge = document.getElementById("health");

const known = {
  queries: null, streams: null, health: null, answered: new Rates(), accepted: new Rates(),
};
let view = null;
let timer = 0;

const ROUTES = [
  [/^#?\/?$/, () => feedView(), "feed"],
  [/^#\/queries$/, () => queriesView(), "queries"],
  [/^#\/streams$/, () => streamsView(), "streams"],
  [/^#\/graphs$/, () => graphsView(), "graphs"],
  [/^#\/new$/, () => editor(null), "new"],
  [/^#\/query\/([\w.-]+)$/, (name) => queryView(name), "queries"],
  [/^#\/edit\/([\w.-]+)$/, (name) => editor(name), "queries"],
];

function route() {
  const found = ROUTES.map(([pattern, make, at]) => [location.hash.match(pattern), make, at])
    .find(([match]) => match);
  const [match, make, at] = found || [[], () => feedView(), "feed"];
  if (!found) location.replace("#/");
  open(make(...match.slice(1)), at);
}

function open(next, at) {
  view?.close?.();
  view = next;
  document.title = `${next.title} \u00b7 spaseq`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === at) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.replaceChildren(next.node);
  window.scrollTo(0, 0);
  (main.querySelector("[data-focus]:enabled") || main).focus({ preventScroll: true });
  tick();
}

async function tick() {
  clearTimeout(timer);
  const asked = view;
  try {
    if (!asked.still && !document.hidden) await ask(asked);
    tell("");
  } catch (failure) {
    if (failure.status === 401) return askToken();
    if (failure.status === 404 && asked === view) return open(gone(failure.message), "queries");
    tell(failure.message, failure.hint);
  }
  if (asked === view) timer = setTimeout(tick, EVERY_MS);
}

async function ask(asked) {
  const [queries, streams, health] = await Promise.all([api.queries(), api.streams(), api.health()]);
  Object.assign(known, { queries, streams, health });
  for (const query of queries) known.answered.note(query.name, query.answers);
  for (const stream of streams) known.accepted.note(stream.name, stream.accepted);
  const problems = health.problems || [];
  say(badge, problems.length ? `${problems.length} problem${problems.length > 1 ? "s" : ""}` : "healthy");
  badge.className = problems.length ? "bad" : "good";
  if (asked === view) await asked.update?.(known);
}

function tell(text, hint = "") {
  notice.hidden = !text;
  say(notice, hint ? `${text} \u2013 ${hint}` : text);
}

const gone = (message) => ({
  title: "Gone", still: true,
  node: el("section", {}, el("h1", {}, "There is nothing here"), el("p", {}, message),
    el("p", {}, el("a", { href: "#/queries" }, "All queries"))),
});

function askToken() {
  const field = el("input", {
    type: "password", id: "token", name: "token", autocomplete: "current-password",
    required: true, "data-focus": true,
  });
  const wrong = el("p", { class: "error", role: "alert" });
  const enter = async (event) => {
    event.preventDefault();
    try {
      await api.login(field.value);
      route();
    } catch (failure) {
      say(wrong, failure.status === 401 ? "That is not the token." : failure.message);
      field.select();
    }
  };
  const form = el("form", { class: "login", onsubmit: enter },
    el("h1", {}, "Token"),
    el("p", {}, "This server wants a token. It is in the file that ", el("code", {}, "token_file"),
      " names in the server's configuration."),
    el("label", { for: "token" }, "Token"), field, wrong,
    el("button", { class: "primary" }, "Log in"));
  say(badge, "");
  tell("");
  open({ title: "Log in", node: form, still: true }, "");
}

window.addEventListener("hashchange", route);
document.addEventListener("visibilitychange", () => document.hidden || tick());
route();
