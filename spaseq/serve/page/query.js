// One query: its automaton with live counts, why it does not match, and its last answers.

import * as api from "./api.js";
import { answerNode } from "./answers.js";
import { automaton, flat } from "./automaton.js";
import { button, confirmed, el, grouped, keep, perSecond, say, short, shown, time } from "./dom.js";
import { findings } from "./findings.js";
import { statePill } from "./queries.js";

const ANSWERS = 20;
const DRAW_MS = 400;
const WINDOWS = 10;

export function queryView(name) {
  const head = el("div", { class: "title" }, el("h1", {}, name));
  const pill = el("span", { "aria-live": "polite" });
  const pause = button("Pause", act(() => api.enable(name, pause.dataset.is === "paused")));
  const restart = button("Restart", act(() => api.restart(name)), { hidden: true });
  const error = el("p", { class: "error", role: "alert" });
  head.append(pill, el("div", { class: "actions" }, restart, pause,
    el("a", { class: "button", href: `#/edit/${name}` }, "Edit"),
    button("Remove", act(removed), { class: "danger" })));
  const facts = el("dl", { class: "facts" });
  const picture = el("div");
  const states = el("tbody");
  const streams = el("p", { class: "quiet" });
  const waits = waitsPart();
  const text = el("pre", { class: "code", tabindex: "0" });
  const found = findings();
  const plan = el("p", { class: "quiet" });
  let reads = false; // whether the query reads the knowledge base
  const answers = answersPart(name, () => reads);
  const node = el("section", {}, head, error, facts, streams,
    el("h2", {}, "Automaton"), picture,
    el("p", { class: "quiet" }, "At a state: the partial matches that wait in it now. ",
      "Under an arrow, or at the left of a box: the solutions that took that step since the server began."),
    el("details", {}, el("summary", {}, "As a table"), el("div", { class: "wide" },
      el("table", { id: "states-of-automaton" }, el("thead", {}, el("tr", {},
        ["State", "Streams", "Partial matches", "Taken"].map((t, i) =>
          el("th", { scope: "col", class: i > 1 ? "number" : null }, t)))),
      states))),
    waits.node, whyPart(name), answers.node,
    el("h2", {}, "Query"), found.node, text, plan);
  let drawn = null;
  let drawnText = null;

  function act(action) {
    return async () => {
      say(error, "");
      try {
        await action();
      } catch (failure) {
        say(error, [failure.message, failure.hint].filter(Boolean).join(" \u2013 "));
      }
    };
  }

  async function removed() {
    if (!(await confirmed(`Remove the query ${name}? Its partial matches are lost.`, "Remove"))) return;
    await api.remove(name);
    location.hash = "#/queries";
  }

  async function update(known) {
    const query = await api.query(name);
    if (pill.dataset.is !== query.state) {
      pill.dataset.is = query.state;
      pill.replaceChildren(statePill(query.state));
    }
    restart.hidden = query.state !== "failed";
    pause.hidden = !["running", "paused"].includes(query.state);
    pause.dataset.is = query.state;
    say(pause, query.state === "paused" ? "Run again" : "Pause");
    if (query.reason) say(error, `It has failed: ${shown(query.reason, 400)}`);
    else if (error.textContent.startsWith("It has failed")) say(error, "");
    showFacts(facts, [
      ["Answers", grouped(query.answers)],
      ["Muted", query.muted ? grouped(query.muted) : ""],
      ["Withheld", query.withheld ? grouped(query.withheld) : ""],
      ["Rate", perSecond(known.answered.of(name))],
      ["Partial matches", short(waiting(query))],
      ["Window", query.plan?.window?.text || "\u2013"],
      ["Since", time(query.since?.replace(/\.\d+/, ""))],
    ]);
    reads = Boolean(query.plan?.knowledge?.length);
    if (query.text !== drawnText) await draw(query);
    if (query.automaton) {
      drawn?.update(query.automaton);
      keep(states, flat(query.automaton), (s) => s.id, stateRow, fillState);
    }
    say(streams, streamWords(query, known));
    waits.update(query.waiting, known.streams);
    answers.update();
  }

  async function draw(query) {
    drawn = null;
    drawnText = query.text;
    say(text, shown(query.text, 200000));
    found.show(query.diagnostics);
    say(plan, planWords(query.plan || {}));
    if (!query.automaton) return picture.replaceChildren(el("p", { class: "quiet" }, "No drawing."));
    drawn = automaton(await api.drawing(name));
    picture.replaceChildren(drawn.node);
  }
  return { title: name, node, update, close: answers.close };
}

function showFacts(list, facts) {
  keep(list, facts.filter(([, value]) => value), ([title]) => title,
    ([title]) => el("div", {}, el("dt", {}, title), el("dd")),
    (node, [, value]) => say(node.lastChild, value));
}

// The partial matches in all states; a query whose states are not known has its own count.
function waiting(query) {
  const counts = query.automaton ? flat(query.automaton).map((state) => state.partial_matches) : [];
  return counts.some((count) => count != null) ? counts.reduce((sum, n) => sum + (n || 0), 0) : query.live;
}

function planWords({ sequence, knowledge }) {
  if (!sequence) return "";
  const parts = [`It runs on the evaluator ${sequence.evaluator}: ${sequence.reason}.`];
  if (sequence.key?.length) parts.push(`Its work is split by ${sequence.key.map((v) => `?${v}`).join(", ")}.`);
  if (knowledge?.length) parts.push(`It reads the graphs ${knowledge.map((iri) => shown(iri)).join(", ")}.`);
  return parts.join(" ");
}

