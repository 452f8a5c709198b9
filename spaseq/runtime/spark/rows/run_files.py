"""Files for a driver and workers on one machine: runs of solutions, and blocks of answers and
messages.

Stage 1 appends runs to a file as Arrow streams. Only the places of their pieces travel to stage 2,
which maps the file into memory. So no row passes through Java, and none is copied. Blocks are
pickles, in a directory that only its user can write.
"""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from spaseq import thresholds
from spaseq.errors import RunError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.runtime.job.chaining import QueryGroups
from spaseq.runtime.spark.rows.bucket_runs import BucketRun


class StoredPiece(NamedTuple):
    """The rows `start` to `end` of the run at `offset` in a file, `size` bytes long.

    `group` is the group of the `unit` that they are of. `time` (ms) is the least of the rows, and
    `split` is the number of the split that they are of, or `NO_SPLIT`. Pieces of a group and bucket
    sort by time.
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
    """Appends runs to a file, which is made with the first run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None

    def write(
        self, groups: QueryGroups, unit: int, split: int, run: BucketRun
    ) -> list[StoredPiece]:
        """Append a run of a unit; its pieces."""
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
        """Write what is still in memory."""
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
    """Raise failures of the disk as RunErrors that name the directory and the reason."""
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
    """A row of `OUTPUT`, whose payload is a block by itself."""

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
    """Appends blocks to a file, which is made with the first block."""

    path: Path
    _file: IO[bytes] | None = None

    def append(self, block: object) -> Blocks:
        """Append a block; its place."""
        with disk_errors(self.path):
            if self._file is None:
                self._file = self.path.open("wb")
            begin = self._file.tell()
            pickle.dump(block, self._file, pickle.HIGHEST_PROTOCOL)
            return Blocks(str(self.path), begin, self._file.tell())

    def close(self) -> None:
        """Write what is still in memory."""
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
        """Write what is still in memory."""
        self.file.close()
