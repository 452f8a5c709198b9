"""Event counts by time, kept on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Int64s
from spaseq.records import record

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
        found = np.zeros(len(times), np.int64)
        if not len(times):
            return found
        least, most = int(times.min()), int(times.max())
        for first, distances, counts in self._parts(least, most):
            inside = np.flatnonzero((times >= first) & (times <= first + int(distances[-1])))
            own = (times[inside] - first).astype(distances.dtype)
            at = np.searchsorted(distances, own)
            same = distances[at] == own
            found[inside[same]] += 1 if counts is None else counts[at[same]]
        return found

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
        """Write a column of numbers from 0 to `most`; returns where it is."""
        assert self._file is not None
        kind = np.min_scalar_type(most)
        place, size = self._bytes, len(column) * kind.itemsize
        self._file.write(column.astype(kind).data)
        self._file.write(bytes(-size % _ALIGNED))
        self._bytes += size + -size % _ALIGNED
        return place, len(column), kind.str

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

            def column(place: int, rows: int, kind: str) -> Any:
                return data[place : place + rows * np.dtype(kind).itemsize].view(kind)

            for block in blocks:
                counts = None if block.counts is None else column(*block.counts)
                yield block.first, column(*block.times), counts
        if self._tail:
            times, counts = self._joined()
            if is_asked(int(times[0]), int(times[-1])):
                yield int(times[0]), times - times[0], counts


def _whole(times: Int64s, counts: Int64s | None) -> Int64s:
    return np.ones(len(times), np.int64) if counts is None else counts.astype(np.int64)
