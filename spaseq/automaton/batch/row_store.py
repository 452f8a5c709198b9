"""The rows that compiled sequencers keep after a batch, as columns, and the numbers of term keys.

A row stays while a partial match needs it. Equal keys have equal numbers while they are in use.
Keys that are no longer in use are released, so memory does not grow with the number of distinct
keys ever seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from spaseq import thresholds
from spaseq.automaton.program.nfa import GpmColumns
from spaseq.automaton.run.event_rows import GpmRow, batch_of
from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    TermColumn,
    TextArray,
    distinct,
    distinct_codes,
)
from spaseq.records import record
from spaseq.stateful import Stateful

Key: TypeAlias = tuple[str | None, ...]
K = TypeVar("K")


class KeyNumbering(Stateful, Generic[K]):
    """Numbers keys from 0 on; a released number is used again."""

    STATE = ("_numbers", "_free", "_next")

    def __init__(self) -> None:
        self._numbers: dict[K, int] = {}
        self._free: list[int] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def bound(self) -> int:
        """All numbers are below this bound."""
        return self._next

    def number(self, key: K) -> int:
        """The number of one key."""
        number = self._numbers.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number, self._next = self._next, self._next + 1
            self._numbers[key] = number
        return number

    def _of_keys(self, keys: list[K]) -> list[int]:
        """The numbers of distinct keys."""
        numbers = [*map(self._numbers.get, keys)]
        new = [key for key, number in zip(keys, numbers, strict=True) if number is None]
        if not new:
            return numbers  # type: ignore[return-value]
        made = self._free[: -len(new) - 1 : -1]
        del self._free[len(self._free) - len(made) :]
        end = self._next + len(new) - len(made)
        made += range(self._next, end)
        self._next = end
        self._numbers.update(zip(new, made, strict=True))
        return [*map(self._numbers.__getitem__, keys)]

    def release(self, numbers: Iterable[int]) -> list[int]:
        """Release numbers; returns the ones that were in use."""
        gone = set(numbers)
        if not gone:
            return []
        freed = [*filter(gone.__contains__, self._numbers.values())]
        self._numbers = {key: n for key, n in self._numbers.items() if n not in gone}
        self._free += freed
        return freed


class Interner(KeyNumbering[Key]):
    """Numbers keys of one or more terms."""

    def __init__(self) -> None:
        super().__init__()
        self._known: Any = None  # the term table of `_of_code`
        self._of_code = np.empty(0, np.int64)
        self._keys: dict[int, Key] = {}  # of the first numbers of `_numbers`

    def numbers(self, columns: list[TermColumn], rows: int) -> Int64s:
        """The numbers of n rows of key terms."""
        if not columns:
            return np.full(rows, self.number(()), np.int64)
        if len(columns) == 1:
            return self._of_one(columns[0])
        return self._of_several(columns)

    def _of_one(self, column: TermColumn) -> Int64s:
        codes, size = column.codes, len(column.terms)
        if column.terms is not self._known:
            self._known, self._of_code = column.terms, np.full(size + 1, -1, np.int64)
            self._look_up(codes, column.terms)
            return self._of_code[codes]
        numbers: Int64s = self._of_code[codes]
        if len(numbers) and numbers.min() < 0:
            self._look_up(codes[numbers < 0], column.terms)
            numbers = self._of_code[codes]
        return numbers

    def _look_up(self, codes: Int32s, terms: TextArray) -> None:
        """Write the numbers of codes into `_of_code`."""
        used = _used(codes, len(terms))
        texts = TermColumn(used, terms).texts()
        self._of_code[used] = self._of_keys([*zip(texts, strict=True)])

    def _of_several(self, columns: list[TermColumn]) -> Int64s:
        key, size = np.zeros(len(columns[0].codes), np.int64), 1  # below size; equal for equal keys
        for column in columns:
            used, number = distinct_codes(column.codes, len(column.terms))
            used, key = distinct_codes(key * len(used) + number, size * len(used))
            size = len(used)
        row = np.empty(size, np.int64)  # some row of each key
        row[key] = np.arange(len(key))
        keys = [*zip(*(c.texts(row) for c in columns), strict=True)]
        result: Int64s = np.array(self._of_keys(keys), np.int64)[key]
        return result

    def release(self, numbers: Iterable[int]) -> list[int]:
        """Release numbers; returns the ones that were in use."""
        freed = super().release(numbers)
        if freed:
            self._known, self._keys = None, {}
        return freed

    def key(self, number: int) -> Key:
        """The key that a number in use stands for."""
        new = len(self._numbers) - len(self._keys)
        if new:
            latest = islice(reversed(self._numbers.items()), new)
            self._keys.update((number, key) for key, number in latest)
        return self._keys[number]

    def keys(self) -> dict[int, Key]:
        """Each key by its number."""
        return {number: key for key, number in self._numbers.items()}


def _used(codes: Int32s, limit: int) -> Int32s:
    """The distinct codes, -1 or more and below `limit`, of codes [n]."""
    if limit // (len(codes) + 1) >= thresholds.current.sparse_codes:
        return distinct(codes)
    mark = np.zeros(limit + 1, np.bool_)
    mark[codes] = True  # the last is that of -1
    used = np.flatnonzero(mark).astype(np.int32)
    used[used == limit] = UNBOUND
    return used


@record
class Chunk:
    """Some rows and their numbers [n], which ascend."""

    numbers: Int64s
    rows: SolutionBatch

    @property
    def is_small(self) -> bool:
        """Whether a part would save little memory."""
        few = thresholds.current.few_rows
        return len(self.numbers) <= few and all(
            len(array) <= few * few
            for column in self.rows.values.values()
            for array in column.arrays
        )

    def part(self, kept: Indices) -> Chunk:
        """The rows at some positions, without unused terms."""
        rows: Indices | slice = kept
        # A window usually leaves the end of a chunk. A slice of it needs no copy. Slice only once,
        # so that more than half of the memory behind it stays in use.
        if 2 * len(kept) > len(self.numbers) and self.numbers.base is None:
            first, last = int(kept[0]), int(kept[-1])
            rows = slice(first, last + 1) if last - first == len(kept) - 1 else kept
        return Chunk(self.numbers[rows], self.rows.take(rows).compact())

    def places(self, numbers: Int64s) -> Indices:
        """The positions of some rows, given by ascending number."""
        if not len(numbers):
            return np.empty(0, np.intp)
        first, last = np.searchsorted(self.numbers, numbers[[0, -1]]).tolist()
        if last - first == len(numbers) - 1:  # all rows between the two
            return np.arange(first, last + 1)
        return np.searchsorted(self.numbers, numbers)

    def taken(self, numbers: Int64s) -> SolutionBatch:
        """Some rows, given by ascending number; adjacent rows need no copy."""
        places = self.places(numbers)
        if len(places) and places[-1] - places[0] == len(places) - 1:
            return self.rows.take(slice(int(places[0]), int(places[-1]) + 1))
        return self.rows.take(places)


class RowStore(Stateful):
    """Chunks of rows in the order of their numbers, and the recent rows of single events."""

    STATE = ("_chunks", "_size")

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
        """Add rows, given with their numbers, which are above all so far."""
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
        """Add rows whose numbers are above all so far."""
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

        `batch` holds rows that are not stored yet; their numbers are above all stored ones.
        """
        rows, columns = self.rows_and_columns(numbers, batch)
        for some, solutions in columns:
            self._read(some, solutions, rows)
        return rows

    def rows_and_columns(
        self, numbers: Int64s, batch: Chunk | None = None
    ) -> tuple[dict[int, GpmRow], list[tuple[Int64s, SolutionBatch]]]:
        """As `rows`, but rows stored as columns stay columns: (their numbers, the rows)."""
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
        """As `rows`, all as columns, in the order of their numbers."""
        self._settle(len(self._recent))
        parts = [
            chunk.taken(numbers[first:end]) for chunk, first, end in self._by_chunk(numbers, batch)
        ]
        return SolutionBatch.concat(parts, self._columns)

    def single_rows(self, numbers: Iterable[int], batch: Mapping[int, GpmRow]) -> dict[int, GpmRow]:
        """As `rows`, where `batch` holds rows of single events."""
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
