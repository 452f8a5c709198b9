"""Numbering of events with equal times: the k of an instant (time, k).

k is the number of earlier events of the stream with the same time. While times do not decrease, the
last time and its count suffice. For out-of-order times the counts of all earlier times are kept on
disk, one to eight bytes per distinct time and as many for counts that are not 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.events.count_history import CountHistory


class InstantCounter:
    """Gives the events of one stream their k, in any order of times.

    With `ordered=True` the caller promises that times never decrease. Then nothing is kept on disk,
    and a decreasing time is a ValueError.
    """

    def __init__(self, ordered: bool = False) -> None:
        self._ordered = ordered
        self._last: int | None = None  # the greatest time so far
        self._count = 0  # events at that time
        self._history = CountHistory()  # counts of all times before the greatest

    @property
    def position(self) -> tuple[int | None, int]:
        """Where an ordered counter stands, for `return_to`."""
        return self._last, self._count

    def return_to(self, position: tuple[int | None, int]) -> None:
        """Forget the events since an ordered counter stood there."""
        self._last, self._count = position

    def next(self, time: int) -> int:
        """k of the next event, at `time` (ms)."""
        if time == self._last:
            self._count += 1
            return self._count - 1
        if self._last is None or time > self._last:
            if self._last is not None and not self._ordered:
                self._remember(np.array([self._last]), np.array([self._count]))
            self._last, self._count = time, 1
            return 0
        return int(self.assign(np.array([time], np.int64))[0])

    def assign(self, times: Int64s) -> Int32s:
        """k int32 [n] of the next n events, whose times int64 [n] (ms) are in order of arrival."""
        if not len(times):
            return np.empty(0, np.int32)
        if (times[1:] > times[:-1]).all():  # the usual case
            if self._last is None or times[0] > self._last:
                self._go_on(times)
                return np.zeros(len(times), np.int32)
            counted = self._seen(times)
            self._add(times, np.ones(len(times), np.int64))
            return counted.astype(np.int32)
        distinct, inverse, counts = np.unique(times, return_inverse=True, return_counts=True)
        before = self._seen(distinct)
        among = rank(times, inverse, counts)
        self._add(distinct, counts.astype(np.int64))
        return (before[inverse] + among).astype(np.int32)

    def skip(self, times: Int64s) -> tuple[Int64s, Int64s]:
        """Count the next n events without numbering them.

        Returns (times that occurred earlier, their counts). A counter made from the two by
        `InstantCounter.after` gives these n events the same k as this counter.
        """
        if not len(times):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        distinct, counts = np.unique(times, return_counts=True)
        before = self._seen(distinct)
        self._add(distinct, counts.astype(np.int64))
        known = before > 0
        return distinct[known], before[known]

    @classmethod
    def after(cls, times: Int64s, counts: Int64s) -> InstantCounter:
        """A counter after `counts` [n] events at ascending `times` [n]."""
        counter = cls()
        if len(times):
            counter._add(times, counts.copy())
        return counter

    def _seen(self, distinct: Int64s) -> Int64s:
        """The counts so far at ascending distinct times."""
        before = np.zeros(len(distinct), np.int64)
        if self._last is None:
            return before
        late = int(np.searchsorted(distinct, self._last))
        if late:
            if self._ordered:
                raise ValueError(f"time {distinct[0]} after {self._last} in an ordered stream")
            before[:late] = self._history.counts(distinct[:late])
        if late < len(distinct) and distinct[late] == self._last:
            before[late] = self._count
        return before

    def _add(self, distinct: Int64s, counts: Int64s) -> None:
        if self._last is None:
            self._last, self._count = int(distinct[0]), 0
        at = int(np.searchsorted(distinct, self._last))
        self._remember(distinct[:at], counts[:at])
        distinct, counts = distinct[at:], counts[at:]
        if not len(distinct):
            return
        if distinct[0] == self._last:
            counts[0] += self._count
        else:
            self._remember(np.array([self._last]), np.array([self._count]))
        self._remember(distinct[:-1], counts[:-1])
        self._last, self._count = int(distinct[-1]), int(counts[-1])

    def _go_on(self, times: Int64s) -> None:
        """Count an event at each of some ascending times after all others."""
        if not self._ordered:
            if self._last is not None:
                self._history.add(np.array([self._last]), np.array([self._count]))
            if len(times) > 1:
                self._history.add(times[:-1])
        self._last, self._count = int(times[-1]), 1

    def _remember(self, times: Int64s, counts: Int64s) -> None:
        if not self._ordered and len(times):
            self._history.add(times, counts)


def rank(times: Int64s, inverse: Any, counts: Any) -> Int64s:
    """For each entry of `times`, the number of earlier equal entries.

    `inverse` and `counts` come from `np.unique(times)`.
    """
    if len(counts) == len(times):
        return np.zeros(len(times), np.int64)
    order = np.argsort(inverse, kind="stable")
    first = np.cumsum(counts) - counts
    found = np.empty(len(times), np.int64)
    found[order] = np.arange(len(times)) - np.repeat(first, counts)
    return found
