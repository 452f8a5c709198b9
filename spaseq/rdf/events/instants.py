"""Numbering of events with equal times: the k of an instant (time, k).

k is the number of earlier events of the stream with the same time. While times do not decrease, the
last time and its count suffice. For out-of-order times the counts of all earlier times are kept on
disk, one to eight bytes per distinct time and as many for counts that are not 1.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.kernels.event_ranges import equal_times
from spaseq.records import record


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


_ALIGNED = 8
"""Columns in a file begin at a multiple of this number of bytes."""


class CountHistory:
    """Event counts by time, as sorted runs of (time, count) rows on disk.

    The first run takes times in ascending order. Times before its end start further runs. Two
    neighbouring runs are merged when the later has half as many rows as the earlier, so there are
    few runs (as in a log-structured merge tree).
    """

    def __init__(self) -> None:
        self._runs: list[SortedRun] = [SortedRun()]

    def add(self, times: Int64s, counts: Int64s | None = None) -> None:
        """Add counts at ascending distinct times; without `counts` each is 1."""
        for run in (self._runs[0], self._runs[-1]):
            if run.last is None or run.last < times[0]:
                run.append(times, counts)
                break
        else:
            self._runs.append(SortedRun())
            self._runs[-1].append(times, counts)
        while len(self._runs) > 2 and self._runs[-1].rows * 2 >= self._runs[-2].rows:
            later, earlier = self._runs.pop(), self._runs.pop()
            self._runs.append(SortedRun.merged(earlier, later))

    def counts(self, times: Int64s) -> Int64s:
        """The count at each time; the times are in any order."""
        total = np.zeros(len(times), np.int64)
        for run in self._runs:
            total += run.counts(times)
        return total


@record
class _Block:
    """Rows of a run in its file: distances from the first time, and counts that are not all 1."""

    first: int
    last: int
    times: tuple[int, int, str]  # first byte, rows, dtype
    counts: tuple[int, int, str] | None


class SortedRun:
    """One run of (time, count) rows, times ascending: the newest in memory, the others in a file.

    A block of rows takes as few bytes as its distances need, and none for counts of 1.
    """

    def __init__(self) -> None:
        self._tail: list[tuple[Int64s, Int64s | None]] = []
        self._tail_rows = 0
        self._blocks: list[_Block] = []
        self._file: IO[bytes] | None = None
        self._bytes = 0  # in the file
        self.rows = 0
        self.last: int | None = None

    def append(self, times: Int64s, counts: Int64s | None) -> None:
        """Append rows with ascending times after `last`; without `counts` each is 1."""
        self._tail.append((times, counts))
        self._tail_rows += len(times)
        self.rows += len(times)
        self.last = int(times[-1])
        if self._tail_rows >= thresholds.current.spilled_rows:
            self._spill()

    def counts(self, times: Int64s) -> Int64s:
        """The count of each time, 0 without a row."""
        row_counts = np.zeros(len(times), np.int64)
        if not len(times):
            return row_counts
        least, most = int(times.min()), int(times.max())
        for first, distances, counts in self._parts(least, most):
            inside = np.flatnonzero((times >= first) & (times <= first + int(distances[-1])))
            distance = (times[inside] - first).astype(distances.dtype)
            at = np.searchsorted(distances, distance)
            same = distances[at] == distance
            row_counts[inside[same]] += 1 if counts is None else counts[at[same]]
        return row_counts

    @staticmethod
    def merged(*runs: SortedRun) -> SortedRun:
        """One run of all rows; counts of equal times are added."""
        parts = [part for run in runs for part in run._parts()]
        all_times = np.concatenate([first + own.astype(np.int64) for first, own, _ in parts])
        times, inverse = np.unique(all_times, return_inverse=True)
        counts = np.zeros(len(times), np.int64)
        np.add.at(
            counts, inverse, np.concatenate([_whole(own, counts) for _, own, counts in parts])
        )
        run = SortedRun()
        run.append(times, counts)
        return run

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="spaseq-instants-")  # noqa: SIM115
        times, counts = self._joined()
        first, last = int(times[0]), int(times[-1])
        distances = self._write(times - first, last - first)
        most = 1 if counts is None else int(counts.max())
        stored = None if most == 1 or counts is None else self._write(counts, most)
        self._file.flush()
        self._blocks.append(_Block(first, last, distances, stored))
        self._tail, self._tail_rows = [], 0

    def _write(self, column: Int64s, most: int) -> tuple[int, int, str]:
        """Write a column of numbers from 0 to `most`; return its position."""
        assert self._file is not None
        kind = np.min_scalar_type(most)
        offset, size = self._bytes, len(column) * kind.itemsize
        self._file.write(column.astype(kind).data)
        self._file.write(bytes(-size % _ALIGNED))
        self._bytes += size + -size % _ALIGNED
        return offset, len(column), kind.str

    def _joined(self) -> tuple[Int64s, Int64s | None]:
        """The rows in memory."""
        if len(self._tail) > 1:
            times = np.concatenate([own for own, _ in self._tail])
            counts = None
            if any(own is not None for _, own in self._tail):
                counts = np.concatenate([_whole(*part) for part in self._tail])
            self._tail = [(times, counts)]
        return self._tail[0]

    def _parts(
        self, least: int | None = None, most: int | None = None
    ) -> Iterator[tuple[int, Any, Any]]:
        """(first time, distances from it, counts or None) of rows; all that are in a range."""

        def is_asked(first: int, last: int) -> bool:
            return (most is None or first <= most) and (least is None or last >= least)

        blocks = [block for block in self._blocks if is_asked(block.first, block.last)]
        if blocks and self._file is not None:
            data = np.memmap(self._file, np.uint8, mode="r", shape=(self._bytes,))

            def column(offset: int, rows: int, kind: str) -> Any:
                return data[offset : offset + rows * np.dtype(kind).itemsize].view(kind)

            for block in blocks:
                counts = None if block.counts is None else column(*block.counts)
                yield block.first, column(*block.times), counts
        if self._tail:
            times, counts = self._joined()
            if is_asked(int(times[0]), int(times[-1])):
                yield int(times[0]), times - times[0], counts


def _whole(times: Int64s, counts: Int64s | None) -> Int64s:
    return np.ones(len(times), np.int64) if counts is None else counts.astype(np.int64)


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
        """The state of an ordered counter, for `return_to`."""
        return self._last, self._count

    def return_to(self, position: tuple[int | None, int]) -> None:
        """Drop the events since an earlier state of an ordered counter."""
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
                if not self._ordered:
                    if self._last is not None:
                        self._history.add(np.array([self._last]), np.array([self._count]))
                    if len(times) > 1:
                        self._history.add(times[:-1])
                self._last, self._count = int(times[-1]), 1
                return np.zeros(len(times), np.int32)
            counted = self._seen(times)
            self._add(times, np.ones(len(times), np.int64))
            return counted.astype(np.int32)
        if self._last is None or times[0] >= self._last:
            earlier = self._count if times[0] == self._last else 0
            k, (distinct, counted) = np.empty(len(times), np.int32), np.empty((2, len(times)), int)
            contiguous = np.require(times, np.int64, ["C", "W"])  # one type, so one kernel
            size = equal_times(contiguous, earlier, k, distinct, counted)
            if size:
                self._add(distinct[:size].copy(), counted[:size].copy())
                return k
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

    def _remember(self, times: Int64s, counts: Int64s) -> None:
        if not self._ordered and len(times):
            self._history.add(times, counts)


class UncountedInstants(InstantCounter):
    """A counter that remembers nothing, for events that are numbered elsewhere, or not at all."""

    def assign(self, times: Int64s) -> Int32s:
        return np.zeros(len(times), np.int32)


def rank(times: Int64s, inverse: Any, counts: Any) -> Int64s:
    """For each entry of `times`, the number of earlier equal entries.

    `inverse` and `counts` come from `np.unique(times)`.
    """
    if len(counts) == len(times):
        return np.zeros(len(times), np.int64)
    order = np.argsort(inverse, kind="stable")
    first = np.cumsum(counts) - counts
    ranks = np.empty(len(times), np.int64)
    ranks[order] = np.arange(len(times)) - np.repeat(first, counts)
    return ranks
