"""Event counts by time, kept on disk."""

from __future__ import annotations

import tempfile
from typing import IO

import numpy as np

from spaseq.compiled.arrays import Int64s

SPILL_ROWS = 65_536
"""Rows of a run in memory before they go to disk."""


class CountHistory:
    """Event counts by time, as sorted runs of (time, count) rows on disk.

    The first run takes times in ascending order. Times before its end start further runs. Two
    neighbouring runs are merged when the later has half as many rows as the earlier, so there are
    few runs (as in a log-structured merge tree).
    """

    def __init__(self) -> None:
        self._runs: list[SortedRun] = [SortedRun()]

    def add(self, times: Int64s, counts: Int64s) -> None:
        """Add counts at ascending distinct times."""
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


class SortedRun:
    """One run of (time, count) rows, times ascending."""

    def __init__(self) -> None:
        self._times = SpilledColumn()
        self._counts = SpilledColumn()
        self.rows = 0
        self.last: int | None = None

    def append(self, times: Int64s, counts: Int64s) -> None:
        """Append rows with ascending times after `last`."""
        self._times.append(times)
        self._counts.append(counts)
        self.rows += len(times)
        self.last = int(times[-1])

    def counts(self, times: Int64s) -> Int64s:
        """The count of each time, 0 without a row."""
        found = np.zeros(len(times), np.int64)
        for own, counts in zip(self._times.parts(), self._counts.parts(), strict=True):
            at = np.minimum(np.searchsorted(own, times), len(own) - 1)
            found += np.where(own[at] == times, counts[at], 0)
        return found

    @staticmethod
    def merged(*runs: SortedRun) -> SortedRun:
        """One run of all rows; counts of equal times are added."""
        all_times = np.concatenate([part for run in runs for part in run._times.parts()])
        all_counts = np.concatenate([part for run in runs for part in run._counts.parts()])
        times, inverse = np.unique(all_times, return_inverse=True)
        counts = np.zeros(len(times), np.int64)
        np.add.at(counts, inverse, all_counts)
        run = SortedRun()
        run.append(times, counts)
        return run


class SpilledColumn:
    """A growing int64 column: the newest rows in memory, the others in a temporary file."""

    def __init__(self) -> None:
        self._tail: list[Int64s] = []
        self._tail_rows = 0
        self._file: IO[bytes] | None = None
        self._file_rows = 0

    def append(self, rows: Int64s) -> None:
        """Append rows."""
        self._tail.append(rows)
        self._tail_rows += len(rows)
        if self._tail_rows >= SPILL_ROWS:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="spaseq-instants-")  # noqa: SIM115
        for rows in self._tail:
            self._file.write(rows.astype(np.int64).tobytes())
        self._file.flush()
        self._file_rows += self._tail_rows
        self._tail, self._tail_rows = [], 0

    def parts(self) -> list[Int64s]:
        """All rows as at most two arrays; the first is memory-mapped."""
        if len(self._tail) > 1:
            self._tail = [np.concatenate(self._tail)]
        if self._file is None:
            return list(self._tail)
        mapped = np.memmap(self._file, np.int64, mode="r", shape=(self._file_rows,))
        return [mapped, *self._tail]
