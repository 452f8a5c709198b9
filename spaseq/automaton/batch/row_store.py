"""Stores the rows that partial matches have taken, as columns, until no match needs them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from spaseq import thresholds
from spaseq.automaton.program.gpm_columns import GpmColumns
from spaseq.automaton.run.event_rows import GpmRow, batch_of
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionColumns
from spaseq.records import record
from spaseq.stateful import Stateful


@record
class Chunk:
    """Some rows and their numbers [n], which ascend."""

    numbers: Int64s
    rows: SolutionBatch

    @property
    def is_small(self) -> bool:
        """Whether a part would hardly take less memory."""
        few = thresholds.current.few_rows
        return len(self.numbers) <= few and all(
            len(array) <= few * few
            for column in self.rows.values.values()
            for array in column.arrays
        )

    def part(self, kept: Indices) -> Chunk:
        """The rows at some places, without the terms that they do not use."""
        rows: Indices | slice = kept
        # A window usually leaves the end of a chunk. A slice of it needs no copy. Slice only once,
        # so that more than half of the memory behind it stays in use.
        if 2 * len(kept) > len(self.numbers) and self.numbers.base is None:
            first, last = int(kept[0]), int(kept[-1])
            rows = slice(first, last + 1) if last - first == len(kept) - 1 else kept
        return Chunk(self.numbers[rows], self.rows.take(rows).compact())

    def places(self, numbers: Int64s) -> Indices:
        """The places of some rows, given by ascending number."""
        if not len(numbers):
            return np.empty(0, np.intp)
        first, last = np.searchsorted(self.numbers, numbers[[0, -1]]).tolist()
        if last - first == len(numbers) - 1:  # all rows between the two
            return np.arange(first, last + 1)
        return np.searchsorted(self.numbers, numbers)

    def taken(self, numbers: Int64s) -> SolutionBatch:
        """Some rows, given by ascending number; they need no copy if no row between is left out."""
        places = self.places(numbers)
        if len(places) and places[-1] - places[0] == len(places) - 1:
            return self.rows.take(slice(int(places[0]), int(places[-1]) + 1))
        return self.rows.take(places)


class RowStore(Stateful):
    """Chunks of rows in the order of their numbers, and the recent rows of single events."""

    STATE = ("_chunks", "_size")

    __slots__ = ("_chunks", "_columns", "_gpms", "_recent", "_size")

    def __init__(self, gpms: Sequence[GpmColumns], variables: tuple[str, ...]) -> None:
        self._gpms = gpms
        self._columns = SolutionColumns(variables)
        self._chunks: list[Chunk] = []
        self._size = 0  # rows in all chunks
        self._recent: dict[int, GpmRow] = {}  # rows of single events by number, ascending

    def __len__(self) -> int:
        return self._size + len(self._recent)

    def nbytes(self) -> int:
        """Bytes of the columns; rows of single events are not counted."""
        return sum(chunk.numbers.nbytes + chunk.rows.nbytes for chunk in self._chunks)

    # --- adding and dropping ----------------------------------------------------------------------

    def add_rows(self, rows: Iterable[tuple[int, GpmRow]]) -> None:
        """Keep rows, given with their numbers, which are above all so far."""
        self._recent.update(rows)
        if len(self._recent) > thresholds.current.recent_rows:
            self._settle(thresholds.current.recent_rows // 2)

    def _settle(self, count: int) -> None:
        """Make columns of the oldest rows of single events."""
        numbers = list(islice(self._recent, count))
        if numbers:
            rows = [self._recent.pop(number) for number in numbers]
            variables = [*(gpm.variables for gpm in self._gpms), ()]  # no row of BARE is kept
            columns = batch_of(rows, variables, self._columns)
            self._add(Chunk(np.array(numbers, np.int64), columns))

    def add(self, chunk: Chunk) -> None:
        """Keep rows whose numbers are above all so far."""
        if len(chunk.numbers):
            self._settle(len(self._recent))
            self._add(chunk)

    def _add(self, chunk: Chunk) -> None:
        self._size += len(chunk.numbers)
        self._chunks.append(chunk)
        # Chunks join like the digits of a counter. Small batches cost a few copies of each row,
        # large batches none.
        while len(self._chunks) >= thresholds.current.joined_chunks:
            sizes = [
                len(chunk.numbers) for chunk in self._chunks[-thresholds.current.joined_chunks :]
            ]
            if (
                max(sizes) >= thresholds.current.joined_chunks * sizes[-1]
                or sum(sizes) > thresholds.current.joined_rows
            ):
                break
            self._join_last(thresholds.current.joined_chunks)

    def _join_last(self, count: int) -> None:
        last = self._chunks[-count:]
        self._chunks[-count:] = [
            Chunk(
                np.concatenate([chunk.numbers for chunk in last]),
                SolutionBatch.concat([chunk.rows for chunk in last], self._columns),
            )
        ]

    def keep(self, numbers: Int64s) -> None:
        """Drop all rows but the given ones; `numbers` ascend."""
        first = next(iter(self._recent), None)
        if first is not None:
            recent = numbers[np.searchsorted(numbers, first) :].tolist()
            self._recent = {number: self._recent[number] for number in recent}
        chunks, self._chunks, self._size = self._chunks, [], 0
        for chunk in chunks:
            first, end = np.searchsorted(numbers, [chunk.numbers[0], chunk.numbers[-1] + 1])
            kept = chunk.places(numbers[first:end])
            if len(kept):
                self._add(chunk if len(kept) == len(chunk.numbers) else chunk.part(kept))

    # --- reading ----------------------------------------------------------------------------------

    def rows(self, numbers: Int64s, batch: Chunk | None = None) -> dict[int, GpmRow]:
        """Rows by number; `numbers` ascend.

        `batch` holds rows that are not stored yet; their numbers are above all that are.
        """
        rows, columns = self.rows_and_columns(numbers, batch)
        for some, solutions in columns:
            self._read(some, solutions, rows)
        return rows

    def rows_and_columns(
        self, numbers: Int64s, batch: Chunk | None = None
    ) -> tuple[dict[int, GpmRow], list[tuple[Int64s, SolutionBatch]]]:
        """The same, but rows that are stored as columns stay columns: (their numbers, the rows)."""
        recent = self._recent
        rows = {n: recent[n] for n in numbers.tolist() if n in recent} if recent else {}
        if rows:
            numbers = np.array([n for n in numbers.tolist() if n not in rows], np.int64)
        columns = []
        for chunk, first, end in self._by_chunk(numbers, batch):
            some = numbers[first:end]
            places = chunk.places(some)
            if len(places) <= thresholds.current.rows_one_by_one:
                read = (self._row(chunk.rows, row) for row in places.tolist())
                rows.update(zip(some.tolist(), read, strict=True))
            else:
                columns.append((some, chunk.rows.take(places)))
        return rows, columns

    def columns(self, numbers: Int64s, batch: Chunk | None) -> SolutionBatch:
        """The same, all as columns, in the order of their numbers."""
        self._settle(len(self._recent))
        parts = [
            chunk.taken(numbers[first:end]) for chunk, first, end in self._by_chunk(numbers, batch)
        ]
        return SolutionBatch.concat(parts, self._columns)

    def single_rows(self, numbers: Iterable[int], batch: Mapping[int, GpmRow]) -> dict[int, GpmRow]:
        """The same where `batch` holds rows of single events."""
        rows: dict[int, GpmRow] = {}
        older = []
        for number in numbers:
            row = batch.get(number) or self._recent.get(number)
            if row is None:
                older.append(number)
            else:
                rows[number] = row
        if older:
            rows |= self.rows(np.array(sorted({*older}), np.int64))
        return rows

    def positions(self, numbers: Int64s, batch: Chunk | Mapping[int, GpmRow] | None) -> Int64s:
        """(time, k, stream) [n, 3] of rows, given by ascending number; `batch` as above."""
        positions = np.empty((len(numbers), 3), np.int64)
        single = dict(self._recent)
        if not isinstance(batch, Chunk):
            single |= batch or {}
            batch = None
        is_single = np.array([n in single for n in numbers.tolist()], np.bool_)
        rows = [single[n][1] for n in numbers[is_single].tolist()]
        positions[is_single] = np.array([(r[1], r[2], r[0]) for r in rows], np.int64).reshape(-1, 3)
        others = np.flatnonzero(~is_single)
        for chunk, first, end in self._by_chunk(numbers[others], batch):
            places = chunk.places(numbers[others[first:end]])
            stored = chunk.rows
            columns = (stored.time[places], stored.k[places], stored.stream[places])
            positions[others[first:end]] = np.stack(columns, axis=1)
        return positions

    def _by_chunk(self, numbers: Int64s, batch: Chunk | None) -> Iterator[tuple[Chunk, int, int]]:
        """Each chunk that holds some of the ascending numbers, with the range of its numbers."""
        chunks = [*self._chunks] if batch is None else [*self._chunks, batch]
        begins = [int(c.numbers[0]) for c in chunks]
        at = 0
        while at < len(numbers):
            chunk = bisect_right(begins, int(numbers[at])) - 1
            end = len(numbers)
            if chunk + 1 < len(chunks):
                end = int(np.searchsorted(numbers, begins[chunk + 1]))
            yield chunks[chunk], at, end
            at = end

    def _read(self, numbers: Int64s, batch: SolutionBatch, rows: dict[int, GpmRow]) -> None:
        """Add columns to `rows` as Python tuples."""
        stream, time, k = batch.stream.tolist(), batch.time.tolist(), batch.k.tolist()
        event = batch.event.texts()
        for gpm in np.unique(batch.gpm).tolist():
            mine = np.flatnonzero(batch.gpm == gpm)
            columns = [batch.texts(v, mine) for v in self._gpms[gpm].variables]
            values = zip(*columns, strict=True) if columns else iter([()] * len(mine))
            for i, solution in zip(mine.tolist(), values, strict=True):
                rows[int(numbers[i])] = gpm, (stream[i], time[i], k[i], event[i], solution)

    def _row(self, batch: SolutionBatch, row: int) -> GpmRow:
        gpm, one = int(batch.gpm[row]), slice(row, row + 1)
        solution = tuple([batch.texts(v, one)[0] for v in self._gpms[gpm].variables])
        time, k = int(batch.time[row]), int(batch.k[row])
        return gpm, (int(batch.stream[row]), time, k, batch.event[row], solution)

    def _before_snapshot(self) -> None:
        self._settle(len(self._recent))
