// Errors and warnings of a query's text, each with its place.

import { el, keep, shown } from "./dom.js";

// `go` is called with the line and column of the finding that is chosen.
export function findings(go) {
  const node = el("ul", { class: "findings", "aria-live": "polite" });

  function item(found) {
    const place = `${found.line}:${found.column}`;
    const where = go
      ? el("button", { type: "button", class: "place", onclick: () => go(found.line, found.column) }, `Line ${place}`)
      : el("span", { class: "place" }, `Line ${place}`);
    const column = Math.max(0, Math.min(found.column - 1, 100));
    const advice = found.suggestion ? `Did you mean ${found.suggestion}?` : expected(found.expected);
    return el("li", { class: found.severity },
      el("div", {}, where, el("strong", {}, found.severity), " ", shown(found.message, 400)),
      found.text ? el("pre", {}, `${shown(found.text, 160)}\n${" ".repeat(column)}^`) : null,
      advice ? el("div", { class: "quiet" }, shown(advice, 300)) : null);
  }
  const show = (all) => keep(node, all || [], (f) => JSON.stringify(f), item);
  return { node, show };
}

function expected(names) {
  if (!names?.length) return "";
  const some = names.slice(0, 8).join(", ");
  return `Expected: ${some}${names.length > 8 ? ", \u2026" : ""}`;
}
