"""Columns of solutions that are known without codes: rows of a table, and whole numbers.

Both become codes of a batch's terms only if somebody asks for codes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.expr.columns import whole_numbers_of
from spaseq.gpm.solutions.lazy_columns import LazyColumn, LazyColumns
from spaseq.gpm.solutions.lexicon import Lexicon, translated
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.rdf.columns.term_columns import TermColumn, integer_texts


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
            found = whole_numbers_of(self._table.columns[self._variable], self._table.lexicon)
            self._table.memo[key] = found
        values: Int64s | None = self._table.memo[key]
        return None if values is None else values[self.rows]

    def _made(self) -> Int32s:
        codes = self._table.columns[self._variable][self.rows]
        return translated(codes, self._table.lexicon, self._lexicon, add=True)


class IntegerColumn(LazyColumn):
    """xsd:integers, as values [n] that are exact in float64."""

    __slots__ = ("_lexicon", "values")

    def __init__(self, values: Int64s, lexicon: Lexicon) -> None:
        super().__init__()
        self.values, self._lexicon = values, lexicon

    def take(self, rows: Indices | Bools) -> IntegerColumn:
        return IntegerColumn(self.values[rows], self._lexicon)

    @property
    def terms(self) -> TermColumn:
        """The terms [n]."""
        return TermColumn.of_integers(self.values)

    def _made(self) -> Int32s:
        distinct, which = np.unique(self.values, return_inverse=True)
        return self._lexicon.encode(integer_texts(distinct))[which]


def lazy_column(columns: Mapping[str, Int32s], variable: str) -> LazyColumn | None:
    """A variable's column if it may not have been made yet."""
    return columns.column(variable) if isinstance(columns, LazyColumns) else None


def known_terms(columns: Mapping[str, Int32s], variable: str) -> TermColumn | None:
    """A variable's terms if they are known without codes."""
    column = lazy_column(columns, variable)
    return None if column is None else column.terms


def values_of(found: Solutions, variable: str) -> Int64s | None:
    """A variable's values [size], None unless all are small whole numbers."""
    if variable not in found.columns:
        return None
    column = lazy_column(found.columns, variable)
    if isinstance(column, TableColumn | IntegerColumn):
        return column.values
    return whole_numbers_of(found.columns[variable], found.lexicon)
