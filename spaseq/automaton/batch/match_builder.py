"""Builds matches, with their bindings, from the row numbers of the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice, pairwise, repeat
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.row_store import Chunk, RowStore
from spaseq.automaton.run.event_rows import GpmRow
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import (
    NO_LISTS,
    MatchedSolution,
    PartitionKey,
    SequenceMatch,
    SolutionReader,
    match_of,
    partition_of,
)
from spaseq.compiled.arrays import Bools, Bytes, Indices, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import distinct
from spaseq.records import record

Bindings: TypeAlias = tuple[Mapping[str, str], Mapping[str, tuple[str, ...]]]
"""The single variables of a match, and the lists of its group variables."""


@dataclass(slots=True)
class EnumeratedMatches:
    """m matches as the numbers of their rows.

    `rows` holds the matches one after the other. `ends` [m, 2 or more] has, for each match, its end
    in `rows` and the measure of its first event. `close` [m] is the close of its window, if a
    negated step in last place had to wait for it. `edges` are the kernel's edges that took the
    rows, if requested.
    """

    rows: Int64s
    ends: Int64s
    close: Int64s | None = None
    edges: Bytes | None = None

    def numbers(self) -> list[tuple[int, ...]]:
        """The row numbers of each match."""
        ends = self.ends[:, 0]
        rows = self.rows[: int(ends[-1])].tolist() if len(ends) else []
        return [tuple(rows[begin:end]) for begin, end in pairwise([0, *ends.tolist()])]

    def take(self, chosen: Sequence[int] | Indices) -> EnumeratedMatches:
        """Some of the matches, given by their positions; none of them waits."""
        ends = self.ends[chosen]
        lengths = np.diff(self.ends[:, 0], prepend=0)[chosen]
        begins, behind = ends[:, 0] - lengths, np.cumsum(lengths)
        places = np.arange(int(behind[-1])) + np.repeat(begins - behind + lengths, lengths)
        ends[:, 0] = behind
        return EnumeratedMatches(self.rows[places], ends)


class MatchBuilder:
    """Keeps the rows that partial matches have taken, its `store`; makes matches of row numbers."""

    def __init__(self, machine: Machine) -> None:
        variables = tuple(sorted({v for g in machine.gpms for v in g.variables}))
        self.store = RowStore(machine.gpms, variables)
        self._reader, self._partition = SolutionReader(machine), machine.partition
        streams = machine.streams
        self._by_iri = np.array([sorted(streams).index(iri) for iri in streams], np.int64)
        self._batch: Chunk | dict[int, GpmRow] | None = None  # a dict for single events
        self._known: dict[int, MatchedSolution] = {}  # of single events' rows in recent matches

    def begin(self, rows: SolutionBatch | Sequence[GpmRow], number: int) -> None:
        """Begin a batch, whose rows are numbered from `number` on."""
        if not isinstance(rows, SolutionBatch):
            self._batch = dict(enumerate(rows, number))
            return
        rows = replace(rows, numbers={})
        self._batch = Chunk(np.arange(number, number + len(rows)), rows)

    def end(self, taken: Bytes) -> None:
        """End the batch, and keep the rows for which `taken` [n] is 1."""
        assert self._batch is not None
        if isinstance(self._batch, dict):
            self._keep_single(self._batch, taken)
        else:
            kept = np.flatnonzero(taken.view(np.bool_))
            most = 2 * len(kept) > len(taken) or self._batch.is_small
            if len(kept):  # the others stay until rows are dropped
                self.store.add(self._batch if most else self._batch.part(kept))
        self._batch = None

    def _keep_single(self, batch: dict[int, GpmRow], taken: Bytes) -> None:
        """Keep rows of single events."""
        known = self._known
        self.store.add_rows(compress(batch.items(), taken.tolist()))
        if len(known) > thresholds.current.remembered_solutions:
            self._known = dict(
                islice(
                    known.items(), len(known) - thresholds.current.remembered_solutions // 2, None
                )
            )

    def rows(self, numbers: Int64s) -> dict[int, GpmRow]:
        """Rows by number."""
        if isinstance(self._batch, dict):
            return self.store.single_rows(set(numbers.tolist()), self._batch)
        return self.store.rows(distinct(numbers), self._batch)

    def columns(self, numbers: Int64s) -> SolutionBatch:
        """Rows, given by ascending number, as columns. No single events are being processed."""
        assert not isinstance(self._batch, dict)
        return self.store.columns(numbers, self._batch)

    def texts(self, numbers: Int64s, variable: str) -> list[str | None]:
        """The terms of a variable in rows, given by ascending number."""
        if isinstance(self._batch, dict):
            rows = self.store.single_rows(numbers.tolist(), self._batch)
            return [dict(self._reader.of(rows[n]).singles).get(variable) for n in numbers.tolist()]
        columns = self.store.columns(numbers, self._batch)
        return columns.texts(variable, np.arange(len(numbers)))

    def ranks(self, numbers: Int64s) -> Int64s:
        """The ranks of rows in the order of positions (docs/meaning.md#selection).

        `numbers` ascend. Rows of one event have equal ranks.
        """
        positions = self.store.positions(numbers, self._batch)
        positions[:, 2] = self._by_iri[positions[:, 2]]
        order = np.lexsort((positions[:, 2], positions[:, 1], positions[:, 0]))
        new = (np.diff(positions[order], axis=0) != 0).any(axis=1)
        rank = np.zeros(len(numbers), np.int64)
        rank[order[1:]] = np.cumsum(new)
        return rank

    def matches(self, enumerated: EnumeratedMatches) -> Iterator[SequenceMatch]:
        """Matches with their bindings, one by one. Their rows are in the batch, or in the store."""
        numbers, begin = enumerated.rows.tolist(), 0
        known = self._solutions_of(numbers, enumerated.rows)
        solutions, lists, grouped = [known[n] for n in numbers], NO_LISTS, self._reader.grouped
        closes = repeat(None) if enumerated.close is None else enumerated.close.tolist()
        for (end, origin, *_), close in zip(enumerated.ends.tolist(), closes, strict=False):
            of_match = solutions[begin:end]
            if grouped:
                lists = self._reader.lists(of_match)
            yield match_of((of_match, origin, lists, close))
            begin = end

    def _solutions_of(self, numbers: list[int], array: Int64s) -> dict[int, MatchedSolution]:
        read, batch = self._reader.of, self._batch
        if isinstance(batch, dict):
            known = self._known
            new = [n for n in numbers if n not in known]
            if new:
                rows = self.store.single_rows(new, batch)
                known.update((number, read(row)) for number, row in rows.items())
            return known
        single, columns = self.store.rows_and_columns(distinct(array), batch)
        solutions = {number: read(row) for number, row in single.items()}
        for some, batch_rows in columns:
            made = self._reader.of_columns(batch_rows)
            solutions.update(zip(some.tolist(), made, strict=True))
        return solutions

    def bindings(self, rows: Sequence[GpmRow]) -> Bindings:
        """The single variables and the lists of a match, given its rows."""
        solutions = [self._reader.of(row) for row in rows]
        singles = {v: x for solution in solutions for v, x in solution.singles}
        return singles, self._reader.lists(solutions)

    def partition_of(self, row: GpmRow) -> PartitionKey:
        """The partition of a row."""
        return partition_of(self._reader.of(row), self._partition)


_MATCH_BYTES, _ROW_BYTES = 128, 64
"""Estimated memory of a match as row numbers, for each match and for each of its rows."""

_LARGEST = 2**63


class TooManyMatches(Exception):
    """A batch has more matches than fit in memory; the last one has `events`."""

    def __init__(self, events: int) -> None:
        super().__init__()
        self.events = events


@record
class NumberedMatches:
    """The matches of one batch as row numbers, in pieces.

    Rows are numbered from `first` on, in the `order` of `BatchFrame`: sequencers with the same
    batches number the rows alike if their orders are equal. `built` makes some of the matches.
    """

    first: int
    order: Sequence[Indices]
    pieces: Sequence[EnumeratedMatches]
    builder: MatchBuilder

    def built(self, some: EnumeratedMatches) -> Iterator[SequenceMatch]:
        """Some of the matches, with their bindings."""
        return self.builder.matches(some)

    def is_like(self, other: NumberedMatches) -> bool:
        """Whether the rows of two sequencers' batches have the same numbers."""
        return (
            self.first == other.first
            and len(self.order) == len(other.order)
            and all(map(np.array_equal, self.order, other.order))
        )


def joined(pieces: Sequence[EnumeratedMatches]) -> EnumeratedMatches:
    """The matches of several stored pieces, none of which waits, as one piece."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return EnumeratedMatches(np.empty(0, np.int64), np.empty((0, 2), np.int64))
    ends = np.concatenate([piece.ends[:, :2] for piece in pieces])
    sizes = [len(piece.rows) for piece in pieces]
    ends[:, 0] += np.repeat(np.cumsum([0, *sizes[:-1]]), [len(piece.ends) for piece in pieces])
    return EnumeratedMatches(np.concatenate([piece.rows for piece in pieces]), ends)


def among(some: Int64s, others: Int64s) -> Bools:
    """A mask of the rows of `some` [n, w] that are rows of `others` [m, w], too."""
    both = np.concatenate([some, others])
    if not len(some) or not len(others):
        return np.zeros(len(some), np.bool_)
    both -= both.min()
    radix = int(both.max()) + 1
    codes, bound = both[:, 0], radix
    for column in both.T[1:]:
        if bound * radix >= _LARGEST:
            codes = np.unique(codes, return_inverse=True)[1]
            bound = len(both)
        codes, bound = codes * radix + column, bound * radix
    return np.isin(codes[: len(some)], codes[len(some) :])


def stored(pieces: Iterable[EnumeratedMatches], most_bytes: int) -> list[EnumeratedMatches]:
    """Copies of pieces that are valid only until the next one.

    Raises:
        TooManyMatches: the copies need more than `most_bytes`.
    """
    kept: list[EnumeratedMatches] = []
    for piece in pieces:
        if len(piece.ends):
            size = int(piece.ends[-1, 0])
            most_bytes -= _MATCH_BYTES * len(piece.ends) + _ROW_BYTES * size
            if most_bytes < 0:
                raise TooManyMatches(int(np.diff(piece.ends[:, 0], prepend=0)[-1]))
            kept.append(EnumeratedMatches(piece.rows[:size].copy(), piece.ends.copy()))
    return kept
