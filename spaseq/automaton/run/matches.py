"""Matches as the engine gets them, whichever evaluator has found them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from spaseq.algebra.answers import TraceItem
from spaseq.automaton.run.event_rows import Taken
from spaseq.automaton.run.machine import Machine
from spaseq.compiled.arrays import Indices
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn

T = TypeVar("T")

PartitionKey: TypeAlias = tuple[str | None, ...]

Binding: TypeAlias = tuple[str, str]
"""A variable and its term."""

REMEMBERED = 1024
"""Of so many solutions that came one by one the parts are remembered."""

NO_LISTS: Mapping[str, tuple[str, ...]] = {}


class Part(NamedTuple):
    """What one solution is in a match: its GPM, its event, its bindings of single variables, the
    partition's first, and those of group variables. Parts of one `kind` bind the same single
    variables, in the same order."""

    gpm: int
    item: TraceItem
    singles: tuple[Binding, ...]
    groups: tuple[Binding, ...]
    kind: int


class SequenceMatch(NamedTuple):
    """A match; `close` is the close of its window if a negation in last place had to wait for
    it."""

    parts: Sequence[Part]
    origin: int  # measure of its first event
    lists: Mapping[str, tuple[str, ...]]  # values of group variables
    close: int | None = None


match_of = partial(tuple.__new__, SequenceMatch)
"""A match, of all its fields: sooner than by a call of `SequenceMatch`, and there are many."""

_part = partial(tuple.__new__, Part)
_item = partial(tuple.__new__, TraceItem)


def partition_of(part: Part, variables: Sequence[str]) -> PartitionKey:
    """The partition that a solution lies in, given PARTITION BY's variables."""
    return tuple([x for v, x in part.singles[: len(variables)] if v in variables])


def picker(places: Sequence[int]) -> Callable[[Sequence[T]], tuple[T, ...]]:
    """What takes the items at some places of a sequence."""
    match places:
        case ():
            return lambda items: ()
        case (place,):
            return lambda items: (items[place],)
    return itemgetter(*places)


@dataclass(frozen=True, slots=True)
class _Variables:
    """Some of a GPM's variables, and what takes their values from a solution's."""

    names: tuple[str, ...]
    values: Callable[[Sequence[str | None]], tuple[str | None, ...]]

    @classmethod
    def of(cls, columns: Iterable[tuple[int, str]]) -> _Variables:
        chosen = [*columns]
        return cls(tuple([v for _, v in chosen]), picker(tuple([i for i, _ in chosen])))


class Parts:
    """Makes parts of the solutions of one query."""

    def __init__(self, machine: Machine) -> None:
        owner = machine.program.owner
        self._names, self._streams = machine.names, machine.streams
        self._singles, self._groups = [], []
        places = {v: i for i, v in enumerate(machine.partition)}
        for gpm in machine.gpms:
            columns = sorted(enumerate(gpm.variables), key=lambda c: places.get(c[1], len(places)))
            self._singles.append(_Variables.of(c for c in columns if c[1] not in owner))
            self._groups.append(_Variables.of(c for c in columns if c[1] in owner))
        self._kinds: dict[tuple[str, ...], int] = {}
        self._usual = [self._kind(own.names) for own in self._singles]  # nothing is unbound
        self.grouped = any(own.names for own in self._groups)

    def _kind(self, names: tuple[str, ...]) -> int:
        return self._kinds.setdefault(names, len(self._kinds))

    def lists(self, parts: Iterable[Part]) -> Mapping[str, tuple[str, ...]]:
        """The values of a match's group variables, in order."""
        if not self.grouped:
            return NO_LISTS
        lists: dict[str, list[str]] = {}
        for part in parts:
            for variable, value in part.groups:
                lists.setdefault(variable, []).append(value)
        return {variable: tuple(values) for variable, values in lists.items()}

    def of(self, taken: Taken) -> Part:
        """The part of a solution, given with its GPM."""
        gpm, (stream, time, k, event, values) = taken
        item = _item((time, k, self._names[gpm], self._streams[stream], event))
        single, group, kind = self._singles[gpm], self._groups[gpm], self._usual[gpm]
        singles = tuple(zip(single.names, single.values(values), strict=True))
        groups = tuple(zip(group.names, group.values(values), strict=True)) if group.names else ()
        if None in values:
            singles, groups = _bound(singles), _bound(groups)
            kind = self._kind(tuple([v for v, _ in singles]))
        return _part((gpm, item, singles, groups, kind))

    def of_columns(self, rows: SolutionBatch) -> list[Part]:
        """The parts of n solutions."""
        streams = np.array(self._streams, object)[rows.stream]
        names = np.array(self._names, object)[rows.gpm]
        place = (rows.time, rows.k, names, streams)
        columns = [*(column.tolist() for column in place), rows.event.to_pylist()]
        items = np.fromiter(map(_item, zip(*columns, strict=True)), object, len(rows))
        found = np.empty(len(rows), object)
        for gpm in np.unique(rows.gpm).tolist():
            mine = np.flatnonzero(rows.gpm == gpm)
            made = map(_part, self._fields(gpm, items[mine].tolist(), rows, mine))
            found[mine] = np.fromiter(made, object, len(mine))
        parts: list[Part] = found.tolist()
        return parts

    def _fields(
        self, gpm: int, items: list[TraceItem], rows: SolutionBatch, mine: Indices
    ) -> Iterable[tuple[object, ...]]:
        """The parts of a GPM's solutions, as plain tuples."""
        names = self._singles[gpm].names
        singles, groups = (_bindings(own, rows, mine) for own in (names, self._groups[gpm].names))
        kinds: Iterable[int] = repeat(self._usual[gpm])
        if len(names) > min(map(len, singles)):
            kinds = [self._kind(tuple([v for v, _ in row])) for row in singles]
        return zip(repeat(gpm), items, singles, groups, kinds)


def _bound(pairs: Iterable[tuple[str, str | None]]) -> tuple[Binding, ...]:
    return tuple([(v, x) for v, x in pairs if x is not None])


def _bindings(
    variables: Sequence[str], rows: SolutionBatch, mine: Indices
) -> list[tuple[Binding, ...]]:
    """What some rows bind variables to."""
    if not variables:
        return [()] * len(mine)
    columns = [rows.values[v].take(mine) for v in variables]
    pairs = [_pairs(v, column) for v, column in zip(variables, columns, strict=True)]
    found = [*zip(*pairs, strict=True)]
    if all((column.codes >= 0).all() for column in columns):
        return found
    return [tuple([pair for pair in row if pair is not None]) for row in found]


def _pairs(variable: str, column: TermColumn) -> list[Binding]:
    """The bindings of a column, None where it is unbound; equal ones are one object."""
    column = column.compact()
    texts = column.terms.to_pylist()
    table = np.empty(len(texts) + 1, object)  # the last is UNBOUND's
    table[:-1] = np.fromiter(zip(repeat(variable), texts), object, len(texts))
    pairs: list[Binding] = table[column.codes].tolist()
    return pairs
