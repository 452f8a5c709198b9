"""Solutions of a bounded run in sorted runs, divided by bucket, and files for one machine.

The files, for a driver and workers on one machine, have runs of solutions, and blocks of answers
and messages.

Solutions that come in order are not sorted by time. Stage 2 takes the pieces of a bucket in the
order of their least times. Pieces are cut from sorted runs, so few of them overlap even if a stream
is out of order, and stage 2 holds only overlapping ones.

Stage 1 appends runs to a file as Arrow streams. Only the positions of their pieces travel to stage
2, which maps the file into memory. So no row passes through Java, and none is copied. Blocks are
pickles, in a directory that only its user can write.
"""

from __future__ import annotations

import errno
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

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
from spaseq.runtime.spark.rows.stage_rows import NO_SPLIT, PACKS, buckets, rows
from spaseq.stages.sorting import RowSorter


class StoredPiece(NamedTuple):
    """The rows `start` to `end` of the run at `offset` in a file, `size` bytes long.

    `group` is the group of their `unit`. `time` (ms) is the least of the rows, and `split` is the
    number of their split, or `NO_SPLIT`. Pieces of a group and bucket sort by time.
    """

    group: int
    bucket: int
    time: int
    unit: int
    split: int
    file: str
    offset: int
    size: int
    start: int
    end: int


class RunFile:
    """Appends runs to a file, which the first run creates."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None

    def write(
        self, groups: QueryGroups, unit: int, split: int, run: BucketRun
    ) -> list[StoredPiece]:
        """Append a run of a unit; return its pieces."""
        group, columns = groups.home[unit].first, groups.units.plans[unit].patterns.columns
        with disk_errors(self._path):
            if self._file is None:
                self._file = pa.OSFile(str(self._path), "wb")
            begin = self._file.tell()
            SolutionCodec(columns).write(run.rows, self._file)
            stored_at = str(self._path), begin, self._file.tell() - begin
        return [StoredPiece(group, p.bucket, p.time, unit, split, *stored_at, p.start, p.end)
                for p in run.pieces]  # fmt: skip

    def close(self) -> None:
        """Write the data that is still in memory."""
        if self._file is not None:
            with disk_errors(self._path):
                self._file.close()


class RunReader:
    """Reads the pieces of one query; pieces of a run share its terms."""

    def __init__(self, plan: QueryPlan) -> None:
        self._columns = plan.patterns.columns
        self._files: dict[str, Any] = {}
        self._last: tuple[str, int] | None = None
        self._rows: SolutionBatch | None = None

    def rows(self, piece: StoredPiece) -> SolutionBatch:
        """The rows of a piece; the file must last as long as they."""
        if self._rows is None or self._last != (piece.file, piece.offset):
            self._rows, self._last = self._run(piece), (piece.file, piece.offset)
        return self._rows.take(slice(piece.start, piece.end))

    def _run(self, piece: StoredPiece) -> SolutionBatch:
        with disk_errors(Path(piece.file)):
            if piece.file not in self._files:
                self._files[piece.file] = pa.memory_map(piece.file)
            self._files[piece.file].seek(piece.offset)
            data = self._files[piece.file].read_buffer(piece.size)
        return SolutionCodec(self._columns).decode(data)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn disk errors into RunErrors with the directory and the reason."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise RunError(f"cannot keep rows on disk in {path.parent}: {reason}") from error


class Blocks(NamedTuple):
    """The blocks of a file from byte `begin` to byte `end`."""

    file: str
    begin: int
    end: int

    def read(self) -> Iterator[Any]:
        """Each block. The file is open from the first one to the last one."""
        with disk_errors(Path(self.file)), open(self.file, "rb") as file:
            file.seek(self.begin)
            while file.tell() < self.end:
                yield pickle.load(file)


class StoredRow(NamedTuple):
    """A row of `OUTPUT`, whose payload is a separate block."""

    query: int
    order: str
    payload: Blocks

    def read(self) -> tuple[int, str, bytes]:
        """The row."""
        (payload,) = self.payload.read()
        return self.query, self.order, payload


class RowRun(NamedTuple):
    """Rows of `OUTPUT` of one query, in order."""

    query: int
    blocks: Blocks

    def read(self) -> Iterator[tuple[str, bytes]]:
        """(order, payload) of each row."""
        for order, payload in self.blocks.read():
            yield from zip(order, payload, strict=True)


@dataclass(slots=True)
class BlockFile:
    """Appends blocks to a file, which the first block creates."""

    path: Path
    _file: IO[bytes] | None = None

    def append(self, block: object) -> Blocks:
        """Append a block; return its position."""
        with disk_errors(self.path):
            if self._file is None:
                self._file = self.path.open("wb")
            begin = self._file.tell()
            pickle.dump(block, self._file, pickle.HIGHEST_PROTOCOL)
            return Blocks(str(self.path), begin, self._file.tell())

    def close(self) -> None:
        """Write the data that is still in memory."""
        if self._file is not None:
            with disk_errors(self.path):
                self._file.close()


@dataclass(slots=True)
class RowFile:
    """Appends rows of `OUTPUT` to a file; `runs` are its rows in order."""

    file: BlockFile
    runs: list[RowRun] = field(default_factory=list)
    _last: str = ""  # the order of the last row

    def append(self, query: int, order: Sequence[str], payload: Sequence[bytes]) -> None:
        """Append rows of a query, in order."""
        rows = thresholds.current.answer_rows
        for start in range(0, len(order), rows):
            part = slice(start, start + rows)
            stored_at = self.file.append((order[part], payload[part]))
            if self.runs and self.runs[-1].query == query and self._last <= order[start]:
                stored_at = stored_at._replace(begin=self.runs.pop().blocks.begin)
            self.runs.append(RowRun(query, stored_at))
            self._last = order[part][-1]

    def close(self) -> None:
        """Write the data that is still in memory."""
        self.file.close()


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


class Packer:
    """Makes rows of `PACKS` from one unit's solutions.

    Args:
        groups: the groups of the run.
        unit: the number of the unit.
        count: the number of buckets of stage 2.
        parts: the number of partitions of stage 2.
        split: the number of the solutions' split.
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
        """Add solutions; return rows of the runs that have ended."""
        return map(self._packed, self._runs.add(solutions))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Rows of the remaining runs."""
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
    """The partition of stage 2 for a bucket of a group."""
    return (bucket + group) % parts
