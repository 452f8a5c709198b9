"""Solutions that partial matches have taken, kept as columns until no match needs them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from spaseq.automaton.run.event_rows import Taken, batch_of
from spaseq.automaton.run.machine import GpmColumns
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionColumns

_SMALL = 1024
"""Chunks of fewer rows are joined."""
_BASE = 8
"""So many at a time."""
_FEW = 4
"""So many rows are sooner read one by one."""
_RECENT = 1024
"""Of more rows that came one by one, columns are made of the older half."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some solutions and their numbers [n], ascending."""

    numbers: Int64s
    rows: SolutionBatch

    def part(self, kept: Indices) -> Chunk:
        """The solutions at some positions, without terms that they do not use."""
        rows: Indices | slice = kept
        # What a window leaves is the end of a chunk. It need not be copied, but once only: more
        # than half of what is held on to is in use.
        if 2 * len(kept) > len(self.numbers) and self.numbers.base is None:
            first, last = int(kept[0]), int(kept[-1])
            rows = slice(first, last + 1) if last - first == len(kept) - 1 else kept
        return Chunk(self.numbers[rows], self.rows.take(rows).compact())

    def places(self, numbers: Int64s) -> Indices:
        """The positions of some of the solutions, given by number, ascending."""
        if not len(numbers):
            return np.empty(0, np.intp)
        first, last = np.searchsorted(self.numbers, numbers[[0, -1]]).tolist()
        if last - first == len(numbers) - 1:  # they are all that lie between the two
            return np.arange(first, last + 1)
        return np.searchsorted(self.numbers, numbers)


