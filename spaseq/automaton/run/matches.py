"""Matches of a whole sequence, with their bindings, whichever evaluator found them.

A match has three forms on its way. An evaluator of one partition finds a `PartitionMatch`, made of
raw rows. A sequencer turns it into a `SequenceMatch`, whose solutions carry their bindings. The
answer stage projects that to an `Answer`, which has only the parts that SELECT or CONSTRUCT needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from spaseq.algebra.answers import Instant, TraceItem
from spaseq.automaton.run.event_rows import GpmRow
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.runs import Duty, Row
from spaseq.compiled.arrays import Indices
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.records import record

RowsByGpm: TypeAlias = Mapping[int, list[Row]]
"""The solutions of one instant, by GPM index."""

NO_VALUES: Mapping[str, Any] = {}


@dataclass(slots=True)
class PartitionMatch:
    """A complete match as the evaluator of one partition finds it, made of raw rows.

    `singles` and `lists` hold the values of its variables if the evaluator knows them. Otherwise
    the trace determines them, as the steps of one repetition do not join. If negations or greedy
    loops in last place are still `pending`, the match waits for `close`, the close of its window.
    """

    first: Instant
    last: Instant
    origin: int  # measure of its first event
    trace: tuple[tuple[int, Row], ...]  # (GPM index, row)
    singles: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pending: tuple[Duty, ...] = ()
    close: int | None = None


T = TypeVar("T")

PartitionKey: TypeAlias = tuple[str | None, ...]

Binding: TypeAlias = tuple[str, str]
"""A variable and its term."""


NO_LISTS: Mapping[str, tuple[str, ...]] = {}


class MatchedSolution(NamedTuple):
    """One solution as a match holds it: GPM, event, and bindings.

    `singles` are the bindings of single variables, PARTITION BY's first; `groups` are the bindings
    of group variables. Solutions of one `shape` bind the same single variables in the same order.
    """

    gpm: int
    item: TraceItem
    singles: tuple[Binding, ...]
    groups: tuple[Binding, ...]
    shape: int


class SequenceMatch(NamedTuple):
    """A match of a query's whole sequence, with its bindings.

    `close` is the close of its window, if a negation in last place had to wait for it.
    """

    solutions: Sequence[MatchedSolution]
    origin: int  # measure of its first event
    lists: Mapping[str, tuple[str, ...]]  # values of group variables
    close: int | None = None


match_of = partial(tuple.__new__, SequenceMatch)
"""A match from a tuple of all its fields. There are many matches, and the class call is slower."""

_solution = partial(tuple.__new__, MatchedSolution)
_item = partial(tuple.__new__, TraceItem)


def partition_of(solution: MatchedSolution, variables: Sequence[str]) -> PartitionKey:
    """The partition of a solution, given PARTITION BY's variables."""
    return tuple([x for v, x in solution.singles[: len(variables)] if v in variables])


def picker(places: Sequence[int]) -> Callable[[Sequence[T]], tuple[T, ...]]:
    """A function that picks the items at some places of a sequence."""
    match places:
        case ():
            return lambda items: ()
        case (only,):
            return lambda items: (items[only],)
    return itemgetter(*places)


@record
class _Variables:
    """Some variables of a GPM, and a function that picks their values from a solution's values."""

    names: tuple[str, ...]
    values: Callable[[Sequence[str | None]], tuple[str | None, ...]]

    @classmethod
    def of(cls, columns: Iterable[tuple[int, str]]) -> _Variables:
        chosen = [*columns]
        return cls(tuple([v for _, v in chosen]), picker(tuple([i for i, _ in chosen])))


