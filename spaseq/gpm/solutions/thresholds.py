"""Joins by comparison: each event's solutions with the rows of a table whose bounds they meet.

Without a key, the solutions of a batch are sorted by a variable's value once. A row of the table
selects a range of them, whatever the number of its bounds, so the cost of the join is the size of
its result, not the number of pairs.

With a key, the rows of the table are sorted by the variables that both sides have, and among equal
ones by a bound. Each solution then selects one range of them, so the join makes only the pairs that
also pass the comparison. The table's columns of a solution are translated lazily.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools, Float64s, Indices, Int32s, Int64s
from spaseq.expr.doubles import always_decide, doubles_of
from spaseq.gpm.kernels.keyed_ranges import pairs, ranges
from spaseq.gpm.solutions.joins import KeyIndex, Pairs, expanded
from spaseq.gpm.solutions.lazy_columns import translated
from spaseq.gpm.solutions.solutions import Solutions, lazily_merged
from spaseq.rdf.columns.solution_batch import grouped_rows
from spaseq.rdf.columns.term_columns import NumberColumn, distinct_codes
from spaseq.rdf.columns.term_tables import SoughtTexts
from spaseq.rdf.terms.number_kinds import FLOAT, OTHER, UNKNOWN
from spaseq.records import record

_WIDER = 2.0**-22
"""Relative shift of a bound, so that rounding to xsd:float hides no pair."""

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
        """(the first of the sorted numbers, the count) for each row of the table."""
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
    """The numbers of a table's column, cached for all batches."""
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


@record
class KeyedPairs:
    """Pairs as solutions, and the comparison that all of them may pass.

    With `is_decided` all of them pass it.
    """

    solutions: Solutions
    comparison: Comparison
    is_decided: bool


@record
class _SortedTable:
    """The rows of a table in order of keys and bounds.

    `distinct` int32 [variables, keys] are the keys, and `keys` finds the number of one. The rows of
    key i are `starts[i]` to `starts[i + 1]`, with ascending `bounds`.
    """

    distinct: Int32s
    keys: KeyIndex
    bounds: Float64s
    starts: Int64s
    order: Int64s


def joined_by_key_and_value(
    left: Solutions, right: Solutions, tests: Sequence[Comparison]
) -> KeyedPairs | None:
    """The pairs that agree in the variables of both and may pass the first comparison of order.

    None if there is no such comparison, or one side has values that need another join. `left` are
    solutions of events and `right` hold for every event.
    """
    shared = [v for v in left.columns if v in right.columns]
    test = next((test for test in tests if test.op != "="), None)
    if test is None or any(left.may_be_unbound(v) or right.may_be_unbound(v) for v in shared):
        return None
    bounds = numbers_of(right, test.right)
    table = _table(right, shared, test.right, bounds)
    if table is None:
        return None
    rows, key = _keys(table, left, right, shared)
    numbers = doubles_of(left.columns[test.left][rows], left.lexicon)
    if (numbers.kind == FLOAT).any():
        return None
    is_ordered = is_number(numbers)
    if not is_ordered.all():
        rows, key = rows[is_ordered], key[is_ordered]
        numbers = NumberColumn(numbers.value[is_ordered], numbers.kind[is_ordered])
    is_decided = always_decide(bounds, numbers)
    rows_found, others = _pairs(table, test.op, numbers.value, key, is_decided)
    merged = lazily_merged(left, right, rows[rows_found], others)
    return KeyedPairs(merged, test, is_decided)


def _table(
    right: Solutions, shared: Sequence[str], bound: str, bounds: NumberColumn
) -> _SortedTable | None:
    """The sorted table, cached for all batches; None if a bound is no number."""
    memo = ("sorted", bound, *shared)
    if memo not in right.memo:
        ordered = bool(is_number(bounds).all()) and not (bounds.kind == FLOAT).any()
        right.memo[memo] = _sorted(right, shared, bounds.value) if ordered else None
    table: _SortedTable | None = right.memo[memo]
    return table


def _sorted(right: Solutions, shared: Sequence[str], bounds: Float64s) -> _SortedTable:
    columns = [right.columns[v] for v in shared]
    first, key = grouped_rows(columns)
    distinct = np.stack([column[first] for column in columns])
    order = np.lexsort((bounds, key)).astype(np.int64)
    starts = np.searchsorted(key[order], np.arange(distinct.shape[1] + 1)).astype(np.int64)
    keys = KeyIndex([*distinct], distinct.shape[1])
    return _SortedTable(distinct, keys, bounds[order], starts, order)


def _keys(
    table: _SortedTable, left: Solutions, right: Solutions, shared: Sequence[str]
) -> tuple[Indices, Indices]:
    """(the rows of `left` whose keys the table has, the number of each key)."""
    if len(shared) > 1:
        columns = [left.columns[v] for v in shared]
        codes = [translated(c, left.lexicon, right.lexicon, add=False) for c in columns]
        return table.keys.match(codes, left.size)
    few = left.size < len(table.starts)
    numbers = (_looked_up if few else _numbered)(table, left, right, shared[0])
    rows = np.flatnonzero(numbers >= 0)
    return rows, numbers[rows].astype(np.int64)


def _looked_up(table: _SortedTable, left: Solutions, right: Solutions, variable: str) -> Indices:
    """The number of each solution's key, or -1: the batch's terms are looked up in the table."""
    used, where = distinct_codes(left.columns[variable], len(left.lexicon))
    distinct = translated(used.astype(np.int32), left.lexicon, right.lexicon, add=False)
    numbers = np.full(len(used), -1)
    places, known = table.keys.match([distinct], len(distinct))
    numbers[places] = known
    return numbers[where]


def _numbered(table: _SortedTable, left: Solutions, right: Solutions, variable: str) -> Int32s:
    """As `_looked_up`, if the table has fewer keys: they are looked up in the batch's terms."""
    memo = ("key texts", variable)
    if memo not in right.memo:
        right.memo[memo] = SoughtTexts(right.lexicon.take(table.distinct[0]))
    codes = left.lexicon.find(right.memo[memo])
    numbers = np.full(len(left.lexicon), -1, np.int32)  # by code
    known = np.flatnonzero(codes >= 0)
    numbers[codes[known]] = known
    return numbers[left.columns[variable]]


def _pairs(
    table: _SortedTable, op: Order, values: Float64s, key: Indices, is_decided: bool
) -> tuple[Int64s, Int64s]:
    """(the number of a value, a row of the table) of all pairs that may pass the comparison.

    Where float64 does not decide, rows whose bound is equal in float64 are among them.
    """
    includes, is_upper = not is_decided or op in ("<=", ">="), op in ("<", "<=")
    low, count = np.empty((2, len(key)), np.int64)
    total = ranges(key, values, table.starts, table.bounds, is_upper, includes, low, count)
    current_budget().spend(total)
    rows, others = np.empty((2, total), np.int64)
    pairs(low, count, table.order, rows, others)
    return rows, others