class RowStore:
    """Chunks of solutions in the order of their numbers; the latest ones, if they came one by one,
    by number."""

    __slots__ = ("_chunks", "_columns", "_gpms", "_recent", "_size")

    def __init__(self, gpms: Sequence[GpmColumns], variables: tuple[str, ...]) -> None:
        self._gpms = gpms
        self._columns = SolutionColumns(variables)
        self._chunks: list[Chunk] = []
        self._size = 0  # of all chunks
        self._recent: dict[int, Taken] = {}  # by ascending numbers

    def __len__(self) -> int:
        return self._size + len(self._recent)

    def nbytes(self) -> int:
        """Bytes of the columns; rows that came one by one are not counted."""
        return sum(chunk.numbers.nbytes + chunk.rows.nbytes for chunk in self._chunks)

    def add_row(self, number: int, taken: Taken) -> None:
        """Keep a solution with a number above all so far."""
        self._recent[number] = taken
        if len(self._recent) > _RECENT:
            self._settle(_RECENT // 2)

    def _settle(self, count: int) -> None:
        """Make columns of the oldest solutions that came one by one."""
        numbers = list(islice(self._recent, count))
        if numbers:
            rows = [self._recent.pop(number) for number in numbers]
            variables = [gpm.variables for gpm in self._gpms]
            columns = batch_of(rows, variables, self._columns)
            self._add(Chunk(np.array(numbers, np.int64), columns))

    def add(self, chunk: Chunk) -> None:
        """Keep solutions with numbers above all so far."""
        if len(chunk.numbers):
            self._settle(len(self._recent))
            self._add(chunk)

    def _add(self, chunk: Chunk) -> None:
        self._size += len(chunk.numbers)
        self._chunks.append(chunk)
        # Like the digits of a counter: each solution is copied a few times, however small the
        # batches are that it comes in, and most of them are taken in without any copying.
        while len(self._chunks) >= _BASE:
            sizes = [len(chunk.numbers) for chunk in self._chunks[-_BASE:]]
            if max(sizes) >= _BASE * sizes[-1] or sum(sizes) > _SMALL:
                break
            self._join_last(_BASE)

    def _join_last(self, count: int) -> None:
        last = self._chunks[-count:]
        self._chunks[-count:] = [
            Chunk(
                np.concatenate([chunk.numbers for chunk in last]),
                SolutionBatch.concat([chunk.rows for chunk in last], self._columns),
            )
        ]

    def keep(self, numbers: Int64s) -> None:
        """Drop all solutions but those with the given numbers, ascending."""
        first = next(iter(self._recent), None)
        if first is not None:
            late = numbers[np.searchsorted(numbers, first) :].tolist()
            self._recent = {number: self._recent[number] for number in late}
        chunks, self._chunks, self._size = self._chunks, [], 0
        for chunk in chunks:
            first, end = np.searchsorted(numbers, [chunk.numbers[0], chunk.numbers[-1] + 1])
            kept = chunk.places(numbers[first:end])
            if len(kept):
                self._add(chunk if len(kept) == len(chunk.numbers) else chunk.part(kept))

    def rows(self, numbers: Int64s, more: Chunk | None = None) -> dict[int, Taken]:
        """Solutions by number, each with its GPM; `numbers` ascending.

        `more` are solutions that are not kept (yet), with numbers above all that are.
        """
        found, columns = self.pieces(numbers, more)
        for some, rows in columns:
            self._read(some, rows, found)
        return found

    def pieces(
        self, numbers: Int64s, more: Chunk | None = None
    ) -> tuple[dict[int, Taken], list[tuple[Int64s, SolutionBatch]]]:
        """The same, those that are kept as columns as such: their numbers, and the rows."""
        recent = self._recent
        found = {n: recent[n] for n in numbers.tolist() if n in recent} if recent else {}
        if found:
            numbers = np.array([n for n in numbers.tolist() if n not in found], np.int64)
        columns = []
        for chunk, first, end in self._by_chunk(numbers, more):
            some = numbers[first:end]
            places = chunk.places(some)
            if len(places) <= _FEW:
                read = (self._row(chunk.rows, place) for place in places.tolist())
                found.update(zip(some.tolist(), read, strict=True))
            else:
                columns.append((some, chunk.rows.take(places)))
        return found, columns

    def taken(self, numbers: Iterable[int], more: Mapping[int, Taken]) -> dict[int, Taken]:
        """The same where the solutions that are not kept yet have come one by one."""
        found: dict[int, Taken] = {}
        older = []
        for number in numbers:
            row = more.get(number) or self._recent.get(number)
            if row is None:
                older.append(number)
            else:
                found[number] = row
        if older:
            found |= self.rows(np.array(sorted({*older}), np.int64))
        return found

    def positions(self, numbers: Int64s, more: Chunk | Mapping[int, Taken] | None) -> Int64s:
        """(time, k, stream) [n, 3] of solutions by number, ascending; `more` as above."""
        found = np.empty((len(numbers), 3), np.int64)
        single = dict(self._recent)
        if not isinstance(more, Chunk):
            single |= more or {}
            more = None
        alone = np.array([n in single for n in numbers.tolist()], np.bool_)
        rows = [single[n][1] for n in numbers[alone].tolist()]
        found[alone] = np.array([(r[1], r[2], r[0]) for r in rows], np.int64).reshape(-1, 3)
        others = np.flatnonzero(~alone)
        for chunk, first, end in self._by_chunk(numbers[others], more):
            places = chunk.places(numbers[others[first:end]])
            own = chunk.rows
            columns = (own.time[places], own.k[places], own.stream[places])
            found[others[first:end]] = np.stack(columns, axis=1)
        return found

    def _by_chunk(self, numbers: Int64s, more: Chunk | None) -> Iterator[tuple[Chunk, int, int]]:
        """The chunks that hold some numbers, ascending, with the range of those."""
        chunks = [*self._chunks] if more is None else [*self._chunks, more]
        begins = [int(c.numbers[0]) for c in chunks]
        at = 0
        while at < len(numbers):
            place = bisect_right(begins, int(numbers[at])) - 1
            end = len(numbers)
            if place + 1 < len(chunks):
                end = int(np.searchsorted(numbers, begins[place + 1]))
            yield chunks[place], at, end
            at = end

    def _read(self, numbers: Int64s, rows: SolutionBatch, found: dict[int, Taken]) -> None:
        place = rows.stream.tolist(), rows.time.tolist(), rows.k.tolist(), rows.event.to_pylist()
        for gpm in np.unique(rows.gpm).tolist():
            mine = np.flatnonzero(rows.gpm == gpm)
            columns = [rows.texts(v, mine) for v in self._gpms[gpm].variables]
            values = zip(*columns, strict=True) if columns else iter([()] * len(mine))
            for i, solution in zip(mine.tolist(), values, strict=True):
                row = place[0][i], place[1][i], place[2][i], place[3][i], solution
                found[int(numbers[i])] = gpm, row

    def _row(self, rows: SolutionBatch, place: int) -> Taken:
        gpm, one = int(rows.gpm[place]), slice(place, place + 1)
        solution = tuple([rows.texts(v, one)[0] for v in self._gpms[gpm].variables])
        time, k = int(rows.time[place]), int(rows.k[place])
        return gpm, (int(rows.stream[place]), time, k, rows.event[place].as_py(), solution)

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        self._settle(len(self._recent))
        return self._chunks, self._size

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        self._chunks, self._size = state
        self._recent = {}
