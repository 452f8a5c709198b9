"""Solution sequences in columns of term codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from spaseq.budget import Budget, current_budget
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.gpm.solutions.lazy_columns import LazyColumns
from spaseq.gpm.solutions.lexicon import Lexicon, translated
from spaseq.rdf.columns.term_columns import UNBOUND
from spaseq.records import record


@record
class Solutions:
    """A sequence of `size` solution mappings.

    Attributes:
        size: number of solutions.
        event: int64 [size], index of each solution's event in its batch, ascending; None if the
            solutions hold for every event.
        columns: by variable, int32 [size] codes in the lexicon, or UNBOUND. A variable without a
            column is unbound in all solutions.
        lexicon: the terms of the codes.
        memo: cache of values derived from the columns, for solutions that many batches use.
    """

    size: int
    event: Int64s | None
    columns: Mapping[str, Int32s]
    lexicon: Lexicon
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def take(self, rows: Indices | Bools) -> Solutions:
        """The solutions at the given rows, in that order, or where a mask is true."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        columns = taken(self.columns, rows)
        size = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        event = None if self.event is None else self.event[rows]
        return Solutions(size, event, columns, self.lexicon)

    def only(self, variables: Iterable[str]) -> Solutions:
        """The same solutions with only these variables."""
        columns = only(self.columns, variables)
        return Solutions(self.size, self.event, columns, self.lexicon)

    def column(self, variable: str) -> Int32s:
        """A variable's codes [size]."""
        codes = self.columns.get(variable)
        return np.full(self.size, UNBOUND, np.int32) if codes is None else codes

    def may_be_unbound(self, variable: str) -> bool:
        """Whether some solution leaves a variable of `columns` unbound."""
        key = ("unbound", variable)
        if key not in self.memo:
            self.memo[key] = bool((self.columns[variable] == UNBOUND).any())
        may_be: bool = self.memo[key]
        return may_be

    def with_column(self, variable: str, codes: Int32s) -> Solutions:
        """The same solutions with one more variable."""
        columns = with_columns(self.columns, {variable: codes})
        return Solutions(self.size, self.event, columns, self.lexicon)

    def within(self, budget: Budget) -> Solutions:
        """The same solutions.

        Raises:
            LimitExceeded: an event has more than the budget allows.
        """
        most = budget.limits.solutions
        if self.size > most and self.event is not None:
            budget.spend(self.size)
            # Events ascend: if rows `most` places apart are of one event, it has too many.
            if (self.event[most:] == self.event[:-most]).any():
                budget.too_many()
        return self

    def spread(self, events: int, lexicon: Lexicon) -> Solutions:
        """Solutions that hold for every event, copied for each of `events` events."""
        if self.event is not None:
            return self
        current_budget().spend(self.size * events)
        event = np.repeat(np.arange(events, dtype=np.int64), self.size)
        columns = {
            v: np.tile(translated(c, self.lexicon, lexicon, add=True), events)
            for v, c in self.columns.items()
        }
        return Solutions(len(event), event, columns, lexicon)


def taken(columns: Mapping[str, Int32s], rows: Indices | Bools) -> Mapping[str, Int32s]:
    """All columns at some rows; columns that are made when they are read stay so."""
    if isinstance(columns, LazyColumns):
        return columns.take(rows)
    return {v: c[rows] for v, c in columns.items()}


def only(columns: Mapping[str, Int32s], variables: Iterable[str]) -> Mapping[str, Int32s]:
    """Some of the columns, as far as they are there; no column is read."""
    if isinstance(columns, LazyColumns):
        return columns.only(variables)
    return {v: columns[v] for v in variables if v in columns}


def with_columns(columns: Mapping[str, Int32s], more: Mapping[str, Int32s]) -> Mapping[str, Int32s]:
    """All columns and some more; no column is read."""
    if not isinstance(columns, LazyColumns):
        return {**columns, **more}
    for variable, codes in more.items():
        columns = columns.with_column(variable, codes)
    return columns


def unit(lexicon: Lexicon) -> Solutions:
    """The empty solution mapping, once (SPARQL's unit)."""
    return Solutions(1, None, {}, lexicon)


def none(lexicon: Lexicon, variables: Iterable[str] = (), *, of_events: bool = False) -> Solutions:
    """No solutions."""
    event = np.empty(0, np.int64) if of_events else None
    return Solutions(0, event, dict.fromkeys(variables, np.empty(0, np.int32)), lexicon)
