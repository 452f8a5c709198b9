"""Solution sequences in columns of term codes, and columns without codes.

The latter are rows of a table, or numbers. They become codes of a batch's terms on request only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Self, TypeAlias

import numpy as np

from spaseq.budget import Budget, current_budget
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.expr.columns import scaled, whole_numbers_of
from spaseq.gpm.solutions.lazy_columns import LazyColumn, LazyColumns, Lexicon, translated
from spaseq.rdf.columns.term_columns import UNBOUND, TermColumn, decimal_texts, integer_texts
from spaseq.records import record

Decimals: TypeAlias = tuple[Int64s, Bools]
"""(values [n] times 10**DECIMAL_PLACES, which of them are of xsd:decimal)."""


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
    """All columns at some rows; lazy columns stay lazy."""
    if isinstance(columns, LazyColumns):
        return columns.take(rows)
    return {v: c[rows] for v, c in columns.items()}


def only(columns: Mapping[str, Int32s], variables: Iterable[str]) -> Mapping[str, Int32s]:
    """Some of the columns, where present; no column is read."""
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


class TableColumn(LazyColumn):
    """A column of rows of a table that many batches use."""

    __slots__ = ("_lexicon", "_table", "_variable", "rows")

    def __init__(self, table: Solutions, variable: str, rows: Indices, lexicon: Lexicon) -> None:
        """`rows` [n] are rows of the table; codes are made in the lexicon of the batch."""
        super().__init__()
        self._table, self._variable, self.rows, self._lexicon = table, variable, rows, lexicon

    def take(self, rows: Indices | Bools) -> TableColumn:
        return TableColumn(self._table, self._variable, self.rows[rows], self._lexicon)

    @property
    def terms(self) -> TermColumn:
        """The terms [n]; all batches share their texts."""
        key = ("terms", self._variable)
        if key not in self._table.memo:
            codes, lexicon = self._table.columns[self._variable], self._table.lexicon
            made = TermColumn.of_codes(codes, len(lexicon), lexicon.strings)
            self._table.memo[key] = made
        column: TermColumn = self._table.memo[key]
        return column.take(self.rows)

    @property
    def values(self) -> Int64s | None:
        """The terms as whole numbers [n], None if some row of the table has none."""
        key = ("whole numbers", self._variable)
        if key not in self._table.memo:
            numbers = whole_numbers_of(self._table.columns[self._variable], self._table.lexicon)
            self._table.memo[key] = numbers
        values: Int64s | None = self._table.memo[key]
        return None if values is None else values[self.rows]

    @property
    def decimals(self) -> Decimals | None:
        """The terms as decimals, None if some row of the table has none."""
        key = ("decimals", self._variable)
        if key not in self._table.memo:
            self._table.memo[key] = _decimals_of(
                self._table.columns[self._variable], self._table.lexicon
            )
        decimals: Decimals | None = self._table.memo[key]
        return None if decimals is None else (decimals[0][self.rows], decimals[1][self.rows])

    def _made(self) -> Int32s:
        codes = self._table.columns[self._variable][self.rows]
        return translated(codes, self._table.lexicon, self._lexicon, add=True)


class _ValueColumn(LazyColumn):
    """Numbers as values [n]."""

    __slots__ = ("_lexicon", "values")

    def __init__(self, values: Int64s, lexicon: Lexicon) -> None:
        super().__init__()
        self.values, self._lexicon = values, lexicon

    def take(self, rows: Indices | Bools) -> Self:
        return type(self)(self.values[rows], self._lexicon)

    def _made(self) -> Int32s:
        distinct, which = np.unique(self.values, return_inverse=True)
        return self._lexicon.encode(self._texts(distinct))[which]

    @staticmethod
    @abstractmethod
    def _texts(values: Int64s) -> list[str]:
        """The N-Triples texts of values [n]."""


class IntegerColumn(_ValueColumn):
    """xsd:integers, as values [n] that are exact in float64."""

    __slots__ = ()
    _texts = staticmethod(integer_texts)

    @property
    def terms(self) -> TermColumn:
        """The terms [n]."""
        return TermColumn.of_integers(self.values)


class DecimalColumn(_ValueColumn):
    """xsd:decimals of at most 15 digits, as values [n], times 10**DECIMAL_PLACES."""

    __slots__ = ()
    _texts = staticmethod(decimal_texts)

    @property
    def terms(self) -> TermColumn:
        """The terms [n]."""
        return TermColumn.of_decimals(self.values)


def lazy_column(columns: Mapping[str, Int32s], variable: str) -> LazyColumn | None:
    """A variable's column if it may be lazy."""
    return columns.column(variable) if isinstance(columns, LazyColumns) else None


def known_terms(columns: Mapping[str, Int32s], variable: str) -> TermColumn | None:
    """A variable's terms if they are known without codes."""
    column = lazy_column(columns, variable)
    return None if column is None else column.terms


def values_of(solutions: Solutions, variable: str) -> Int64s | None:
    """A variable's values [size], None unless all are small whole numbers."""
    if variable not in solutions.columns:
        return None
    column = lazy_column(solutions.columns, variable)
    if isinstance(column, TableColumn | IntegerColumn):
        return column.values
    if isinstance(column, DecimalColumn):
        return None
    return whole_numbers_of(solutions.columns[variable], solutions.lexicon)


def decimals_of(solutions: Solutions, variable: str) -> Decimals | None:
    """A variable's values as decimals, None unless all are short decimals or whole numbers."""
    if variable not in solutions.columns:
        return None
    column = lazy_column(solutions.columns, variable)
    if isinstance(column, TableColumn):
        return column.decimals
    if isinstance(column, DecimalColumn):
        return column.values, np.ones(solutions.size, np.bool_)
    return _decimals_of(solutions.columns[variable], solutions.lexicon)


def _decimals_of(codes: Int32s, terms: Lexicon) -> Decimals | None:
    values, are_known, are_decimals = scaled(codes, terms)
    return (values, are_decimals) if are_known.all() else None


def may_be_whole(solutions: Solutions, variables: Sequence[str]) -> bool:
    """Whether all values of some variables may be whole numbers, judged by columns of tables."""
    columns = (lazy_column(solutions.columns, v) for v in variables if v in solutions.columns)
    return all(column.values is not None for column in columns if isinstance(column, TableColumn))


def lazily_merged(left: Solutions, right: Solutions, rows: Indices, others: Indices) -> Solutions:
    """The unions of paired solutions, with lazy columns."""
    columns = LazyColumns.of(left.columns).take(rows)
    for variable in right.columns:
        if variable not in columns:
            column = TableColumn(right, variable, others, left.lexicon)
            columns = columns.with_made(variable, column)
    # To know that a variable is bound, its column need not be read.
    bound: dict[object, bool] = {
        ("unbound", v): False for v in columns if not _may_be_unbound(left, right, v)
    }
    assert left.event is not None
    return Solutions(len(rows), left.event[rows], columns, left.lexicon, bound)


def _may_be_unbound(left: Solutions, right: Solutions, variable: str) -> bool:
    side = left if variable in left.columns else right
    return side.may_be_unbound(variable)
