"""The aggregates of groups that changed, as terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.expr.aggregates import Elements
from spaseq.expr.errors import ExpressionError
from spaseq.expr.exact_aggregates import EXACT
from spaseq.expr.expression_compiler import set_function
from spaseq.expr.numbers import divide
from spaseq.expr.values import encode
from spaseq.lang import ast
from spaseq.limits import Limits
from spaseq.plan.query_plan import KeptGroups
from spaseq.records import record
from spaseq.windows.exact_sums import decimal_sums, rounded_quotients, whole_sums
from spaseq.windows.kept_rows import KeptRows
from spaseq.windows.kernels.group_runs import DECIMAL, DOUBLE, LIMBS, NONE, OTHER, rows_of_groups


@record
class ChangedGroups:
    """m groups that changed at window events, as `kernels.group_runs.advanced` gives them.

    `head` int64 [m, 5] has (window event, group, rows, number of the first row, whether it may
    pass), `sums` and `kinds` the digits of the sums and the rows by kind [m, operands].
    """

    head: Int64s
    sums: Int64s
    kinds: Int64s

    def __len__(self) -> int:
        return len(self.head)

    def take(self, rows: Int64s | Bools) -> ChangedGroups:
        """Some of them."""
        return ChangedGroups(self.head[rows], self.sums[rows], self.kinds[rows])

    def part(self, first: int, end: int) -> ChangedGroups:
        """Some that follow each other."""
        some = slice(first, end)
        return ChangedGroups(self.head[some], self.sums[some], self.kinds[some])


Exceeding = dict[int, str]
"""The groups, by their places, that exceed a limit, with the reasons."""


def aggregate_texts(
    kept: KeptGroups,
    changed: ChangedGroups,
    rows: KeptRows,
    limits: Limits,
    exceeding: Exceeding,
) -> list[list[str | None]]:
    """The terms of each aggregate, by group; None where it is an error or exceeds a limit."""
    return [
        _texts(own, operand, changed, rows, limits, exceeding)
        for (_, own), operand in zip(kept.group.aggregates, kept.operands, strict=True)
    ]


def _texts(
    own: ast.Aggregate,
    operand: int | None,
    changed: ChangedGroups,
    rows: KeptRows,
    limits: Limits,
    exceeding: Exceeding,
) -> list[str | None]:
    size = changed.head[:, 2]
    if operand is None:
        return _encoded(size)
    kinds = changed.kinds[:, operand]
    if own.function == "COUNT" and not own.distinct:
        return _encoded(size - kinds[:, NONE])
    found: list[str | None] = [None] * len(changed)
    summed = np.zeros(len(changed), np.bool_)
    if own.function in ("SUM", "AVG") and not own.distinct:
        summed = (kinds[:, NONE] == 0) & (kinds[:, OTHER] == 0)
        has_double, has_decimal = kinds[:, DOUBLE] > 0, kinds[:, DECIMAL] > 0
        summed &= ~(has_double & has_decimal)
        sums = changed.sums[:, operand]
        is_sum = own.function == "SUM"
        for places, make in (
            (summed & ~has_double & ~has_decimal, _of_wholes),
            (summed & has_double, _of_doubles),
            (summed & has_decimal, _of_decimals),
        ):
            chosen = np.flatnonzero(places)
            texts = make(sums[chosen], size[chosen], is_sum)
            for place, text in zip(chosen.tolist(), texts, strict=True):
                found[place] = text
    rest = np.flatnonzero(~summed)
    function = EXACT.get(own.function) or set_function(own)
    elements = _elements(operand, changed.take(rest), rows)
    for place, given in zip(rest.tolist(), elements, strict=True):
        try:
            with spending(Budget(limits)):
                values = [*dict.fromkeys(given)] if own.distinct else given
                found[place] = _combined(function, values)
        except LimitExceeded as exceeded:
            exceeding[place] = exceeded.reason
    return found


def _encoded(numbers: Int64s) -> list[str | None]:
    return list(map(encode, numbers.tolist()))


def _of_wholes(sums: Int64s, sizes: Int64s, is_sum: bool) -> list[str]:
    return _of_exact(whole_sums(sums[:, :LIMBS]), sizes, is_sum)


def _of_decimals(sums: Int64s, sizes: Int64s, is_sum: bool) -> list[str]:
    return _of_exact(decimal_sums(sums), sizes, is_sum)


def _of_exact(totals: Sequence[int | Decimal], sizes: Int64s, is_sum: bool) -> list[str]:
    if is_sum:
        return list(map(encode, totals))
    pairs = zip(totals, sizes.tolist(), strict=True)
    return [encode(divide(total, size) if size else 0) for total, size in pairs]


def _of_doubles(sums: Int64s, sizes: Int64s, is_sum: bool) -> list[str]:
    divisors = np.ones_like(sizes) if is_sum else sizes
    return list(map(encode, rounded_quotients(sums[:, :LIMBS], divisors).tolist()))


def _elements(operand: int, changed: ChangedGroups, rows: KeptRows) -> Sequence[Elements]:
    """The operand's values in the rows of each group, in order."""
    sizes = np.ascontiguousarray(changed.head[:, 2])
    if not len(sizes):
        return []
    places = np.empty(int(sizes.sum()), np.int64)
    heads = np.ascontiguousarray(changed.head[:, 3])
    rows_of_groups(heads, sizes, rows.base, rows.arrays["following"], places)
    texts: list[str | None] = rows.arrays["text"][operand, places].tolist()
    kinds = rows.arrays["kind"][operand, places]
    values = rows.arrays["value"][operand, places].tolist()
    for place in np.flatnonzero(kinds != NONE).tolist():
        if texts[place] is None:
            texts[place] = encode(values[place])
    ends = np.cumsum(sizes).tolist()
    return [texts[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]


def _combined(function: Callable[[Elements], str], elements: Elements) -> str | None:
    try:
        return function(elements)
    except ExpressionError:
        return None
