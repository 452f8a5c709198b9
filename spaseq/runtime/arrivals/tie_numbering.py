"""Numbers events of equal time across input splits that tasks read independently.

Without a time scan a split numbers its events as if none came before. That is wrong only for events
whose time also occurs in earlier splits. As long as the splits of a stream follow each other in
time, that can only be the time at which one ends and the next begins. So every split reports its
first and its last time, and stage 2 adds what is missing. Splits that overlap are detected there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.records import record
from spaseq.storage.safe_pickles import dump_plain, load_plain


@dataclass(slots=True)
class TimeExtent:
    """The first and the last time (ms) in a split, and how many of its events have each."""

    stream: int
    split: int
    first: int | None = None
    last: int | None = None
    at_first: int = 0
    at_last: int = 0

    def watch(self, events: Iterator[EventBatch]) -> Iterator[EventBatch]:
        """The same batches; their times are counted."""
        for batch in events:
            if len(batch):
                self._add(batch.time)
            yield batch

    def _add(self, times: Int64s) -> None:
        low, high = int(times.min()), int(times.max())
        if self.first is None or low < self.first:
            self.first, self.at_first = low, 0
        if self.last is None or high > self.last:
            self.last, self.at_last = high, 0
        self.at_first += int(np.count_nonzero(times == self.first))
        self.at_last += int(np.count_nonzero(times == self.last))

    def data(self) -> bytes:
        """The extent as bytes."""
        known = self.stream, self.split, self.first, self.last, self.at_first, self.at_last
        return dump_plain(known)

    @classmethod
    def of(cls, data: bytes) -> TimeExtent:
        """The inverse of `data`."""
        return cls(*load_plain(data))


class Overlap(Exception):
    """A split has events before the end of an earlier split of its stream."""


@record
class EarlierTies:
    """How many events of earlier splits have the first time (ms) of a split."""

    time: int
    count: int

    def renumber(self, solutions: SolutionBatch) -> SolutionBatch:
        """The split's solutions, numbered as in the whole stream."""
        tied = (solutions.time == self.time) * self.count
        return replace(solutions, k=(solutions.k + tied).astype(np.int32))


def earlier(extents: Iterable[TimeExtent]) -> dict[int, EarlierTies]:
    """The earlier ties of each split whose first time occurs in earlier splits, by split.

    Raises:
        Overlap: the splits of a stream do not follow each other in time.

    >>> earlier([TimeExtent(0, 0, 10, 20, 1, 3), TimeExtent(0, 1, 20, 30, 2, 1)])
    {1: EarlierTies(time=20, count=3)}
    """
    found: dict[int, EarlierTies] = {}
    ends: dict[int, EarlierTies] = {}  # by stream: the last time so far, and how many have it
    for one in sorted(extents, key=lambda e: e.split):
        if one.first is None or one.last is None:
            continue
        end = ends.get(one.stream)
        if end is not None and one.first < end.time:
            raise Overlap
        tied = end.count if end is not None and one.first == end.time else 0
        if tied:
            found[one.split] = EarlierTies(one.first, tied)
        at_end = one.at_last + (tied if one.last == one.first else 0)
        ends[one.stream] = EarlierTies(one.last, at_end)
    return found
