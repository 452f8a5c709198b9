// Writes a query: its text is checked as one types, and put on the server.

import * as api from "./api.js";
import { el, say } from "./dom.js";
import { findings } from "./findings.js";

const CHECK_MS = 250;
const example = (iri) => `PREFIX : <http://example/>

SELECT *
WITHIN 10 MINUTES
FROM STREAM S <${iri}>
WHERE {
  SEQ (A; B)

  DEFINE GPM A ON S { ?x :is "first" }
  DEFINE GPM B ON S { ?x :is "second" }
}
`;

export function editor(name) {
  const title = name ? `Edit ${name}` : "New query";
  const field = el("input", {
    id: "name", required: true, pattern: "[A-Za-z0-9_][A-Za-z0-9_.\\-]{0,99}", maxlength: "100",
    value: name || "", readonly: Boolean(name), spellcheck: "false", autocomplete: "off",
    "data-focus": !name, "aria-describedby": "name-hint",
  });
  const from = el("input", {
    id: "from", placeholder: "2026-01-31T08:00:00Z", spellcheck: "false", "aria-describedby": "from-hint",
  });
  const numbers = el("pre", { class: "numbers", "aria-hidden": "true" });
  const text = el("textarea", {
    id: "text", spellcheck: "false", wrap: "off", rows: "18", autocomplete: "off",
    "aria-describedby": "verdict", "data-focus": Boolean(name), disabled: Boolean(name),
  });
  const verdict = el("p", { id: "verdict", role: "status", class: "verdict" });
  const found = findings(goTo);
  const error = el("p", { class: "error", role: "alert" });
  const save = el("button", { class: "primary" }, name ? "Change the query" : "Add the query");
  const node = el("form", { class: "editor", onsubmit: put, onkeydown: keys },
    el("h1", {}, title),
    el("div", { class: "fields" },
      el("div", {}, el("label", { for: "name" }, "Name"), field,
        el("p", { class: "quiet", id: "name-hint" }, "Letters, digits and _, then also . and -")),
      el("div", {}, el("label", { for: "from" }, "Begin with events since (may be empty)"), from,
        el("p", { class: "quiet", id: "from-hint" }, "Empty: it sees events from now on."))),
    el("label", { for: "text" }, "Text"),
    el("div", { class: "text" }, numbers, text),
    verdict, found.node, error,
    el("div", { class: "actions" }, save,
      el("a", { class: "button", href: name ? `#/query/${name}` : "#/queries" }, "Cancel"),
      el("span", { class: "quiet" }, "Ctrl+Enter saves")));
  let timer = 0;
  let asked = 0;

  text.addEventListener("input", changed);
  text.addEventListener("scroll", () => (numbers.scrollTop = text.scrollTop));
  if (name) load();
  else begin();

  // An example that reads the first stream of the server.
  async function begin() {
    const streams = await api.streams().catch(() => []);
    if (text.value) return;
    text.value = example(streams[0]?.iri || "http://example/stream");
    changed();
  }

  async function load() {
    try {
      text.value = (await api.query(name)).text;
      text.disabled = false;
      text.focus();
      text.setSelectionRange(0, 0);
      text.scrollTop = 0;
      changed();
    } catch (failure) {
      say(error, failure.message);
    }
  }

  function changed() {
    number([]);
    clearTimeout(timer);
    timer = setTimeout(check, CHECK_MS);
  }

  function number(diagnostics) {
    const marked = new Map();
    for (const d of diagnostics) {
      if (marked.get(d.line) !== "error") marked.set(d.line, d.severity);
    }
    const count = text.value.split("\n").length;
    const lines = Array.from({ length: count }, (_, i) =>
      el("span", { class: marked.get(i + 1) || null }, `${i + 1}\n`));
    numbers.replaceChildren(...lines);
    numbers.scrollTop = text.scrollTop;
  }

  async function check() {
    const mine = ++asked;
    try {
      const { diagnostics } = await api.check(text.value);
      if (mine === asked) show(diagnostics);
    } catch (failure) {
      if (mine === asked) say(verdict, `It could not be checked: ${failure.message}`);
    }
  }

  function show(diagnostics) {
    const errors = diagnostics.filter((d) => d.severity === "error").length;
    const warnings = diagnostics.length - errors;
    found.show(diagnostics);
    number(diagnostics);
    const count = (n, what) => (n ? `${n} ${what}${n > 1 ? "s" : ""}` : "");
    const words = [count(errors, "error"), count(warnings, "warning")].filter(Boolean).join(", ");
    verdict.className = `verdict ${errors ? "error" : "good"}`;
    say(verdict, words || "No mistakes found.");
    text.setAttribute("aria-invalid", errors > 0);
  }

  function goTo(line, column) {
    const before = text.value.split("\n").slice(0, line - 1).join("\n").length;
    const place = before + (line > 1 ? 1 : 0) + column - 1;
    text.focus();
    text.setSelectionRange(place, place);
  }

  function keys(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      node.requestSubmit();
    }
  }

  async function put(event) {
    event.preventDefault();
    say(error, "");
    save.disabled = true;
    try {
      await api.put(field.value, text.value, from.value.trim());
      location.hash = `#/query/${field.value}`;
    } catch (failure) {
      clearTimeout(timer);
      asked++;
      if (failure.diagnostics.length) {
        show(failure.diagnostics);
        found.node.querySelector("button")?.focus();
        say(error, "The query has mistakes; what ran under its name goes on.");
      } else say(error, [failure.message, failure.hint].filter(Boolean).join(" \u2013 "));
    }
    save.disabled = false;
  }
  return { title, node, still: true, close: () => clearTimeout(timer) };
}
