"""Columns of xsd:integers that are values until somebody reads them as terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.rdf.columns.term_columns import (
    NumberColumn,
    RowSelection,
    TermColumn,
    TextArray,
    text_array,
)
from spaseq.rdf.terms.number_kinds import EXACT, OTHER
from spaseq.rdf.terms.vocabulary import XSD

INTEGER_TYPE = f"^^<{XSD}integer>"

NO_VALUE = -(2**63)
"""It stands for an unbound term among values."""


def integer_texts(values: Int64s) -> list[str]:
    """The N-Triples texts of whole numbers."""
    return [f'"{value}"{INTEGER_TYPE}' for value in values.tolist()]


class IntegerTerms(TermColumn):
    """n terms, each unbound or an xsd:integer in canonical form that is exact in float64.

    A computed number is mostly compared only. So `codes` and `terms` are made when they are first
    read. Pickled, it is a `TermColumn`.

    >>> IntegerTerms(np.array([7, NO_VALUE, -8])).texts(slice(1, 3))
    [None, '"-8"^^<http://www.w3.org/2001/XMLSchema#integer>']
    """

    __slots__ = ("_made", "values")

    values: Int64s
    _made: TermColumn | None

    def __init__(self, values: Int64s) -> None:
        """The column of values [n], NO_VALUE where unbound."""
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_made", None)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def codes(self) -> Int32s:
        """Positions in `terms`, int32 [n], or UNBOUND."""
        return self._column().codes

    @property
    def terms(self) -> TextArray:
        """The distinct texts."""
        return self._column().terms

    @property
    def arrays(self) -> list[Any]:
        return [self.values] if self._made is None else [self.values, *self._made.arrays]

    def _column(self) -> TermColumn:
        if self._made is None:
            distinct, which = np.unique(self.values, return_inverse=True)
            unbound = int(len(distinct) > 0 and distinct[0] == NO_VALUE)
            codes = (which.reshape(-1) - unbound).astype(np.int32)  # -1 is UNBOUND
            made = TermColumn(codes, text_array(integer_texts(distinct[unbound:])))
            object.__setattr__(self, "_made", made)
            return made
        return self._made

    def take(self, rows: RowSelection) -> TermColumn:
        return IntegerTerms(self.values[rows]) if self._made is None else self._made.take(rows)

    def compact(self) -> TermColumn:
        return self if self._made is None else self._made.compact()

    def numbers(self) -> NumberColumn:
        """The same terms as float64."""
        bound: Bools = self.values != NO_VALUE
        kind = np.where(bound, np.int8(EXACT), np.int8(OTHER))
        return NumberColumn(np.where(bound, self.values, np.nan), kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return TermColumn, (self.codes, self.terms)


def joined_terms(columns: Sequence[TermColumn]) -> TermColumn:
    """The rows of all columns, in order; values stay values."""
    if len(columns) == 1:
        return columns[0]
    values = [_values(column) for column in columns]
    if any(own is None for own in values) or not any(isinstance(c, IntegerTerms) for c in columns):
        return TermColumn.concat(columns)
    return IntegerTerms(np.concatenate([own for own in values if own is not None]))


def _values(column: TermColumn) -> Int64s | None:
    """The values of a column that has some, or is unbound; None for other columns."""
    if isinstance(column, IntegerTerms):
        return column.values
    return None if len(column.terms) else np.full(len(column), NO_VALUE)
