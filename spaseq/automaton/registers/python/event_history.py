"""The event history of a partition: the instants that second operands and negations search."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.window import Window
from spaseq.automaton.run.matches import PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import MeasuredInstant, Obligation

EventHistory: TypeAlias = list[tuple[Instant, MeasuredInstant, RowsByGpm]]
"""The instants in order, with the solutions that may be searched."""


def replay(
    history: EventHistory,
    window: Window,
    after: Instant | None,
    until: MeasuredInstant,
    tau: int | None,
) -> Iterator[tuple[MeasuredInstant, RowsByGpm]]:
    """The instants after `after` up to `until`, within a window before `until`.

    Only instants at the timestamp `tau` if given.
    """
    start = bisect_left(history, window.earliest(until.reach), key=lambda p: p[1].start)
    if after is not None:
        start = max(start, bisect_right(history, after, key=lambda p: p[0]))
    if tau is not None:
        start = max(start, bisect_left(history, (tau, -1), key=lambda p: p[0]))
    end = bisect_right(history, until.instant, key=lambda p: p[0])
    for i in range(start, end):
        yield history[i][1], history[i][2]


def between(
    history: EventHistory,
    window: Window,
    origin: int,
    after: Instant | None,
    before: Instant | None,
) -> Iterator[tuple[MeasuredInstant, RowsByGpm]]:
    """The instants after `after` and before `before`.

    Without `before` they end with the window that begins at the measure `origin`.
    """
    start = 0 if after is None else bisect_right(history, after, key=lambda p: p[0])
    for i in range(start, len(history)):
        instant, moment, rows = history[i]
        if before is not None and instant >= before:
            return
        if before is None and not window.holds(origin, moment.reach):
            return
        yield moment, rows


def search_start(
    history: EventHistory, window: Window, match: PartitionMatch, obligation: Obligation
) -> Instant | None:
    """The instant after which a negated step must not match; None is the start of the history."""
    if obligation.after is not None:
        return obligation.after
    end = bisect_left(history, match.first, key=lambda p: p[0])
    last = match.last[0]
    first = bisect_left(history, True, hi=end, key=lambda p: window.holds(p[1].start, last))
    return history[first - 1][0] if first else None
