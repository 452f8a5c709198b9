"""External sorting of rows by time, for bounded runs, and the reorder buffer of other runs.

Rows become sorted runs, which stay in memory up to a limit. Further runs are written to temporary
Arrow files. Rows that arrive in order extend one run, without a sort. Reading merges the runs. In
the reorder buffer rows wait until the watermark reaches them.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Indices
from spaseq.errors import RunError
from spaseq.memory import machine_memory
from spaseq.rdf.columns.event_batch import NO_NAMES, WHOLE, NameForm, common_form
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch, SolutionCodec
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.scratch import ScratchDirectory

BATCH_BYTES = 4096
"""Approximate memory of a batch beside its columns, in bytes."""


def room_for_rows() -> int:
    """Bytes that the sorters of this machine may keep in memory together."""
    return min(thresholds.current.memory_bytes, machine_memory() // 8)


class RowSorter:
    """Takes rows in any order, and gives batches in the order of time.

    Each `memory_rows` rows extend sorted runs. The runs stay in memory if they have at most
    `kept_bytes` together; further ones are written.
    """

    def __init__(
        self, columns: SolutionColumns, memory_rows: int | None = None, kept_bytes: int = 0
    ) -> None:
        self._columns = columns
        usual = thresholds.current.memory_rows
        self._memory_rows = usual if memory_rows is None else memory_rows
        self._room = kept_bytes
        self._buffer: list[SolutionBatch] = []
        self._rows = self._bytes = 0  # rows in the buffer; bytes that were added to it
        self._directory: ScratchDirectory | None = None
        self._runs: list[_RunWriter] = []
        self._kept: list[list[SolutionBatch]] = []

    def add(self, batch: SolutionBatch) -> None:
        """Add rows; this may write a run to disk."""
        if not len(batch):
            return
        self._buffer.append(batch)
        self._rows += len(batch)
        self._bytes += _bytes_of(batch) + BATCH_BYTES
        if self._rows >= self._memory_rows or self._bytes >= self._room > 0:
            self._extend_runs()

    @property
    def has_written(self) -> bool:
        """Whether some rows are on disk."""
        return bool(self._runs)

    @property
    def added_bytes(self) -> int:
        """Approximate bytes of the rows that are in no run yet."""
        return self._bytes

    def __len__(self) -> int:
        """The number of rows in memory."""
        return sum(map(len, self.held()))

    def gpms(self) -> Counter[int]:
        """Number of rows in memory of each GPM, BARE among them."""
        numbers = Counter[int]()
        for batch in self.held():
            counts = np.bincount(batch.gpm - BARE)
            numbers.update({int(gpm) + BARE: int(counts[gpm]) for gpm in np.flatnonzero(counts)})
        return numbers

    def keys(self, variables: tuple[str, ...]) -> SolutionBatch:
        """The rows in memory, with the columns of some variables only and no names of events."""
        rows = [
            replace(b, event=NO_NAMES, values={v: b.values[v] for v in variables}, numbers={})
            for b in self.held()
        ]
        return SolutionBatch.concat(rows, SolutionColumns(variables, ()))

    def keep(self, rows: Indices) -> None:
        """Drop all rows in memory except some, given by their ascending numbers in `keys`."""
        first, runs = 0, list[list[SolutionBatch]]()
        for run in (*self._kept, self._buffer):
            runs.append(_some(run, rows, first))
            first += sum(map(len, run))
        *self._kept, self._buffer = runs
        self._kept = [run for run in self._kept if run]
        self._rows = sum(map(len, self._buffer))

    def held(self) -> list[SolutionBatch]:
        """The batches in memory."""
        return [*chain.from_iterable(self._kept), *self._buffer]

    def batches(
        self, others: Sequence[Iterator[SolutionBatch]] = ()
    ) -> Generator[tuple[SolutionBatch, int]]:
        """All rows in batches, each with the time (ms) that ends it; `others` give rows in order.

        Each row of a batch is at or before the batch's time and after the time of the batch before.
        Within a batch the rows are in no particular order. The files are removed after the last
        batch, or when the iterator is closed.
        """
        try:
            for run in self._in_memory():
                self._keep(run)
            sources: list[Iterator[SolutionBatch]] = [run.read() for run in self._runs]
            sources += [_drained(run) for run in self._kept]
            sources += others
            yield from _merge(sources, self._columns)
        finally:
            self._runs, self._buffer, self._kept = [], [], []
            if self._directory is not None:
                self._directory.cleanup()

    def _in_memory(self) -> list[list[SolutionBatch]]:
        """Remove the rows in memory; return them as sorted runs."""
        batches, self._buffer, self._rows, self._bytes = self._buffer, [], 0, 0
        before = len(self._runs) + len(self._kept)
        runs = _runs_of(
            batches, max(1, min(thresholds.current.merged_runs - before, len(batches) // 2))
        )
        if runs is not None:
            return [_chunks(run, self._columns) for run in runs]
        rows = _sorted(SolutionBatch.concat(batches, self._columns))
        return [_slices(rows, thresholds.current.sorted_rows)]

    def _extend_runs(self) -> None:
        """Add the buffer to the runs: in memory if there is room, else on disk."""
        fits = self._bytes <= self._room
        self._room = max(0, self._room - self._bytes)
        for run in self._in_memory():
            if fits:
                self._keep(run)
            else:
                with _disk_errors():
                    self._write(run)

    def _keep(self, chunks: list[SolutionBatch]) -> None:
        run = next((r for r in self._kept if r[-1].time[-1] <= chunks[0].time[0]), None)
        if run is None:
            self._kept.append(chunks)
        else:
            run += chunks

    def _write(self, chunks: list[SolutionBatch]) -> None:
        first, last = int(chunks[0].time[0]), int(chunks[-1].time[-1])
        names = common_form([chunk.event for chunk in chunks])
        alike = (r for r in self._runs if r.names in (WHOLE, names))
        run = next((r for r in alike if r.last <= first), None)
        if run is None:
            if self._directory is None:
                self._directory = ScratchDirectory("sort")
            path = Path(self._directory.name) / f"run-{len(self._runs)}.arrow"
            run = _RunWriter(path, self._columns, names)
            self._runs.append(run)
        run.write(chunks)
        run.last = last


class _RunWriter:
    """Writes one sorted run to disk; `last` is the time of its last row.

    `names` is the form of the names of events in the file: their present form, or WHOLE.
    """

    def __init__(self, path: Path, columns: SolutionColumns, names: NameForm) -> None:
        self.last, self.names = -(2**63), names
        self._path, self._codec = path, SolutionCodec(columns, names)
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._file, self._codec.schema)

    def write(self, chunks: Sequence[SolutionBatch]) -> None:
        for chunk in chunks:
            self._writer.write_batch(self._codec.batch(chunk))

    def read(self) -> Iterator[SolutionBatch]:
        with _disk_errors():
            self._writer.close()
            self._file.close()
        with pa.OSFile(str(self._path), "rb") as file:
            for batch in pa.ipc.open_stream(file):
                yield self._codec.rows(batch)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Turn disk errors into RunErrors with the directory and the reason."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise RunError(f"cannot sort on disk in {tempfile.gettempdir()}: {reason}") from error


def _bytes_of(rows: SolutionBatch) -> int:
    """Approximate bytes of the rows alone, without terms that only other rows use."""
    total, size = rows.nbytes, len(rows)
    for array in {id(a): a for c in rows.values.values() for a in c.arrays[1:]}.values():
        if len(array) > size:
            total -= array.nbytes * (len(array) - size) // len(array)
    return total


def _some(batches: Sequence[SolutionBatch], rows: Indices, first: int) -> list[SolutionBatch]:
    """The rows of batches with these ascending numbers; the first row has the number `first`."""
    parts = list[SolutionBatch]()
    for batch in batches:
        begin, end = np.searchsorted(rows, (first, first + len(batch))).tolist()
        if end > begin:
            parts.append(batch.take(rows[begin:end] - first))
        first += len(batch)
    return parts


def _sorted(rows: SolutionBatch) -> SolutionBatch:
    """The rows in order of time; a stable sort."""
    if (rows.time[1:] >= rows.time[:-1]).all():
        return rows
    return rows.take(np.argsort(rows.time, kind="stable"))


def _runs_of(batches: Sequence[SolutionBatch], most: int) -> list[list[SolutionBatch]] | None:
    """Cut batches into runs in order of time; None if that takes more than `most` runs.

    A stream in order is one run, and so is a file that overlaps with the file before it.
    """
    runs: list[list[SolutionBatch]] = []
    for batch in map(_sorted, batches):
        run = next((r for r in runs if r[-1].time[-1] <= batch.time[0]), None)
        if run is not None:
            run.append(batch)
        elif len(runs) < most:
            runs.append([batch])
        else:
            return None
    return runs


def _chunks(run: Sequence[SolutionBatch], columns: SolutionColumns) -> list[SolutionBatch]:
    """The rows of a sorted run in chunks. Only batches smaller than a chunk are copied."""
    chunks: list[SolutionBatch] = []
    small: list[SolutionBatch] = []
    rows = 0
    for batch in run:
        small.append(batch)
        rows += len(batch)
        if rows >= thresholds.current.sorted_rows:
            chunks += _parts(small, columns)
            small, rows = [], 0
    return chunks + (_parts(small, columns) if small else [])


def _parts(batches: list[SolutionBatch], columns: SolutionColumns) -> list[SolutionBatch]:
    """Chunks of a group of batches, of which only the last may be large."""
    last = batches[-1]
    small = batches[:-1] if len(last) >= thresholds.current.sorted_rows else batches
    joined = SolutionBatch.concat(small, columns)
    return _slices(joined, thresholds.current.chunk_rows) + (
        _slices(last, thresholds.current.chunk_rows) if small is not batches else []
    )


def _slices(rows: SolutionBatch, size: int) -> list[SolutionBatch]:
    """The rows in about equal batches of at most `size`, which share the rows' terms."""
    if len(rows) <= size:
        return [rows] if len(rows) else []
    each = -(-len(rows) // -(-len(rows) // size))
    return [rows.take(slice(start, start + each)) for start in range(0, len(rows), each)]


@dataclass(slots=True)
class _Head:
    """The rows of a run that have been read and not returned yet."""

    source: Iterator[SolutionBatch]
    rows: SolutionBatch | None


def _merge(
    sources: Sequence[Iterator[SolutionBatch]], columns: SolutionColumns
) -> Iterator[tuple[SolutionBatch, int]]:
    heads = [_Head(s, next(s, None)) for s in sources]
    heads = [h for h in heads if h.rows is not None]
    while heads:
        # A run whose head ends first may continue after its head's last time.
        safe = min(int(h.rows.time[-1]) for h in heads if h.rows is not None)
        due = [_cut(head, safe) for head in heads]
        due += [_read_on(head, safe) for head in heads]
        heads = [h for h in heads if h.rows is not None]
        rows = SolutionBatch.concat([d for batches in due for d in batches], columns)
        if len(rows):
            yield rows, safe


def _drained(run: list[SolutionBatch]) -> Iterator[SolutionBatch]:
    """The batches of a run in memory, each released as it is read."""
    run.reverse()
    while run:
        yield run.pop()


def _cut(head: _Head, safe: int) -> list[SolutionBatch]:
    """Remove the rows at or before the safe time from a head."""
    rows = head.rows
    assert rows is not None
    end = int(np.searchsorted(rows.time, safe, side="right"))
    head.rows = rows.take(slice(end, None)) if end < len(rows) else None
    return [rows.take(slice(0, end))] if end else []


def _read_on(head: _Head, safe: int) -> list[SolutionBatch]:
    """Refill an empty head; return the rows up to the safe time."""
    due: list[SolutionBatch] = []
    while head.rows is None:
        head.rows = next(head.source, None)
        if head.rows is None:
            break
        due += _cut(head, safe)
    return due


class ReorderBuffer:
    """Takes rows in any order of time; returns the rows up to a time."""

    def __init__(self, columns: SolutionColumns) -> None:
        self._columns = columns
        self._batches: list[SolutionBatch] = []

    def __bool__(self) -> bool:
        return bool(self._batches)

    def push(self, rows: SolutionBatch) -> None:
        """Take rows."""
        if len(rows):
            self._batches.append(rows)

    def batches(self) -> list[SolutionBatch]:
        """The rows that wait."""
        return self._batches

    def take_all(self) -> list[SolutionBatch]:
        """Remove and return the waiting rows."""
        batches, self._batches = self._batches, []
        return batches

    def last_time(self) -> int:
        """The time (ms) of the last row."""
        return max(int(batch.time.max()) for batch in self._batches)

    def first_times(self) -> list[int]:
        """The time (ms) of the first row of each batch."""
        return [int(batch.time.min()) for batch in self._batches]

    def due(self, until: int) -> SolutionBatch:
        """Remove and return the rows at or before a time (ms)."""
        due: list[SolutionBatch] = []
        later: list[SolutionBatch] = []
        for batch in self._batches:
            if batch.time.max() <= until:
                due.append(batch)
                continue
            mask = batch.time <= until
            if not mask.any():
                later.append(batch)
            else:
                due.append(batch.take(np.flatnonzero(mask)))
                later.append(batch.take(np.flatnonzero(~mask)))
        self._batches = later
        return SolutionBatch.concat(due, self._columns)
