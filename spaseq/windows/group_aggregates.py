"""The aggregates of changed groups: doubles as numbers, others as texts of terms; and conditions
that a group surely fails, by approximations of its sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import ceil, floor

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.compiled.arrays import Bools, Float64s, Int32s, Int64s, Objects
from spaseq.expr.aggregates import Elements
from spaseq.expr.compile import set_function
from spaseq.expr.exact_aggregates import EXACT
from spaseq.expr.numbers import Float, divide, is_number, to_double
from spaseq.expr.values import decode, encode
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.gpm.solutions.modifiers import combined
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import conjuncts
from spaseq.limits import Limits
from spaseq.plan.pattern_plan import KeptGroups
from spaseq.plan.window_groups import beside_knowledge
from spaseq.records import record
from spaseq.windows.exact_numbers import (
    CanonicalDoubles,
    decimal_sums,
    rounded_quotients,
    whole_sums,
)
from spaseq.windows.group_tables import TrackedOperands
from spaseq.windows.kept_rows import KeptRows
from spaseq.windows.kernels.group_runs import (
    AVERAGE,
    BOTH,
    COUNT,
    DECIMAL,
    DISTINCT,
    DOUBLE,
    EXTREME,
    LIMBS,
    NONE,
    OTHER,
    SUM,
    VALUES,
    WHOLE,
    rows_of_groups,
)

_COMPARE = {"=": 0, ">": 1, ">=": 1, "<": 2, "<=": 2}
_SWAPPED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_COUNTS = (COUNT, VALUES, DISTINCT)


@record
class ChangedGroups:
    """m groups that changed at window events, from `kernels.group_runs.advanced`.

    `head` int64 [m, 5] has (window event, group, rows, number of the first row, whether it may
    pass), `numbers` int64 [m, sums, WIDTH] the digits of the sums and the rows by kind, and
    `fronts` int64 [m, q] the first rows of queues (-1 for none).
    """

    head: Int64s
    numbers: Int64s
    fronts: Int64s

    def __len__(self) -> int:
        return len(self.head)

    def take(self, rows: Int64s | Bools) -> ChangedGroups:
        """Some of them."""
        return ChangedGroups(self.head[rows], self.numbers[rows], self.fronts[rows])

    def part(self, first: int, end: int) -> ChangedGroups:
        """Some that follow each other."""
        some = slice(first, end)
        return ChangedGroups(self.head[some], self.numbers[some], self.fronts[some])


Exceeding = dict[int, str]
"""The groups, by their places, that exceed a limit, with the reasons."""


@record
class AggregateColumn:
    """An aggregate's values [m]: doubles, and the texts of other terms.

    `double` float64 [m] is NaN where there is none. `text` [m] is None there, too, if the aggregate
    is an error or exceeds a limit.
    """

    double: Float64s
    text: Objects


def aggregates(
    kept: KeptGroups,
    tracked: TrackedOperands,
    changed: ChangedGroups,
    rows: KeptRows,
    limits: Limits,
    exceeding: Exceeding,
) -> list[AggregateColumn]:
    """The values of each aggregate, by group."""
    return [
        _values(aggregate, operand, tracked, changed, rows, limits, exceeding)
        for (_, aggregate), operand in zip(kept.group.aggregates, kept.operands, strict=True)
    ]


def codes_of(values: Sequence[AggregateColumn]) -> tuple[Lexicon, list[Int32s]]:
    """(a lexicon, the codes [m] of each aggregate in it)."""
    there = [~np.isnan(column.double) for column in values]
    doubles = [column.double[known] for column, known in zip(values, there, strict=True)]
    table = CanonicalDoubles(np.unique(np.concatenate([np.empty(0), *doubles])))
    lexicon = Lexicon(table)
    columns = []
    for column, known, double in zip(values, there, doubles, strict=True):
        codes = encoded(lexicon, column.text.tolist())
        codes[known] = np.searchsorted(table.values, double)
        columns.append(codes)
    return lexicon, columns


def _values(
    aggregate: ast.Aggregate,
    operand: int | None,
    tracked: TrackedOperands,
    changed: ChangedGroups,
    rows: KeptRows,
    limits: Limits,
    exceeding: Exceeding,
) -> AggregateColumn:
    size = changed.head[:, 2]
    double = np.full(len(changed), np.nan)
    if operand is None:
        return AggregateColumn(double, _encoded(size))
    errors = changed.numbers[:, operand, BOTH + NONE]
    terms = tracked.distinct(aggregate, operand)
    numbers = changed.numbers[:, operand if terms is None else terms]
    digits, kinds = numbers[:, :BOTH], numbers[:, BOTH:]
    if aggregate.function == "COUNT":
        return AggregateColumn(double, _encoded(kinds[:, WHOLE:].sum(axis=1)))
    text = np.full(len(changed), None, np.object_)
    column = AggregateColumn(double, text)
    queue = tracked.queue(aggregate, operand)
    known = np.zeros(len(changed), np.bool_)
    if queue is not None:
        known = _set_fronts(column, operand, kinds, changed.fronts[:, queue], rows)
    elif aggregate.function in ("SUM", "AVG"):
        known = _set_sums(column, aggregate.function == "SUM", errors == 0, digits, kinds)
    rest = np.flatnonzero(~known)
    if aggregate.function == "SAMPLE":  # the first value comes after errors only
        size = np.minimum(size, errors + 1)
    function = EXACT.get(aggregate.function) or set_function(aggregate)
    elements = _elements(operand, changed.head[rest, 3], size[rest], rows)
    for place, given in zip(rest.tolist(), elements, strict=True):
        try:
            with spending(Budget(limits)):
                values = [*dict.fromkeys(given)] if aggregate.distinct else given
                text[place] = combined(function, values)
        except LimitExceeded as exceeded:
            exceeding[place] = exceeded.reason
    return column


def _set_fronts(
    column: AggregateColumn, operand: int, kinds: Int64s, front: Int64s, rows: KeptRows
) -> Bools:
    """Set the values of the first rows of queues; which groups [m] have numbers of one kind."""
    known: Bools = (kinds[:, OTHER] == 0) & ((kinds[:, WHOLE:OTHER] > 0).sum(axis=1) <= 1)
    chosen = np.flatnonzero(known & (front >= 0))
    places = front[chosen] - rows.base
    is_double = kinds[chosen, DOUBLE] > 0
    column.text[chosen] = rows.arrays["text"][operand, places]
    column.text[chosen[is_double]] = None
    column.double[chosen[is_double]] = rows.arrays["value"][operand, places[is_double]]
    return known


def _set_sums(
    column: AggregateColumn, is_sum: bool, valid: Bools, digits: Int64s, kinds: Int64s
) -> Bools:
    """Set sums or averages of the `valid` groups [m] whose digits say them; which these are."""
    size = kinds[:, WHOLE:].sum(axis=1)
    has_double, has_decimal = kinds[:, DOUBLE] > 0, kinds[:, DECIMAL] > 0
    known: Bools = valid & (kinds[:, OTHER] == 0) & ~(has_double & has_decimal)
    chosen = np.flatnonzero(known & has_double)
    divisors = np.ones_like(chosen) if is_sum else size[chosen]
    column.double[chosen] = rounded_quotients(digits[chosen, :LIMBS], divisors)
    for places, totals in (
        (known & ~has_double & ~has_decimal, _whole_sums),
        (known & has_decimal, decimal_sums),
    ):
        chosen = np.flatnonzero(places)
        column.text[chosen] = _of_exact(totals(digits[chosen]), size[chosen], is_sum)
    return known


def _encoded(numbers: Int64s) -> Objects:
    used, which = np.unique(numbers, return_inverse=True)
    return np.array([*map(encode, used.tolist())], np.object_)[which]


def _whole_sums(sums: Int64s) -> list[int]:
    return whole_sums(sums[:, :LIMBS])


def _of_exact(totals: Sequence[int | Decimal], sizes: Int64s, is_sum: bool) -> list[str]:
    if is_sum:
        return list(map(encode, totals))
    pairs = zip(totals, sizes.tolist(), strict=True)
    return [encode(divide(total, size) if size else 0) for total, size in pairs]


def _elements(operand: int, heads: Int64s, sizes: Int64s, rows: KeptRows) -> Sequence[Elements]:
    """The operand's values in the first rows of groups, in order, given their numbers of rows."""
    if not len(sizes):
        return []
    places = np.empty(int(sizes.sum()), np.int64)
    rows_of_groups(heads, sizes, rows.base, rows.arrays["following"], places)
    texts: list[str | None] = rows.arrays["text"][operand, places].tolist()
    kinds = rows.arrays["kind"][operand, places]
    values = rows.arrays["value"][operand, places].tolist()
    for row in np.flatnonzero(kinds != NONE).tolist():
        if texts[row] is None:
            texts[row] = encode(values[row])
    ends = np.cumsum(sizes).tolist()
    return [texts[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]


def tests_of(
    pattern: n.Pattern, kept: KeptGroups, tracked: TrackedOperands
) -> tuple[Int64s, Float64s]:
    """(aggregate, operand, comparison) int64 [c, 3] and constants float64 [c].

    They are the tests of `kernels.group_runs.advanced`. Filters of other forms are no tests.
    """
    tests = [*_tests(pattern, kept, tracked)]
    table = np.array([test[:3] for test in tests], np.int64).reshape(-1, 3)
    return table, np.array([test[3] for test in tests], np.float64)


def _tests(
    pattern: n.Pattern, kept: KeptGroups, tracked: TrackedOperands
) -> Iterator[tuple[int, int, int, float]]:
    names: dict[str, str] = {}  # of aggregates, by name outside
    filters: list[ast.Expr] = []
    tables: list[n.Table] = []
    inner = pattern
    while not isinstance(inner, n.Group):
        match inner:
            case n.Filter(expr, below):
                filters += conjuncts([expr])
            case n.Extend(below, variable, ast.Var(name)):
                names[variable] = name
            case n.Join(below, n.Table() as table):
                tables += [table]
            case n.Extend(below) | n.Project(below) | n.Distinct(below):
                pass
            case _:  # outer filters may concern values of the KB
                beside = beside_knowledge(inner)
                if beside is None:
                    return
                below = beside
                names, filters, tables = {}, [], []
        inner = below
    aggregates = {name: i for i, (name, _) in enumerate(inner.aggregates)}
    for expr in filters:
        test = _comparison(expr) or _loosest(expr, tables)
        if test is None:
            continue
        name, compare, constant = test
        number = aggregates.get(names.get(name, name))
        tested = None if number is None else _aggregate(kept, tracked, number)
        if tested is not None:
            if tested[0] in _COUNTS:
                constant = _whole_bound(constant, compare)
            yield *tested, _COMPARE[compare], constant


def _comparison(expr: ast.Expr) -> tuple[str, str, float] | None:
    """(variable, operator, constant) of a comparison with a number."""
    match expr:
        case ast.Compare(op, ast.Var(name), ast.Literal() as constant):
            pass
        case ast.Compare(op, ast.Literal() as constant, ast.Var(name)):
            op = _SWAPPED.get(op, op)  # type: ignore[assignment]
        case _:
            return None
    value = _constant(constant_text(constant))
    return None if op not in _COMPARE or value is None else (name, op, value)


def _whole_bound(constant: float, compare: str) -> float:
    """The bound that whole numbers may have if they are above, or below, a constant."""
    if compare == ">":
        return floor(constant) + 1.0
    return ceil(constant) - 1.0 if compare == "<" else constant


def _loosest(expr: ast.Expr, tables: Sequence[n.Table]) -> tuple[str, str, float] | None:
    """The comparison that passes wherever one with a value of a table's column does."""
    match expr:
        case ast.Compare(op, ast.Var(), ast.Var()) if op in _SWAPPED and op != "=":
            pass
        case _:
            return None
    for table in tables:
        for one, other, own in ((expr.left, expr.right, op), (expr.right, expr.left, _SWAPPED[op])):
            if isinstance(one, ast.Var) and isinstance(other, ast.Var):
                values = _column(table, other.name)
                if values:
                    return one.name, own, min(values) if own.startswith(">") else max(values)
    return None


def _column(table: n.Table, variable: str) -> list[float] | None:
    """The numbers in a column of a table; None if there is no such column of numbers."""
    if variable not in table.variables:
        return None
    column = table.variables.index(variable)
    values = [_constant(row[column]) for row in table.rows]
    numbers = [value for value in values if value is not None]
    return numbers if len(numbers) == len(values) else None


def _constant(text: str | None) -> float | None:
    """A number that comparisons in float64 may be made with."""
    value = None if text is None else decode(text)
    if not is_number(value) or isinstance(value, Float):
        return None  # beside a float, decimals are compared as floats, too
    double = to_double(value)  # type: ignore[arg-type]
    return double if np.isfinite(double) else None


def _aggregate(kept: KeptGroups, tracked: TrackedOperands, place: int) -> tuple[int, int] | None:
    """(aggregate, operand) of a test."""
    _, aggregate = kept.group.aggregates[place]
    operand = kept.operands[place]
    if operand is None:
        return COUNT, 0
    queue, terms = tracked.queue(aggregate, operand), tracked.distinct(aggregate, operand)
    if queue is not None:
        return EXTREME, queue
    counts = VALUES if terms is None else DISTINCT
    kind = {"COUNT": counts, "SUM": SUM, "AVG": AVERAGE}.get(aggregate.function)
    return None if kind is None else (kind, operand if terms is None else terms)