const stateRow = () => el("tr", {}, el("th", { scope: "row" }), el("td"),
  el("td", { class: "number" }), el("td", { class: "number" }));

function fillState(node, state) {
  const [label, streams, count, taken] = node.children;
  const ends = state.final ? " (final)" : "";
  say(label, `${"\u2003".repeat(state.depth)}${state.label || state.takes || "start"}${ends}`);
  say(streams, state.streams.join(", "));
  say(count, short(state.partial_matches));
  say(taken, short(state.edges.find((edge) => edge.count != null)?.count));
}

function streamWords(query, known) {
  const words = query.streams.map((iri) => nameOf(iri, known.streams));
  return words.length ? `Reads ${words.join(", ")}.` : "";
}

const nameOf = (iri, streams) => streams.find((stream) => stream.iri === iri)?.name || shown(iri, 80);

// What comes when time passes: windows that will close, answers that are held, and for whom.
function waitsPart() {
  const words = el("p", { class: "quiet" });
  const times = el("ul", { class: "closes" });
  const more = el("p", { class: "quiet" });
  const node = el("div", { id: "waits", hidden: true }, el("h2", {}, "Waits"), words, times, more);

  function update(waiting, streams) {
    node.hidden = !waiting;
    if (!waiting) return;
    const { windows } = waiting;
    say(words, waitWords(waiting, streams));
    keep(times, windows.slice(0, WINDOWS), (_, i) => i, () => el("li"),
      (item, { closes }) => say(item, time(closes)));
    times.hidden = !windows.length;
    say(more, windows.length > WINDOWS ? `and ${windows.length - WINDOWS} more that are next` : "");
  }
  return { node, update };
}

function waitWords({ windows, held, streams: behind }, streams) {
  const words = [];
  const names = behind.map((iri) => nameOf(iri, streams)).join(", ");
  if (held) words.push(`${grouped(held)} ${held > 1 ? "answers are" : "answer is"} held.`);
  if (names) words.push(`It waits for the watermark of ${names}.`);
  if (windows.length) words.push("If nothing further happens, windows close with an answer at:");
  return words.join(" ") || "For nothing: no answer is held, and time alone brings none.";
}

function whyPart(name) {
  const report = el("pre", { class: "code report", tabindex: "0", hidden: true, "aria-label": "Report" });
  const event = el("input", { id: "why-event", placeholder: "IRI of an event, if you mean one", spellcheck: "false" });
  const ask = el("button", {}, "Why does it not match?");
  const asked = async (submitted) => {
    submitted.preventDefault();
    ask.disabled = true;
    report.hidden = false;
    say(report, "Looking through the events that are still logged \u2026");
    try {
      say(report, shown(await api.why(name, event.value.trim()), 100000));
    } catch (failure) {
      say(report, [failure.message, failure.hint].filter(Boolean).join("\n"));
    }
    ask.disabled = false;
    ask.focus();
  };
  return el("div", {}, el("h2", {}, "Why not?"),
    el("form", { class: "row", onsubmit: asked }, ask,
      el("label", { for: "why-event", class: "hidden" }, "Event"), event), report,
    el("p", { class: "quiet" }, "It looks at the events that the query has seen and that are still logged. ",
      "About an event, or if the query reads what others make, it looks at all that are logged."));
}

function answersPart(name, reads) {
  const list = el("div", { class: "answers" });
  const words = el("p", { class: "empty" }, "No answers yet.");
  const pause = button("Hold", () => {
    paused = !paused;
    say(pause, paused ? "Go on" : "Hold");
    pause.setAttribute("aria-pressed", paused);
    if (!paused) drawNew();
  }, { "aria-pressed": "false" });
  let waiting = [];
  let source = null;
  let paused = false;
  let timer = 0;

  function drawNew() {
    clearTimeout(timer);
    timer = 0;
    if (!waiting.length) return;
    const open = new Set([...list.children].filter((n) => n.querySelector("details[open]")).map((n) => n.dataset.id));
    for (const answer of waiting.slice(-ANSWERS)) {
      if ([...list.children].some((n) => n.dataset.id === answer.id)) continue;
      const node = answerNode(answer, reads() ? () => api.knowledge(name, answer.id) : null);
      node.dataset.id = answer.id;
      list.prepend(node);
    }
    waiting = [];
    words.hidden = list.children.length > 0;
    for (const node of [...list.children].slice(ANSWERS).reverse()) {
      if (list.children.length > ANSWERS && !open.has(node.dataset.id)) node.remove();
    }
  }

  function took(answer) {
    waiting.push(answer);
    if (waiting.length > ANSWERS) waiting.shift();
    if (!paused && !timer) timer = setTimeout(drawNew, DRAW_MS);
  }

  async function begin() {
    source = api.answerEvents(name);
    source.onmessage = (event) => took(JSON.parse(event.data));
    source.addEventListener("end", () => source.close());
    source.addEventListener("gone", () => source.close());
    const before = await api.lastAnswers(name, ANSWERS).catch(() => []);
    waiting = [...before, ...waiting];
    drawNew();
  }
  return {
    node: el("div", {}, el("div", { class: "title" }, el("h2", {}, "Last answers"), pause), words, list),
    update: () => source || begin(),
    close: () => {
      source?.close();
      clearTimeout(timer);
    },
  };
}
