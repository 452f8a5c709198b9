// The automaton of a query: the server's drawing, with counts that follow the query.

import { el, say, short, svg } from "./dom.js";

const TAGS = new Set(["svg", "rect", "circle", "path", "text", "title"]);
const NAMES = new Set([
  "class", "x", "y", "width", "height", "rx", "cx", "cy", "r", "d", "viewBox", "font-size",
  "font-family", "xml:space", "data-state", "data-edge",
]);

// The shapes of the drawing without its styles: they are in page.css.
function copied(node) {
  const made = svg(node.localName);
  for (const { name, value } of node.attributes) {
    if (NAMES.has(name)) made.setAttribute(name, value);
  }
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
    else if (TAGS.has(child.localName)) made.append(copied(child));
  }
  return made;
}

export function automaton(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const picture = copied(parsed);
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-describedby", "states-of-automaton");
  const states = new Map();
  const edges = new Map();
  const box = el("div", {
    class: "automaton", tabindex: "0", role: "group", "aria-label": "The automaton, drawn",
  }, picture);

  // Places need the picture on the page.
  function place(described) {
    for (const shape of picture.querySelectorAll("rect[data-state]")) {
      const [x, y, width] = ["x", "y", "width"].map((a) => Number(shape.getAttribute(a)));
      const label = svg("text", { x: x + width - 4, y: y + 4, "text-anchor": "end" });
      const back = svg("rect", { y: y - 9, height: 18, rx: 9 });
      const badge = svg("g", { class: "badge", hidden: true }, back, label);
      picture.append(badge);
      states.set(shape.dataset.state, { shape, badge, back, label, x, y, right: x + width + 4, count: 0 });
    }
    const taken = new Set();
    for (const { from, to, count } of edgesOf(described)) {
      const drawn = picture.querySelector(`path[data-edge="${from} ${to}"]`);
      if (!drawn && count != null && states.has(to)) edges.set(`${from} ${to}`, atBox(states.get(to)));
    }
    for (const path of picture.querySelectorAll("path[data-edge]")) {
      const end = path.getPointAtLength(path.getTotalLength());
      const before = path.getPointAtLength(path.getTotalLength() - 4);
      const level = Math.abs(end.y - before.y) < 1;
      const spot = `${Math.round(end.x)} ${Math.round(end.y)}`;
      if (taken.has(spot)) continue; // edges of one step that end together have one count
      taken.add(spot);
      const down = end.y > before.y;
      const start = path.getPointAtLength(0);
      const middle = (start.x + end.x) / 2;
      const at = level
        ? { x: middle, y: end.y + 23, "text-anchor": "middle" }
        : { x: end.x - 6, y: end.y + (down ? -3 : 13), "text-anchor": "end" };
      const label = svg("text", { ...at, class: "count" });
      picture.append(label);
      edges.set(path.dataset.edge, label);
    }
  }

  // The first edge inside a bracket is not drawn: its count stands at the box that it leads to.
  function atBox({ x, y }) {
    const label = svg("text", { x: x + 12, y: y + 4 });
    picture.append(svg("g", { class: "badge taken" },
      svg("rect", { x: x + 6, y: y - 8, height: 16, width: 40, rx: 8 }), label));
    return label;
  }

  function show(state, found) {
    const count = state.partial_matches;
    found.badge.toggleAttribute("hidden", !count);
    found.shape.classList.toggle("busy", Boolean(count));
    if (count === found.count) return;
    say(found.label, short(count));
    const width = 12 + 7 * found.label.textContent.length;
    found.back.setAttribute("width", width);
    found.back.setAttribute("x", found.right - width);
    found.label.setAttribute("x", found.right - width / 2);
    found.label.setAttribute("text-anchor", "middle");
    found.count = count;
    found.badge.classList.remove("moved");
    found.badge.getBBox(); // so that the animation begins again
    found.badge.classList.add("moved");
  }

  function update(described) {
    if (!states.size) place(described);
    for (const state of described.states) {
      const found = states.get(state.id);
      if (found) show(state, found);
      state.operands.forEach(update);
    }
    for (const edge of described.edges) {
      const label = edges.get(`${edge.from} ${edge.to}`);
      if (!label || edge.count == null) continue;
      say(label, short(edge.count));
      label.previousElementSibling?.matches(".taken rect") &&
        label.previousElementSibling.setAttribute("width", 12 + 6.4 * label.textContent.length);
    }
  }
  return { node: box, update };
}

function edgesOf(described) {
  const inside = described.states.flatMap((state) => state.operands.flatMap(edgesOf));
  return [...described.edges, ...inside];
}

// All states in a row, operands of brackets behind their bracket.
export function flat(described, depth = 0) {
  return described.states.flatMap((state) => [
    { ...state, depth, edges: described.edges.filter((edge) => edge.to === state.id) },
    ...state.operands.flatMap((operand) => flat(operand, depth + 1).slice(1)),
  ]);
}
