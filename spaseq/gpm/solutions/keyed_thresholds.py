"""Joins by key and comparison: solutions of events with the rows of a table.

The rows of the table are sorted by the variables that both sides have, and among equal ones by a
bound. Each solution then asks for one range of them, so the join makes only the pairs that also
pass the comparison. What the table adds to a solution is translated when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.budget import current_budget
from spaseq.compiled.arrays import Float64s, Indices, Int32s, Int64s
from spaseq.expr.doubles import always_decide, doubles_of
from spaseq.gpm.kernels.keyed_ranges import pairs, ranges
from spaseq.gpm.solutions.joins import KeyIndex
from spaseq.gpm.solutions.lexicon import translated
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.gpm.solutions.thresholds import Comparison, Order, is_number, numbers_of
from spaseq.gpm.solutions.value_columns import lazily_merged
from spaseq.rdf.columns.distinct_rows import grouped_rows
from spaseq.rdf.columns.term_columns import NumberColumn, distinct_codes
from spaseq.rdf.columns.term_tables import SoughtTexts
from spaseq.rdf.terms.number_kinds import FLOAT
from spaseq.records import record


@record
class KeyedPairs:
    """Pairs as solutions, and the comparison that all of them may pass.

    With `is_decided` all of them do pass it.
    """

    solutions: Solutions
    comparison: Comparison
    is_decided: bool


@record
class _SortedTable:
    """The rows of a table in order of keys and bounds.

    `distinct` int32 [variables, keys] are the keys, and `keys` finds the number of one. The rows of
    key i stand from `starts[i]` to `starts[i + 1]`, with ascending `bounds`.
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
    """The table in order, which many batches ask for; None if a bound is no number."""
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
    """(the rows of `left` whose keys the table has, the number of each one's key)."""
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
    """The same, if the table has fewer keys: they are looked up in the batch's terms."""
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
