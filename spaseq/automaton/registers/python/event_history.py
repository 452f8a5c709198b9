"""The instants of a partition that are kept: what second operands and negated steps look at."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.window import Window
from spaseq.automaton.run.partition_evaluator import PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import MeasuredInstant, Obligation

EventHistory: TypeAlias = list[tuple[Instant, MeasuredInstant, RowsByGpm]]
"""In order, with the solutions that may be looked at again."""


def replay(
    past: EventHistory, after: Instant | None, until: Instant, tau: int | None
) -> Iterator[tuple[MeasuredInstant, RowsByGpm]]:
    """Kept instants behind `after` up to `until`; of one timestamp only, if `tau` is given."""
    start = 0 if after is None else bisect_right(past, after, key=lambda p: p[0])
    if tau is not None:
        start = max(start, bisect_left(past, (tau, -1), key=lambda p: p[0]))
    end = bisect_right(past, until, key=lambda p: p[0])
    for i in range(start, end):
        yield past[i][1], past[i][2]


def between(
    past: EventHistory, window: Window, origin: int, after: Instant | None, before: Instant | None
) -> Iterator[tuple[MeasuredInstant, RowsByGpm]]:
    """Kept instants behind `after` and before `before`, or in the window that begins at `origin`,
    if that is None."""
    start = 0 if after is None else bisect_right(past, after, key=lambda p: p[0])
    for instant, moment, rows in past[start:]:
        if before is not None and instant >= before:
            return
        if before is None and not window.holds(origin, moment.reach):
            return
        yield moment, rows


def bound(
    past: EventHistory, window: Window, found: PartitionMatch, obligation: Obligation
) -> Instant | None:
    """The instant after which a negated step must not match; None: the past's beginning."""
    if obligation.after is not None:
        return obligation.after
    end = bisect_left(past, found.first, key=lambda p: p[0])
    first = bisect_left(past, True, hi=end, key=lambda p: window.holds(p[1].start, found.last[0]))
    return past[first - 1][0] if first else None
