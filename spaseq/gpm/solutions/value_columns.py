"""Columns of solutions that are known without codes: rows of a table, and numbers.

Both become codes of a batch's terms only if somebody asks for codes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self, TypeAlias

import numpy as np

from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.expr.columns import scaled, whole_numbers_of
from spaseq.gpm.solutions.lazy_columns import LazyColumn, LazyColumns
from spaseq.gpm.solutions.lexicon import Lexicon, translated
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.term_columns import TermColumn, decimal_texts, integer_texts

Decimals: TypeAlias = tuple[Int64s, Bools]
"""(values [n] times 10**DECIMAL_PLACES, which of them are of xsd:decimal)."""


class TableColumn(LazyColumn):
    """What rows of a table that many batches use bind a variable to."""

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
    """A variable's column if it may not have been made yet."""
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
    """Whether no column of a table says that some variable has other values than whole ones."""
    columns = (lazy_column(solutions.columns, v) for v in variables if v in solutions.columns)
    return all(column.values is not None for column in columns if isinstance(column, TableColumn))


def lazily_merged(left: Solutions, right: Solutions, rows: Indices, others: Indices) -> Solutions:
    """The unions of paired solutions, whose columns are made when they are read."""
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
