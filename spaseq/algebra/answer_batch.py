"""Answers of one SELECT query as columns, and of several queries as one batch, of which each query
has a part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise, repeat
from typing import Any, Self, TypeAlias, TypeVar, overload

import numpy as np

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.memory import collection_paused
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import UNBOUND, TermColumn, distinct_codes
from spaseq.records import record

PIECE = 8192
"""At most this many answers are made, or written, at a time."""

Lists: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

_answer = partial(tuple.__new__, Answer)
_item = partial(tuple.__new__, TraceItem)

Made = TypeVar("Made")


@record
class AnswerNames:
    """The names in the answers of one query.

    Attributes:
        gpms: names of the GPMs, by number.
        streams: IRIs of the streams, by number.
        projected: the variables of SELECT, in order.
        singles: the single variables of the sequence, by name.
        groups: the group variables of the sequence, by name.
    """

    gpms: tuple[str, ...]
    streams: tuple[str, ...]
    projected: tuple[str, ...]
    singles: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that answers are made of."""
        return tuple(sorted({*self.projected, *self.singles, *self.groups}))


@record
class Runs:
    """n runs of places, one after the other; `ends` [n] has the place behind each run."""

    places: Int64s
    ends: Int64s

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def begins(self) -> Int64s:
        """[n] where each run begins."""
        begins = np.zeros(len(self.ends), np.int64)
        begins[1:] = self.ends[:-1]
        return begins

    @property
    def lengths(self) -> Int64s:
        """[n] the lengths of the runs."""
        return self.ends - self.begins

    @property
    def width(self) -> int:
        """The length of all runs, if they are equally long; else 0."""
        n = len(self.ends)
        width = int(self.ends[-1]) // n if n else 0
        return width if n and (self.lengths == width).all() else 0

    @classmethod
    def concat(cls, runs: Sequence[Runs], sizes: Sequence[int]) -> Runs:
        """Concatenate runs, given the sizes of the arrays that their positions refer to."""
        first = np.cumsum([0, *sizes[:-1]])
        behind = np.cumsum([0, *(len(r.places) for r in runs[:-1])])
        return cls(
            np.concatenate([r.places + at for r, at in zip(runs, first, strict=True)]),
            np.concatenate([r.ends + at for r, at in zip(runs, behind, strict=True)]),
        )

    def part(self, begin: int, end: int) -> Runs:
        """The runs from `begin` on, before `end`."""
        first = int(self.ends[begin - 1]) if begin else 0
        last = int(self.ends[end - 1]) if end else 0
        return Runs(self.places[first:last], self.ends[begin:end] - first)

    def take(self, chosen: Indices) -> Runs:
        """Some of the runs, in this order."""
        lengths, width = self.lengths[chosen], self.width
        ends = np.cumsum(lengths)
        if width:
            return Runs(self.places.reshape(-1, width)[chosen].reshape(-1), ends)
        at = np.repeat(self.begins[chosen] - ends + lengths, lengths)
        return Runs(self.places[at + np.arange(len(at))], ends)


