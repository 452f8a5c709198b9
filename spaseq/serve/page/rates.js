// Rates of counts that are asked for every second, over the last ten seconds.

import { svg } from "./dom.js";

const WINDOW_MS = 10000;
const POINTS = 60;

export class Rates {
  #samples = new Map();

  note(key, count, now = performance.now()) {
    const series = this.#samples.get(key) || { last: [], rates: [] };
    const before = series.last.at(-1);
    if (before && count < before.count) series.last = []; // it counts anew
    series.last.push({ now, count });
    while (series.last.length > 2 && series.last[1].now < now - WINDOW_MS) series.last.shift();
    if (before && now > before.now) {
      series.rates.push(Math.max(0, (1000 * (count - before.count)) / (now - before.now)));
      if (series.rates.length > POINTS) series.rates.shift();
    }
    this.#samples.set(key, series);
  }

  of(key) {
    const last = this.#samples.get(key)?.last;
    if (!last || last.length < 2) return null;
    const [first, end] = [last[0], last.at(-1)];
    return (1000 * (end.count - first.count)) / (end.now - first.now);
  }

  // A small curve of the last minute.
  curve(key) {
    const rates = this.#samples.get(key)?.rates || [];
    const top = Math.max(...rates, 1e-9);
    const points = rates.map((rate, i) => {
      const x = ((POINTS - rates.length + i) / (POINTS - 1)) * 80;
      return `${x.toFixed(1)},${(17 - (rate / top) * 15).toFixed(1)}`;
    });
    return svg("svg", { class: "curve", viewBox: "0 0 80 18", "aria-hidden": "true" },
      svg("polyline", { points: points.join(" ") }));
  }
}
