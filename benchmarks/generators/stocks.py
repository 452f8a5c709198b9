"""Stocks: one stream with a bar per ticker and minute; bars of the same minute share a timestamp.

Prices vary randomly around a level. In an episode, the price of one ticker follows a planned path:
a V, or a head with two shoulders. One bar in twenty is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from .case import Case, Dice, Generated, Planted
from .episodes import Part, Schedule, Script
from .names import COMPANIES
from .nquads import RDF_TYPE, Stamp, double, event, hundredths, integer, milliseconds

BASE = "http://stocks.example/"
NS = f"{BASE}ns#"
START = milliseconds("2024-10-07T13:30:00")
V, SHOULDERS = "query", "head-and-shoulders"

KINDS = (
    (V, "hit"),
    (SHOULDERS, "hit"),
    (V, "falls too little"),
    (SHOULDERS, "takes out the head"),
    (V, "hit"),
    (SHOULDERS, "hit"),
    (V, "rises on the way down"),
    (SHOULDERS, "does not break the neckline"),
    (V, "does not recover"),
    (V, "hit"),
    (SHOULDERS, "takes too long"),
)


class Bar(NamedTuple):
    """The closing price in thousandths of the price before the episode; is the volume high?"""

    level: int
    busy: bool = False


def _v_shape(dice: Dice, kind: str) -> list[Part[Bar]]:
    """A start, at least three falls, and at least three rises; the last one exceeds the start."""
    step = 4 if kind == "falls too little" else dice.whole(9, 13)
    falls, rises = dice.whole(4, 6), dice.whole(3, 5)
    down = [1000 - step * (i + 1) for i in range(falls)]
    bottom = down[-1]
    top = bottom + (1000 - bottom) // 2 if kind == "does not recover" else 1004
    up = [bottom + (top - bottom) * (i + 1) // rises for i in range(rises)]
    path = [1000, *down, *up]
    if kind == "rises on the way down":
        path[3] = path[2] + 3
    return [Part(Bar(level)) for level in path]


# The steps of a head and shoulders in thousandths above the start. A match consists of the first
# bars beyond each threshold of the query: start, left shoulder, trough, head, trough, right
# shoulder, break of the neckline.
_STEPS = (
    (0, True), (15, False), (32, True), (40, False), (25, False), (11, True), (30, False),
    (55, True), (65, False), (40, False), (22, True), (19, False), (35, False), (45, True),
    (47, False), (18, False), (6, True),
)  # fmt: skip


def _shoulders(dice: Dice, kind: str) -> list[Part[Bar]]:
    """A head and shoulders, up to a third higher than the steps above."""
    scale = dice.whole(100, 130)
    steps = list(_STEPS)
    if kind == "takes out the head":
        steps[14] = (75, False)
    if kind == "does not break the neckline":
        steps[16] = (16, True)
    parts = []
    for i, (step, counts) in enumerate(steps):
        bar = Bar(1000 + step * scale // 100, busy=i == 0)
        slow = 2 if kind == "takes too long" else 0
        parts += [Part(bar, counts), *[Part(Bar(bar.level), False)] * slow]
    return parts


class Market:
    """Prices of all tickers, in hundredths, and the bars they make."""

    def __init__(self, dice: Dice, tickers: int) -> None:
        self._dice = dice
        self._level = [dice.whole(2000, 18000) for _ in range(tickers)]
        self._close = list(self._level)
        self._before = list(self._level)  # the price before the ticker's episode
        self._number = 0

    def begin(self, ticker: int) -> None:
        """Begin an episode at the ticker's current price."""
        self._before[ticker] = self._close[ticker]

    def follow(self, time: int, ticker: int, bar: Bar, mark: Planted | None) -> Generated:
        """A bar of an episode; its price becomes the ticker's new level."""
        self._level[ticker] = self._before[ticker] * bar.level // 1000
        return self._write(time, ticker, self._level[ticker], bar.busy, mark)

    def jitter(self, time: int, ticker: int) -> Generated:
        """A bar with a price near the ticker's level."""
        reach = self._level[ticker] * 3 // 1000
        close = self._level[ticker] + self._dice.whole(-reach, reach)
        return self._write(time, ticker, close, self._dice.chance(0.03), None)

    def _write(
        self, time: int, ticker: int, close: int, busy: bool, mark: Planted | None
    ) -> Generated:
        self._number += 1
        graph = f"{BASE}bar/{self._number}"
        b = f"<{graph}>"
        volume = self._dice.whole(5000, 9000) if busy else self._dice.whole(300, 4800)
        triples = [
            (b, RDF_TYPE, f"<{NS}Bar>"),
            (b, f"<{NS}ticker>", f"<{BASE}ticker/{symbol(ticker)}>"),
            (b, f"<{NS}open>", double(hundredths(self._close[ticker]))),
            (b, f"<{NS}close>", double(hundredths(close))),
            (b, f"<{NS}volume>", integer(volume)),
        ]
        self._close[ticker] = close
        return Generated(0, graph, event(b, time, triples, Stamp.AFTER), mark)


def symbol(ticker: int) -> str:
    """The ticker symbol with this number."""
    return COMPANIES[ticker][0] if ticker < len(COMPANIES) else f"T{ticker}"


def events(dice: Dice, keys: int) -> Iterator[Generated]:
    """The bars of `keys` tickers, without end."""
    market, schedule = Market(dice, keys), Schedule([kind for _, kind in KINDS])
    scripts: list[Script[Bar]] = [Script() for _ in range(keys)]
    for minute in count():
        time = START + minute * 60_000
        for ticker, script in enumerate(scripts):
            if dice.chance(0.05):
                continue
            if not script and dice.chance(0.05):
                number, kind = schedule.next()
                query = KINDS[number % len(KINDS)][0]
                path = _v_shape if query == V else _shoulders
                script.plan(number, kind, query, path(dice, kind))
                market.begin(ticker)
            if script:
                yield market.follow(time, ticker, *script.next())
            else:
                yield market.jitter(time, ticker)


def knowledge(keys: int) -> str:
    """Tickers with symbol, company and sector."""
    rows = [
        f"@prefix : <{NS}> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "",
        f'<{BASE}sector/goods> a :Sector ; rdfs:label "Goods" .',
        f'<{BASE}sector/services> a :Sector ; rdfs:label "Services" .',
    ]
    for t in range(keys):
        company = COMPANIES[t][1] if t < len(COMPANIES) else f"Company {t}"
        sector = ("goods", "services")[t % 2]
        rows.append(
            f'<{BASE}ticker/{symbol(t)}> a :Ticker ; :symbol "{symbol(t)}" ; '
            f':company "{company}" ; :sector <{BASE}sector/{sector}> .'
        )
    return "\n".join(rows) + "\n"


CASE = Case("stocks", ("bars",), events, knowledge, default_events=600, default_keys=6)
