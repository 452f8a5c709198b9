"""Matches as the engine gets them, whichever evaluator has found them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.algebra.answers import TraceItem
from spaseq.automaton.event_rows import Taken
from spaseq.automaton.machine import Machine
from spaseq.rdf.batches import SolutionBatch
from spaseq.rdf.columns import TermColumn

PartitionKey: TypeAlias = tuple[str | None, ...]

Binding: TypeAlias = tuple[str, str]
"""A variable and its term."""

REMEMBERED = 1024
"""Of so many solutions that came one by one the parts are remembered."""

_NO_LISTS: Mapping[str, tuple[str, ...]] = {}


class Part(NamedTuple):
    """What one solution is in a match: its GPM, its event, its bindings of single variables, the
    partition's first, and those of group variables."""

    gpm: int
    item: TraceItem
    singles: tuple[Binding, ...]
    groups: tuple[Binding, ...]


@dataclass(slots=True)
class Match:
    """A match, and the partition it was found in; `close` is the close of its window if a negation
    in last place had to wait for it."""

    partition: PartitionKey
    parts: Sequence[Part]
    origin: int  # measure of its first event
    lists: Mapping[str, tuple[str, ...]]  # values of group variables
    close: int | None = None


_part = partial(tuple.__new__, Part)
_item = partial(tuple.__new__, TraceItem)


class Parts:
    """Makes parts of the solutions of one query."""

    def __init__(self, machine: Machine) -> None:
        owner = machine.program.owner
        self._names, self._streams = machine.names, machine.streams
        self._singles, self._groups = [], []
        places = {v: i for i, v in enumerate(machine.partition)}
        for gpm in machine.gpms:
            columns = sorted(enumerate(gpm.variables), key=lambda c: places.get(c[1], len(places)))
            self._singles.append([(i, v) for i, v in columns if v not in owner])
            self._groups.append([(i, v) for i, v in columns if v in owner])
        self._grouped = any(self._groups)

    def lists(self, parts: Iterable[Part]) -> Mapping[str, tuple[str, ...]]:
        """The values of a match's group variables, in order."""
        if not self._grouped:
            return _NO_LISTS
        lists: dict[str, list[str]] = {}
        for part in parts:
            for variable, value in part.groups:
                lists.setdefault(variable, []).append(value)
        return {variable: tuple(values) for variable, values in lists.items()}

    def of(self, taken: Taken) -> Part:
        """The part of a solution, given with its GPM."""
        gpm, (stream, time, k, event, values) = taken
        item = _item((time, k, self._names[gpm], self._streams[stream], event))
        singles = [(v, x) for i, v in self._singles[gpm] if (x := values[i]) is not None]
        groups = [(v, x) for i, v in self._groups[gpm] if (x := values[i]) is not None]
        return _part((gpm, item, tuple(singles), tuple(groups)))

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
            singles, groups = (
                _bindings([v for _, v in own[gpm]], rows, mine)
                for own in (self._singles, self._groups)
            )
            made = map(_part, zip(repeat(gpm), items[mine].tolist(), singles, groups))
            found[mine] = np.fromiter(made, object, len(mine))
        parts: list[Part] = found.tolist()
        return parts


def _bindings(
    variables: Sequence[str], rows: SolutionBatch, mine: npt.NDArray[np.intp]
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