class SolutionReader:
    """Makes the `MatchedSolution`s of one query from rows or columns."""

    def __init__(self, machine: Machine) -> None:
        owner = machine.program.owner
        self._names, self._streams = machine.names, machine.streams
        self._singles, self._groups = [], []
        places = {v: i for i, v in enumerate(machine.partition)}
        for gpm in machine.gpms:
            columns = sorted(enumerate(gpm.variables), key=lambda c: places.get(c[1], len(places)))
            self._singles.append(_Variables.of(c for c in columns if c[1] not in owner))
            self._groups.append(_Variables.of(c for c in columns if c[1] in owner))
        self._shapes: dict[tuple[str, ...], int] = {}
        self._usual = [self._shape(names.names) for names in self._singles]  # nothing is unbound
        self.grouped = any(names.names for names in self._groups)

    def _shape(self, names: tuple[str, ...]) -> int:
        return self._shapes.setdefault(names, len(self._shapes))

    def lists(self, solutions: Iterable[MatchedSolution]) -> Mapping[str, tuple[str, ...]]:
        """The values of a match's group variables, in order."""
        if not self.grouped:
            return NO_LISTS
        lists: dict[str, list[str]] = {}
        for solution in solutions:
            for variable, value in solution.groups:
                lists.setdefault(variable, []).append(value)
        return {variable: tuple(values) for variable, values in lists.items()}

    def of(self, row: GpmRow) -> MatchedSolution:
        """The matched solution of one row."""
        gpm, (stream, time, k, event, values) = row
        item = _item((time, k, self._names[gpm], self._streams[stream], event))
        single, group, shape = self._singles[gpm], self._groups[gpm], self._usual[gpm]
        singles = tuple(zip(single.names, single.values(values), strict=True))
        groups = tuple(zip(group.names, group.values(values), strict=True)) if group.names else ()
        if None in values:
            singles, groups = _bound(singles), _bound(groups)
            shape = self._shape(tuple([v for v, _ in singles]))
        return _solution((gpm, item, singles, groups, shape))

    def of_columns(self, rows: SolutionBatch) -> list[MatchedSolution]:
        """The matched solutions of n rows."""
        streams = np.array(self._streams, object)[rows.stream]
        names = np.array(self._names, object)[rows.gpm]
        fields = (rows.time, rows.k, names, streams)
        columns = [*(column.tolist() for column in fields), rows.event.texts()]
        items = np.fromiter(map(_item, zip(*columns, strict=True)), object, len(rows))
        solutions = np.empty(len(rows), object)
        for gpm in np.unique(rows.gpm).tolist():
            mine = np.flatnonzero(rows.gpm == gpm)
            made = map(_solution, self._fields(gpm, items[mine].tolist(), rows, mine))
            solutions[mine] = np.fromiter(made, object, len(mine))
        result: list[MatchedSolution] = solutions.tolist()
        return result

    def _fields(
        self, gpm: int, items: list[TraceItem], rows: SolutionBatch, mine: Indices
    ) -> Iterable[tuple[object, ...]]:
        """The matched solutions of one GPM, as plain tuples."""
        names = self._singles[gpm].names
        singles, groups = (_bindings(own, rows, mine) for own in (names, self._groups[gpm].names))
        shapes: Iterable[int] = repeat(self._usual[gpm])
        if len(names) > min(map(len, singles)):
            shapes = [self._shape(tuple([v for v, _ in row])) for row in singles]
        return zip(repeat(gpm), items, singles, groups, shapes)


def _bound(pairs: Iterable[tuple[str, str | None]]) -> tuple[Binding, ...]:
    return tuple([(v, x) for v, x in pairs if x is not None])


def _bindings(
    variables: Sequence[str], rows: SolutionBatch, mine: Indices
) -> list[tuple[Binding, ...]]:
    """The bindings of some variables in some rows."""
    if not variables:
        return [()] * len(mine)
    columns = [rows.values[v].take(mine) for v in variables]
    pairs = [column.pairs(v) for v, column in zip(variables, columns, strict=True)]
    bindings = [*zip(*pairs, strict=True)]
    if all((column.codes >= 0).all() for column in columns):
        return bindings
    return [tuple([pair for pair in row if pair is not None]) for row in bindings]
