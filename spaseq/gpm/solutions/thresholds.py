"""Joins by comparison: each event's solutions with the rows of a table whose bounds they meet.

The solutions of a batch are sorted by a variable's value once. A row of the table asks for a range
of them, whatever the number of its bounds, so the join costs what it gives, and not every pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools, Float64s, Indices
from spaseq.expr.doubles import doubles_of
from spaseq.gpm.solutions.joins import Pairs, expanded
from spaseq.gpm.solutions.lexicon import translated
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.gpm.solutions.value_columns import lazily_merged
from spaseq.rdf.columns.term_columns import NumberColumn
from spaseq.rdf.terms.number_kinds import FLOAT, OTHER, UNKNOWN
from spaseq.records import record

_WIDER = 2.0**-22
"""How far, relative to a number, a bound moves so that rounding to xsd:float hides no pair."""


Order: TypeAlias = Literal["=", "<", "<=", ">", ">="]

FLIPPED: Mapping[Order, Order] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The same comparison with its sides exchanged."""


@record
class Comparison:
    """`left op right`: a variable of the left solutions, and one of the right ones."""

    left: str
    op: Order
    right: str


def joined_by_value(left: Solutions, right: Solutions, tests: Sequence[Comparison]) -> Solutions:
    """The pairs that may pass some comparisons, as solutions.

    All pairs that pass are among them. No two solutions share a variable, and the right ones hold
    for every event.
    """
    names = dict.fromkeys(test.left for test in tests)
    ranges = [_Ranges(left, right, [t for t in tests if t.left == name]) for name in names]
    pairs = min(ranges, key=lambda each: each.size).pairs()
    return lazily_merged(left, right, *pairs).within(current_budget())


class _Ranges:
    """The rows of `left` that meet the bounds of each row of `right` on one variable."""

    def __init__(self, left: Solutions, right: Solutions, tests: Sequence[Comparison]) -> None:
        self._tests = tests
        column = left.columns[tests[0].left]
        numbers = doubles_of(column, left.lexicon)
        bounds = [numbers_of(right, test.right) for test in tests]
        ordered = is_number(numbers)
        self._rest = np.flatnonzero(~ordered & (numbers.kind == OTHER))
        rows = np.flatnonzero(ordered)
        self._order = rows[np.argsort(numbers.value[rows], kind="stable")]
        values = numbers.value[self._order]
        wide = any(bool((n.kind == FLOAT).any()) for n in (numbers, *bounds))
        numeric: Bools = np.logical_and.reduce([is_number(n) for n in bounds])
        self._low, self._counts = self._numeric(values, bounds, numeric, wide)
        self._by_term(left, right, np.flatnonzero(~numeric))

    @property
    def size(self) -> int:
        """The number of pairs."""
        return int(self._counts.sum() + self._term_counts.sum()) + len(self._odd) * len(self._rest)

    def pairs(self) -> Pairs:
        """(rows of left, rows of right), by ascending left row."""
        row, index = expanded(self._low, self._counts)
        lefts, rights = [self._order[index]], [row]
        row, index = expanded(self._term_low, self._term_counts)
        lefts.append(self._term_order[index])
        rights.append(self._terms[row])
        current_budget().spend(len(self._odd) * len(self._rest))
        lefts.append(np.repeat(self._rest, len(self._odd)))
        rights.append(np.tile(self._odd, len(self._rest)))
        rows, others = np.concatenate(lefts), np.concatenate(rights)
        order = np.argsort(rows, kind="stable")
        return rows[order], others[order]

    def _numeric(
        self, values: Float64s, bounds: Sequence[NumberColumn], numeric: Bools, wide: bool
    ) -> tuple[Indices, Indices]:
        """(the first of the sorted numbers, how many) for each row of the table."""
        low = np.zeros(len(numeric), np.intp)
        high = np.full(len(numeric), len(values), np.intp)
        for test, bound in zip(self._tests, bounds, strict=True):
            margin = np.abs(bound.value) * _WIDER if wide else np.zeros(1)
            margin = np.where(np.isfinite(margin), margin, 0.0)
            if test.op != "<" and test.op != "<=":
                low = np.maximum(low, np.searchsorted(values, bound.value - margin, side="left"))
            if test.op != ">" and test.op != ">=":
                high = np.minimum(high, np.searchsorted(values, bound.value + margin, side="right"))
        return low, np.where(numeric, np.maximum(high - low, 0), 0)

    def _by_term(self, left: Solutions, right: Solutions, rows: Indices) -> None:
        """Rows with a bound that is no number: equal IRIs and strings, and any other pair."""
        equal = [test for test in self._tests if test.op == "="]
        is_term = np.zeros(len(rows), np.bool_)
        codes = left.columns[self._tests[0].left][self._rest]
        self._term_order = self._rest[np.argsort(codes, kind="stable")]
        wanted = np.empty(0, np.int32)
        if equal and len(rows):
            texts = right.lexicon.take(right.columns[equal[0].right][rows])
            is_term = np.fromiter(map(_is_equal_by_term, texts), np.bool_, len(rows))
            theirs = right.columns[equal[0].right][rows[is_term]]
            wanted = translated(theirs, right.lexicon, left.lexicon, add=False)
        self._terms, self._odd = rows[is_term], rows[~is_term]
        ordered = np.sort(codes, kind="stable")
        self._term_low = np.searchsorted(ordered, wanted, side="left")
        self._term_counts = np.searchsorted(ordered, wanted, side="right") - self._term_low


def numbers_of(solutions: Solutions, variable: str) -> NumberColumn:
    """The numbers of a table's column, which many batches ask for."""
    key = ("numbers", variable)
    if key not in solutions.memo:
        solutions.memo[key] = doubles_of(solutions.columns[variable], solutions.lexicon)
    numbers: NumberColumn = solutions.memo[key]
    return numbers


def is_number(numbers: NumberColumn) -> Bools:
    """Whether rows have a number or a time that can be ordered."""
    fits: Bools = (numbers.kind != OTHER) & (numbers.kind != UNKNOWN) & ~np.isnan(numbers.value)
    return fits


def _is_equal_by_term(text: str) -> bool:
    """Whether a term equals no other term: an IRI or a plain string."""
    return text.endswith('"') or (text.startswith("<") and not text.startswith("<<"))
