// Elements made of data. Text from events goes into text nodes only, through `shown`.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}

export const el = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

// Characters that change how others are shown: controls, and marks of writing direction.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const code = (c) => `\u27e8U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;

// A text as people can read it: marks as codes, and at most so many characters.
export function shown(text, most = 160) {
  const whole = String(text);
  const head = whole.length > most ? whole.slice(0, most) : whole;
  const safe = head.replace(UNSEEN, code);
  const rest = whole.length - head.length;
  return rest ? `${safe}\u2026 (${grouped(rest)} more characters)` : safe;
}

export const data = (text, most) => el("bdi", { class: "data" }, shown(text, most));

// Sets a text if it is another one, so that nothing moves or is read out again.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Keeps one child for each item: made once, updated afterwards, so that the focus stays.
export function keep(parent, items, key, make, update) {
  const had = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let place = parent.firstElementChild;
  for (const [number, item] of items.entries()) {
    const name = String(key(item, number));
    let node = had.get(name);
    if (node) had.delete(name);
    else {
      node = make(item);
      node.dataset.key = name;
    }
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    if (update) update(node, item);
  }
  for (const node of had.values()) node.remove();
}

export const grouped = (number) => Math.round(number).toLocaleString("en-US");

// A number in at most five characters: 950, 12.3k, 4.1M, 2e21.
export function short(number) {
  if (number == null) return "\u2013";
  if (number < 10000) return grouped(number);
  if (number >= 1e15) return number.toExponential(1).replace("+", "").replace(".0", "");
  const power = Math.floor(Math.log10(number) / 3);
  const scaled = number / 1000 ** power;
  return `${scaled.toFixed(scaled < 100 ? 1 : 0).replace(/\.0$/, "")}${" kMGT"[power]}`;
}

export function perSecond(rate) {
  if (rate == null) return "\u2013";
  if (rate === 0) return "0/s";
  return rate < 10 ? `${rate.toFixed(1)}/s` : `${short(rate)}/s`;
}

// An xsd:dateTime with a space for its T, and its zone: UTC for Z and for none.
export function time(text) {
  if (text == null) return "\u2013";
  const [, moment, zone] = text.match(/^(.*?)(Z|[+-]\d\d:\d\d)?$/);
  return `${moment.replace("T", " ")} ${!zone || zone === "Z" ? "UTC" : zone}`;
}

export function span(ms) {
  const seconds = Math.abs(ms) / 1000;
  if (seconds < 1) return `${Math.round(Math.abs(ms))} ms`;
  if (seconds < 120) return `${+seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${+(seconds / 60).toFixed(1)} min`;
  if (seconds < 172800) return `${+(seconds / 3600).toFixed(1)} h`;
  return `${+(seconds / 86400).toFixed(1)} days`;
}

export function button(text, on, attributes = {}) {
  return el("button", { type: "button", onclick: on, ...attributes }, text);
}

// Asks for a note; null if it is given up.
export function noted(question, action) {
  return new Promise((resolve) => {
    const note = el("input", { id: "note", maxlength: "1000", autocomplete: "off", autofocus: true });
    const dialog = el("dialog", { "aria-labelledby": "question" },
      el("form", { method: "dialog" },
        el("p", { id: "question" }, question),
        el("label", { for: "note" }, "Note (may be empty)"), note,
        el("div", { class: "actions" },
          el("button", { value: "yes", class: "primary" }, action),
          el("button", { value: "no", formnovalidate: true }, "Cancel"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? note.value : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Asks before something is done that cannot be undone.
export function confirmed(question, action) {
  return new Promise((resolve) => {
    const dialog = el("dialog", { "aria-labelledby": "question" },
      el("form", { method: "dialog" },
        el("p", { id: "question" }, question),
        el("div", { class: "actions" },
          el("button", { value: "no", autofocus: true }, "Cancel"),
          el("button", { value: "yes", class: "danger" }, action))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
