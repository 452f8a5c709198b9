"""Joins by place: solutions of events with solutions that hold for every event, by a spatial index.

The index is on the latter, and is kept for all batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spaseq.budget import current_budget
from spaseq.compiled.arrays import Indices
from spaseq.expr.columns import TermRows, extend_column
from spaseq.expr.compile import Options
from spaseq.expr.place_tests import PlaceJoin, PlaceTest
from spaseq.gpm.solutions.joins import expanded
from spaseq.gpm.solutions.solutions import Solutions, lazily_merged
from spaseq.lang import ast
from spaseq.rdf.columns.term_columns import TextArray, distinct_codes
from spaseq.records import record

if TYPE_CHECKING:
    from spaseq.places.geometries import GeometryColumn
    from spaseq.places.relations import PlaceIndex

Terms: TypeAlias = Sequence[str | None] | TextArray


def joined_by_place(
    left: Solutions, right: Solutions, join: PlaceJoin, options: Options
) -> Solutions:
    """The pairs of solutions that pass the test. The sides share no variable."""
    terms, which = _places(left, join.asking, options)
    table = indexed(right, join.indexed, options)
    asking, partners = table.pairs(terms, join)
    rows, number = _expanded(which, len(terms), asking)
    pairs = rows, partners[number]
    rows, number = _expanded(table.which, table.count, pairs[1])
    pairs = pairs[0][number], rows
    order = np.lexsort((pairs[1], pairs[0]))
    both = lazily_merged(left, right, pairs[0][order], pairs[1][order])
    return both.within(current_budget())


@record
class IndexedPlaces:
    """The `count` distinct places of an expression on solutions; `which` is each solution's."""

    index: PlaceIndex
    which: Indices
    count: int

    def pairs(self, terms: Terms, join: PlaceJoin) -> tuple[Indices, Indices]:
        """(numbers of terms, numbers of places) of the pairs that pass the test."""
        return self._passing(_column(terms), join.test, join.indexed_first)

    def rows(self, term: str | None, join: PlaceJoin) -> Sequence[int]:
        """The solutions that pass the test with one term."""
        passing = np.isin(self.which, self.pairs([term], join)[1])
        rows: Sequence[int] = np.flatnonzero(passing).tolist()
        return rows

    def _passing(
        self, others: GeometryColumn, test: PlaceTest, own_first: bool
    ) -> tuple[Indices, Indices]:
        if test.name == "distance":
            pairs = self.index.near(others, test.metres, test.also_equal)
        else:
            pairs = self.index.related(test.name, others, own_first)
        current_budget().spend(len(pairs[0]))
        return pairs


def indexed(solutions: Solutions, expr: ast.Expr, options: Options) -> IndexedPlaces:
    """The index on an expression's places; it is made once."""
    key = ("places", expr)
    if key not in solutions.memo:
        from spaseq.places.relations import PlaceIndex

        terms, which = _places(solutions, expr, options)
        solutions.memo[key] = IndexedPlaces(PlaceIndex(_column(terms)), which, len(terms))
    table: IndexedPlaces = solutions.memo[key]
    return table


def _column(terms: Terms) -> GeometryColumn:
    from spaseq.places.geometries import GeometryColumn

    return GeometryColumn.of(terms)


def _places(solutions: Solutions, expr: ast.Expr, options: Options) -> tuple[Terms, Indices]:
    """(the terms of an expression, the number of each solution's); all its variables are bound."""
    if not isinstance(expr, ast.Var):
        return extend_column(
            expr, TermRows(solutions.columns, solutions.lexicon, solutions.size), options
        )
    used, which = distinct_codes(solutions.columns[expr.name], len(solutions.lexicon))
    return solutions.lexicon.strings(used.astype(np.int32)), which


def _expanded(which: Indices, count: int, wanted: Indices) -> tuple[Indices, Indices]:
    """(rows whose number in `which` is wanted, the place in `wanted` of each)."""
    if len(which) == count and (which == np.arange(count)).all():
        return wanted, np.arange(len(wanted))
    order = np.argsort(which, kind="stable")
    counts = np.bincount(which, minlength=count)
    low = np.cumsum(counts) - counts
    number, at = expanded(low[wanted], counts[wanted])
    return order[at], number
