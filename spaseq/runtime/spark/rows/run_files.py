"""Solutions of a bounded run in sorted runs, divided by bucket; rows of tasks in files.

Solutions that come in order are not sorted by time. Stage 2 takes the pieces of a bucket in the
order of their least times. Pieces are cut from sorted runs, so few of them overlap even if a stream
is out of order, and stage 2 holds only overlapping ones.

If driver and workers are on one machine, a task writes runs and payloads to a file. Only their
places travel to stage 2, which maps the file into memory. So no row passes through Java, and none
is copied.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Int32s
from spaseq.errors import RunError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.records import record
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.rows.stage_rows import Pack, buckets
from spaseq.stages.sorting import RowSorter


class Stored(NamedTuple):
    """Bytes `begin` to `end` of a file."""

    file: str
    begin: int
    end: int

    def read(self) -> bytes:
        """The bytes."""
        with disk_errors(Path(self.file)), open(self.file, "rb") as file:
            file.seek(self.begin)
            return file.read(self.end - self.begin)


class StoredSolutions(NamedTuple):
    """The rows `start` to `end` of a run in a file."""

    run: Stored
    start: int
    end: int


class TaskFile:
    """Appends runs and payloads of a task to a file, which the first one creates."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None

    def run(self, rows: SolutionBatch, codec: SolutionCodec) -> Stored:
        """Append a run."""
        return self._written(lambda file: codec.write(rows, file))

    def payload(self, data: bytes) -> Stored:
        """Append a payload."""
        return self._written(lambda file: file.write(data))

    def _written(self, write: Callable[[Any], object]) -> Stored:
        with disk_errors(self._path):
            if self._file is None:
                self._file = pa.OSFile(str(self._path), "wb")
            begin = self._file.tell()
            write(self._file)
            return Stored(str(self._path), begin, self._file.tell())

    def close(self) -> None:
        """Write the data that is still in memory."""
        if self._file is not None:
            with disk_errors(self._path):
                self._file.close()


class PackReader:
    """Reads the solutions of packs; pieces of a run share its terms."""

    def __init__(self, plans: Mapping[int, QueryPlan]) -> None:
        self._plans = plans
        self._files: dict[str, Any] = {}
        self._last = dict[int, tuple[Stored, SolutionBatch]]()  # of each unit

    def rows(self, pack: Pack) -> SolutionBatch:
        """The solutions; a file must last as long as they."""
        stored, codec = pack.payload, SolutionCodec(self._plans[pack.unit].patterns.columns)
        if isinstance(stored, bytes):
            return codec.decode(stored)
        if pack.unit not in self._last or self._last[pack.unit][0] != stored.run:
            self._last[pack.unit] = stored.run, codec.decode(self._mapped(stored.run))
        return self._last[pack.unit][1].take(slice(stored.start, stored.end))

    def _mapped(self, run: Stored) -> Any:
        with disk_errors(Path(run.file)):
            if run.file not in self._files:
                self._files[run.file] = pa.memory_map(run.file)
            self._files[run.file].seek(run.begin)
            return self._files[run.file].read_buffer(run.end - run.begin)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn disk errors into RunErrors with the directory and the reason."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise RunError(f"cannot keep rows on disk in {path.parent}: {reason}") from error


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
        columns: the columns of the query.
        key: the variables by which stage 2 is split, or None.
        count: the number of buckets of stage 2.
        kept_bytes: the first solutions wait together until they have this many bytes.
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
        """Add solutions, at least one; return the runs that have ended."""
        if self._waiting is None:
            yield from self._add(solutions)
            return
        self._waiting.add(solutions.compact())
        if self._waiting.added_bytes >= self._kept_bytes:
            yield from self._release()

    def leave_out(self, hopeless: Callable[[RowSorter], None]) -> None:
        """Let a function leave out waiting solutions, if there are any."""
        if self._waiting is not None:
            hopeless(self._waiting)

    def _release(self) -> Iterator[BucketRun]:
        """Release the waiting solutions."""
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
        """The remaining runs."""
        yield from self._release()
        yield from self._ended()

    def _ended(self) -> Iterator[BucketRun]:
        """End the present run; return it."""
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


def packs_of(
    run: BucketRun, unit: int, groups: QueryGroups, parts: int, split: int, file: TaskFile | None
) -> list[Pack]:
    """The packs of a run, by piece.

    Args:
        run: the run.
        unit: the unit of its solutions.
        groups: the groups of units.
        parts: the number of partitions of stage 2.
        split: the number of the solutions' split.
        file: gets the run; without one, each pack has its solutions.
    """
    codec, group = SolutionCodec(groups.units.plans[unit].patterns.columns), groups.home[unit].first
    stored = None if file is None else file.run(run.rows, codec)
    made = []
    for p in run.pieces:
        part = part_of(group, p.bucket, parts)
        if stored is None:
            payload: Any = codec.encode(run.rows.take(slice(p.start, p.end)))
        else:
            payload = StoredSolutions(stored, p.start, p.end)
        made.append(Pack(part, group, p.bucket, p.time, unit, split, payload=payload))
    return made


def part_of(group: int, bucket: int, parts: int) -> int:
    """The partition of stage 2 for a bucket of a group."""
    return (bucket + group) % parts