class AnswerSequence(Sequence[Answer]):
    """Answers in order, as columns. `Answer`s are made at their first use."""

    __slots__ = ()

    @abstractmethod
    def part(self, begin: int, end: int) -> Self:
        """The answers from `begin` on, before `end`."""

    @abstractmethod
    def made(self) -> Iterator[Answer]:
        """The answers, at least one; their parts are made at once, for all of them."""

    def parts(self, size: int | None = None) -> Iterator[Self]:
        """The answers in batches of at most this size, or of `PIECE`."""
        size = size or PIECE
        for begin in range(0, len(self), size):
            yield self.part(begin, min(begin + size, len(self)))

    def __iter__(self) -> Iterator[Answer]:
        for part in self.parts():
            yield from part.made()

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...
    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        chosen = range(len(self))[index]
        if isinstance(chosen, int):
            return next(self.part(chosen, chosen + 1).made())
        if not chosen:
            return []
        return [*self.part(chosen.start, chosen.stop)] if chosen.step == 1 else [*self][index]

    def __radd__(self, others: list[Answer]) -> list[Answer]:
        return [*others, *self]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerBatch(AnswerSequence):
    """n answers in order, without CONSTRUCT. `Answer`s are made at their first use.

    Attributes:
        names: the names in the answers.
        rows: the distinct solutions of the answers.
        solutions: for each answer, its solutions in the order of its match, as indexes of `rows`.
        trace: the same in the order of its trace, with each event once for each GPM.
    """

    names: AnswerNames
    rows: SolutionBatch
    solutions: Runs
    trace: Runs

    @classmethod
    def concat(cls, batches: Sequence[AnswerBatch]) -> AnswerBatch:
        """The answers of some batches of one query, at least one, one after the other."""
        if len(batches) == 1:
            return batches[0]
        names, sizes = batches[0].names, [len(b.rows) for b in batches]
        rows = SolutionBatch.concat([b.rows for b in batches], SolutionColumns(names.variables))
        solutions = Runs.concat([b.solutions for b in batches], sizes)
        if all(b.trace is b.solutions for b in batches):
            return cls(names, rows, solutions, solutions)
        return cls(names, rows, solutions, Runs.concat([b.trace for b in batches], sizes))

    def __len__(self) -> int:
        return len(self.trace)

    def part(self, begin: int, end: int) -> Self:
        solutions = self.solutions.part(begin, end)
        trace = solutions if self.trace is self.solutions else self.trace.part(begin, end)
        return self._reduced(solutions, trace)

    def take(self, chosen: Indices) -> Self:
        """Some of the answers, in this order, with the rows that they need."""
        solutions = self.solutions.take(chosen)
        trace = solutions if self.trace is self.solutions else self.trace.take(chosen)
        return self._reduced(solutions, trace)

    def _reduced(self, solutions: Runs, trace: Runs) -> Self:
        """Some answers with the rows that they need."""
        size = len(self.rows)
        used, places = distinct_codes(solutions.places, size)
        if len(used) == size:
            return replace(self, solutions=solutions, trace=trace)
        fewer = Runs(places.astype(np.int64), solutions.ends)
        if trace is not solutions:
            whole = np.zeros(size, np.int64)
            whole[used] = np.arange(len(used))
            trace = Runs(whole[trace.places], trace.ends)
        else:
            trace = fewer
        return replace(self, rows=self.rows.take(used), solutions=fewer, trace=trace)

    # --- columns ----------------------------------------------------------------------------------

    def column(self, variable: str) -> TermColumn:
        """The terms [n] that the answers bind a variable to; of a group variable the last ones."""
        column = self.rows.values[variable]
        codes, begins = column.codes[self.solutions.places], self.solutions.begins
        if variable not in self.names.groups:
            return TermColumn(np.maximum.reduceat(codes, begins), column.terms)
        bound = np.where(codes >= 0, np.arange(len(codes)), -1)
        last = np.maximum.reduceat(bound, begins)
        return TermColumn(np.where(last < 0, UNBOUND, codes[last]).astype(np.int32), column.terms)

    @property
    def end_times(self) -> Int64s:
        """[n] the times (ms) at which the answers end; they ascend."""
        return self.rows.time[self.last]

    @property
    def first(self) -> Int64s:
        """[n] the first row of each trace."""
        return self.trace.places[self.trace.begins]

    @property
    def last(self) -> Int64s:
        """[n] the last row of each trace."""
        return self.trace.places[self.trace.ends - 1]

    # --- answers ----------------------------------------------------------------------------------

    def made(self) -> Iterator[Answer]:
        names = self.names
        given = {v: self.column(v) for v in {*names.projected, *names.singles}}
        columns = {v: c for v, c in given.items() if c.codes.max(initial=UNBOUND) >= 0}
        projected = tuple(v for v in names.projected if v in columns)
        singles = tuple(v for v in names.singles if v in columns)
        pairs = {v: column.pairs(v) for v, column in columns.items()}
        optional = {v for v, column in columns.items() if column.codes.min() < 0}
        bindings = self._bindings(projected, pairs, optional)
        every = bindings if singles == projected else self._bindings(singles, pairs, optional)
        ends = self._instants(self.first), self._instants(self.last)
        fields = *ends, self._traces(), bindings, every, self._lists()
        return map(_answer, zip(*fields, repeat(None), repeat(None), strict=False))

    def _instants(self, rows: Int64s) -> Iterator[tuple[int, int]]:
        """The instants of some rows."""
        return zip(self.rows.time[rows].tolist(), self.rows.k[rows].tolist(), strict=True)

    def _traces(self) -> Iterator[tuple[TraceItem, ...]]:
        """The traces of all answers; equal items are one object."""
        rows, names = self.rows, self.names
        gpms = np.array(names.gpms, object)[rows.gpm]
        streams = np.array(names.streams, object)[rows.stream]
        columns = [column.tolist() for column in (rows.time, rows.k, gpms, streams)]
        fields = zip(*columns, rows.event.texts(), strict=True)
        made = np.fromiter(map(_item, fields), object, len(rows))
        items: list[TraceItem] = made[self.trace.places].tolist()
        width = self.trace.width
        if width:
            return zip(*[iter(items)] * width, strict=True)
        ends = pairwise([0, *self.trace.ends.tolist()])
        return (tuple(items[begin:end]) for begin, end in ends)

    def _bindings(
        self, names: Sequence[str], pairs: Mapping[str, Sequence[Any]], optional: Set[str]
    ) -> list[tuple[Any, ...]]:
        """For each answer, the pairs of some variables, without None; `optional` ones may be it."""
        if not names:
            return [()] * len(self)
        rows = [*zip(*[pairs[v] for v in names], strict=True)]
        if optional.isdisjoint(names):
            return rows
        return [tuple([pair for pair in row if pair is not None]) for row in rows]

    def _lists(self) -> list[Lists]:
        """For each answer, its group variables with their values."""
        groups = self.names.groups
        if not groups:
            return [()] * len(self)
        values: Mapping[str, list[str | None]] = {
            v: self.rows.values[v].take(self.solutions.places).texts() for v in groups
        }
        lists = []
        for begin, end in pairwise([0, *self.solutions.ends.tolist()]):
            named_values = (
                (v, tuple([x for x in xs[begin:end] if x is not None])) for v, xs in values.items()
            )
            lists.append(tuple([pair for pair in named_values if pair[1]]))
        return lists


class SharedAnswers:
    """A batch of answers with a cache of conversions for all queries."""

    def __init__(self, batch: AnswerBatch) -> None:
        self.batch = batch
        self._made: dict[Callable[[AnswerBatch], Any], Any] = {}

    def once(self, make: Callable[[AnswerBatch], Made]) -> Made:
        """The cached result of a function of the batch."""
        if make not in self._made:
            self._made[make] = make(self.batch)
        made: Made = self._made[make]
        return made

    @cached_property
    def answers(self) -> list[Answer]:
        """The answers one by one."""
        with collection_paused():
            return [*self.batch]


class SharedPart(Sequence[Answer]):
    """The answers of one query: `begin` to `end` of a batch, as a slice."""

    def __init__(self, whole: SharedAnswers, begin: int, end: int) -> None:
        self.whole, self.begin, self.end = whole, begin, end

    def __len__(self) -> int:
        return self.end - self.begin

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        return self._own()[index]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._own())

    def _own(self) -> list[Answer]:
        return self.whole.answers[self.begin : self.end]
