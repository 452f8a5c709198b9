"""Divides the solutions of a bounded run into runs in order of time, and each run by bucket.

Solutions that come in order are not sorted by time. Stage 2 takes the pieces of a bucket in the
order of their least times. Pieces are cut from sorted runs, so few of them overlap even if a stream
is out of order, and stage 2 holds only those that overlap.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Int32s
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.records import record
from spaseq.runtime.job.chaining import QueryGroups
from spaseq.runtime.spark.rows.stage_rows import NO_SPLIT, PACKS, buckets, rows
from spaseq.stages.sorting import RowSorter


@record
class Piece:
    """The rows `start` to `end` of a run, which are of one bucket; `time` is the least (ms)."""

    bucket: int
    time: int
    start: int
    end: int


@record
class BucketRun:
    """Solutions by bucket, and within a bucket in order of time."""

    rows: SolutionBatch
    pieces: tuple[Piece, ...]


class BucketRuns:
    """Makes runs from one query's solutions.

    A batch that begins after the end of the last one starts a new run, if the last one is large.

    Args:
        columns: the query's.
        key: the variables by which stage 2 is split, or None.
        count: the number of buckets of stage 2.
        kept_bytes: the first solutions wait together until they have as many bytes.
    """

    def __init__(
        self, columns: SolutionColumns, key: Sequence[str] | None, count: int, kept_bytes: int = 0
    ) -> None:
        self._columns, self._key, self._kept_bytes = columns, key, kept_bytes
        self._count = 1 if key is None else count
        self._most = thresholds.current.memory_rows
        self._enough = min(self._most, thresholds.current.bucket_rows * self._count)
        self._waiting = RowSorter(columns, sys.maxsize) if kept_bytes else None
        self._held: list[SolutionBatch] = []
        self._rows = 0
        self._end = 0  # the greatest time held

    def add(self, solutions: SolutionBatch) -> Iterator[BucketRun]:
        """Take solutions, at least one; the runs that have ended."""
        if self._waiting is None:
            yield from self._add(solutions)
            return
        self._waiting.add(solutions.compact())
        if self._waiting.added_bytes >= self._kept_bytes:
            yield from self._release()

    def leave_out(self, hopeless: Callable[[RowSorter], None]) -> None:
        """Let a function leave out solutions, unless some wait no more."""
        if self._waiting is not None:
            hopeless(self._waiting)

    def _release(self) -> Iterator[BucketRun]:
        """Take the solutions that wait."""
        waiting, self._waiting = self._waiting, None
        for solutions in waiting.held() if waiting is not None else ():
            yield from self._add(solutions)

    def _add(self, solutions: SolutionBatch) -> Iterator[BucketRun]:
        """Extend the present run, or end it and start the next one."""
        in_order = self._held and solutions.time.min() >= self._end
        if self._rows >= (self._enough if in_order else self._most):
            yield from self._ended()
        latest = int(solutions.time.max())
        self._end = max(self._end, latest) if self._held else latest
        self._held.append(solutions.compact())  # drops the text that was read
        self._rows += len(solutions)

    def rest(self) -> Iterator[BucketRun]:
        """The runs that are left."""
        yield from self._release()
        yield from self._ended()

    def _ended(self) -> Iterator[BucketRun]:
        """The present run, which ends."""
        if not self._held:
            return
        run = SolutionBatch.concat(self._held, self._columns)
        self._held, self._rows = [], 0
        if (run.time[1:] < run.time[:-1]).any():
            run = run.take(np.argsort(run.time, kind="stable"))
        bucket = buckets(run, self._key, self._count)
        if bucket.any():
            order = np.argsort(bucket, kind="stable")
            run, bucket = run.take(order), bucket[order]
        yield BucketRun(run, tuple(_pieces(run, bucket)))


def _pieces(run: SolutionBatch, bucket: Int32s) -> Iterator[Piece]:
    edges = [0, *(np.flatnonzero(bucket[1:] != bucket[:-1]) + 1).tolist(), len(bucket)]
    for first, last in pairwise(edges):
        size = min(thresholds.current.sorted_rows, last - first)
        for start in range(first, last, size):
            end = min(start + size, last)
            yield Piece(int(bucket[first]), int(run.time[start]), start, end)


class Packer:
    """Makes rows of `PACKS` from one unit's solutions.

    Args:
        groups: those of the run.
        unit: its number.
        count: the number of buckets of stage 2.
        parts: the number of partitions of stage 2.
        split: the number of the split that the solutions are of.
    """

    def __init__(
        self,
        groups: QueryGroups,
        unit: int,
        count: int,
        parts: int,
        split: int = NO_SPLIT,
    ) -> None:
        columns = groups.units.plans[unit].patterns.columns
        self._unit, self._group = unit, groups.home[unit].first
        self._codec, self._parts, self._split = SolutionCodec(columns), parts, split
        self._runs = BucketRuns(columns, groups.key(unit), count)

    def add(self, solutions: SolutionBatch) -> Iterator[pa.RecordBatch]:
        """Take solutions; rows of the runs that have ended."""
        return map(self._packed, self._runs.add(solutions))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Rows of the runs that are left."""
        return map(self._packed, self._runs.rest())

    def _packed(self, run: BucketRun) -> pa.RecordBatch:
        return rows(
            PACKS,
            len(run.pieces),
            query=self._group,
            unit=self._unit,
            split=self._split,
            bucket=[p.bucket for p in run.pieces],
            part=[part_of(self._group, p.bucket, self._parts) for p in run.pieces],
            time=[p.time for p in run.pieces],
            payload=[self._codec.encode(run.rows.take(slice(p.start, p.end))) for p in run.pieces],
        )


def part_of(group: int, bucket: int, parts: int) -> int:
    """The partition of stage 2 that a bucket of a group is in."""
    return (bucket + group) % parts
