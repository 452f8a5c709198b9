"""Number of events of a stream, or of a part of one, at each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from spaseq.compiled.arrays import Int64s


def _empty() -> Int64s:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class TimeCounts:
    """Times (ms, int64[n], ascending, distinct), and the number of events at each (int64[n])."""

    times: Int64s = field(default_factory=_empty)
    counts: Int64s = field(default_factory=_empty)

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[int, int]]) -> TimeCounts:
        """Counts from (time, count), with distinct times; `pairs` is the inverse."""
        counts = np.array(sorted(map(tuple, pairs)), np.int64).reshape(-1, 2)
        return cls(counts[:, 0], counts[:, 1])

    @classmethod
    def of_times(cls, times: Iterable[Int64s]) -> TimeCounts:
        """Counts of all these times, in any order."""
        return cls(*np.unique(np.concatenate([_empty(), *times]), return_counts=True))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(time, count) of each time."""
        return [*zip(self.times.tolist(), self.counts.tolist(), strict=True)]

    def of(self, distinct: Int64s) -> Int64s:
        """The counts of some times; 0 for times without events."""
        if not len(self.times):
            return np.zeros(len(distinct), np.int64)
        at = np.minimum(np.searchsorted(self.times, distinct), len(self.times) - 1)
        return np.where(self.times[at] == distinct, self.counts[at], 0)

    def among(self, distinct: Int64s) -> TimeCounts:
        """The counts of some ascending times only."""
        counts = self.of(distinct)
        return TimeCounts(distinct[counts > 0], counts[counts > 0])

    def since(self, first: int) -> TimeCounts:
        """The counts of the times from `first` on."""
        begin = int(np.searchsorted(self.times, first))
        return TimeCounts(self.times[begin:], self.counts[begin:]) if begin else self

    def before(self, end: int) -> TimeCounts:
        """The counts of the times before `end`."""
        size = int(np.searchsorted(self.times, end))
        return TimeCounts(self.times[:size], self.counts[:size])

    def with_more(self, distinct: Int64s, counts: Int64s) -> TimeCounts:
        """These counts, and further events at some ascending times."""
        times = np.concatenate([self.times, distinct])
        both = np.concatenate([self.counts, counts])
        if len(self.times) and len(distinct) and distinct[0] <= self.times[-1]:
            times, places = np.unique(times, return_inverse=True)
            both = np.bincount(places, both).astype(np.int64)
        return TimeCounts(times, both)
