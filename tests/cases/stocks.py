"""Expected answers of `streams/stocks`: V-shapes, and heads with shoulders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from .raw import MINUTE, Answer, Event, Knowledge, after, answer, by, read_stream

NS = "http://stocks.example/ns#"
BARS = "http://stocks.example/stream/bars"


def answers(folder: Path) -> Iterator[Answer]:
    """The answers of both queries, in no particular order."""
    company = Knowledge(folder / "kb.ttl").one(f"{NS}company")
    bars = read_stream(folder / "bars.nq", BARS)
    for ticker, own in by(bars, f"{NS}ticker").items():
        about = {"ticker": ticker, "company": company[ticker]}
        for falls, rises in v_shapes(own):
            start, end = falls[0], rises[-1]
            trace = [("A", start), *(("B", b) for b in falls[1:])]
            trace += [*(("C", c) for c in rises[:-1]), ("D", end)]
            prices = {"start": start, "bottom": falls[-1], "end": end}
            yield answer("query", trace, about | closes(prices))
        for shape in heads_and_shoulders(own):
            prices = {"start": shape["A"], "left": shape["B"], "head": shape["D"]}
            prices |= {"right": shape["F"], "break": shape["G"]}
            yield answer("head-and-shoulders", shape.items(), about | closes(prices))


def close(bar: Event) -> float:
    return bar.double(f"{NS}close")


def closes(bars: dict[str, Event]) -> dict[str, str]:
    return {variable: bar.one(f"{NS}close") for variable, bar in bars.items()}


def v_shapes(bars: list[Event]) -> Iterator[tuple[list[Event], list[Event]]]:
    """`SEQ (A, B{3,}, C{2,}, D)`: a start and its falls, then the rises up to the start."""
    for first, a in enumerate(bars):
        bottom = first
        while bottom + 1 < len(bars) and close(bars[bottom + 1]) < close(bars[bottom]):
            bottom += 1
        # The falls end at the bottom; if they ended earlier, the next bar would have to rise.
        if bottom - first < 3 or close(bars[bottom]) > 0.97 * close(a):
            continue
        top = bottom
        while top + 1 < len(bars) and close(bars[top + 1]) > close(bars[top]):
            top += 1
            if close(bars[top]) >= close(a):
                break
        back = close(bars[top]) >= close(a)
        if back and top - bottom >= 3 and bars[top].time - a.time <= 15 * MINUTE:
            yield bars[first : bottom + 1], bars[bottom + 1 : top + 1]


NEXT: dict[str, Callable[[float, dict[str, float]], bool]] = {
    "B": lambda price, at: price >= 1.03 * at["A"],
    "C": lambda price, at: price <= 0.98 * at["B"],
    "D": lambda price, at: price >= 1.02 * at["B"],
    "E": lambda price, at: price < at["B"],
    "F": lambda price, at: 1.02 * at["E"] <= price < at["D"],
    "G": lambda price, at: price < at["C"] and price < at["E"],
}
"""The condition on the price of each step of a head and shoulders, given the earlier prices."""


def heads_and_shoulders(bars: list[Event]) -> Iterator[dict[str, Event]]:
    """`SEQ (A; B; C; D; E; F; H!; G)`: from each busy bar, the next bar past each threshold."""
    for a in bars:
        if a.number(f"{NS}volume") < 5000:
            continue
        shape = {"A": a}
        for bar in after(bars, a):
            price, at = close(bar), {gpm: close(found) for gpm, found in shape.items()}
            step = "ABCDEFG"[len(shape)]
            if step == "G" and price > at["D"]:
                break  # H: the price exceeds the head before it breaks the neckline
            if NEXT[step](price, at):
                shape[step] = bar
            if len(shape) == 7:
                if bar.time - a.time <= 40 * MINUTE:
                    yield shape
                break
