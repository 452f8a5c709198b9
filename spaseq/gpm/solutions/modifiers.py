"""Solution modifiers of a sub-SELECT, per event: BIND, GROUP BY, ORDER BY, DISTINCT, LIMIT."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from spaseq import thresholds
from spaseq.algebra.nodes import RESERVED
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.expr.aggregates import Elements, order_key
from spaseq.expr.columns import TermRows, extend_column
from spaseq.expr.compile import Options, set_function
from spaseq.expr.doubles import are_short, sum_of
from spaseq.expr.env import ExpressionError
from spaseq.expr.values import encode
from spaseq.gpm.solutions.lazy_columns import LazyColumn, LazyColumns, encoded
from spaseq.gpm.solutions.solutions import (
    DecimalColumn,
    IntegerColumn,
    Solutions,
    decimals_of,
    may_be_whole,
    values_of,
)
from spaseq.lang import ast
from spaseq.rdf.columns.solution_batch import first_rows, grouped_rows

Aggregates = Sequence[tuple[str, ast.Aggregate]]
Functions = Mapping[str, Callable[[Elements], str]]


def extended(solutions: Solutions, variable: str, expr: ast.Expr, options: Options) -> Solutions:
    """The solutions with the value of an expression as another variable."""
    if isinstance(expr, ast.Var) and expr.name in solutions.columns:
        copied = LazyColumns.of(solutions.columns)
        column = copied.column(expr.name)
        assert column is not None
        columns = copied.with_made(variable, column)
        return Solutions(solutions.size, solutions.event, columns, solutions.lexicon)
    total = sum_of(expr)
    if total is not None and solutions.size >= thresholds.current.summed_rows:
        sums = _summed(solutions, total)
        if sums is not None:
            columns = LazyColumns.of(solutions.columns).with_made(variable, sums)
            return Solutions(solutions.size, solutions.event, columns, solutions.lexicon)
    results, which = _values(solutions, expr, options)
    return solutions.with_column(variable, encoded(solutions.lexicon, results)[which])


def _summed(solutions: Solutions, total: ast.Arithmetic) -> LazyColumn | None:
    """The sums [size] of two variables, None unless all are small whole numbers, or decimals."""
    assert isinstance(total.left, ast.Var)
    assert isinstance(total.right, ast.Var)
    left, right, add = total.left.name, total.right.name, total.op == "+"
    if may_be_whole(solutions, [left, right]):
        one = values_of(solutions, left)
        other = None if one is None else values_of(solutions, right)
        if one is not None and other is not None:
            return IntegerColumn(one + other if add else one - other, solutions.lexicon)
    some = decimals_of(solutions, left)
    others = None if some is None else decimals_of(solutions, right)
    if some is None or others is None or not (some[1] | others[1]).all():
        return None
    sums = some[0] + others[0] if add else some[0] - others[0]
    return DecimalColumn(sums, solutions.lexicon) if are_short(sums) else None


SOLUTION = RESERVED + "solution"
"""A variable with a different value in each solution, for the evaluation of BNODE(label)."""


def numbered(solutions: Solutions) -> Solutions:
    """The solutions with a unique value in SOLUTION."""
    batch = uuid.uuid4().hex
    texts = [f'"{batch}.{row}"' for row in range(solutions.size)]
    return solutions.with_column(SOLUTION, solutions.lexicon.encode(texts))


def _values(
    solutions: Solutions, expr: ast.Expr, options: Options
) -> tuple[list[str | None], Indices]:
    """(distinct values of the expression, index of each solution's value [size])."""
    texts = solutions.lexicon
    return extend_column(expr, TermRows(solutions.columns, texts, solutions.size), options)


def distinct(solutions: Solutions) -> Solutions:
    """The first of equal solutions of one event."""
    _, first = _groups(solutions, list(solutions.columns))
    return solutions.take(np.sort(first))


def ordered(
    solutions: Solutions, conditions: Sequence[ast.OrderCondition], options: Options
) -> Solutions:
    """The solutions of each event in the order of ORDER BY."""
    keys: list[Int64s] = []
    for condition in reversed(conditions):
        results, which = _values(solutions, condition.expr, options)
        ranks = _ranks(results)[which]
        keys.append(-ranks if condition.descending else ranks)
    if solutions.event is not None:
        keys.append(solutions.event)
    return solutions.take(np.lexsort(keys)) if keys else solutions


def _ranks(terms: Sequence[str | None]) -> Int64s:
    """The rank of each term under ORDER BY; terms that it holds equal share a rank."""
    keys = [order_key(term) for term in terms]
    ranks = np.zeros(len(terms), np.int64)
    rank, before = 0, None
    for i in sorted(range(len(terms)), key=keys.__getitem__):
        rank += before is not None and keys[i] != before
        ranks[i], before = rank, keys[i]
    return ranks


def sliced(solutions: Solutions, offset: int, limit: int | None) -> Solutions:
    """OFFSET and LIMIT within each event."""
    turn = np.arange(solutions.size)
    if solutions.event is not None:
        turn -= np.searchsorted(solutions.event, solutions.event, "left")
    first = min(offset, solutions.size)
    end = solutions.size if limit is None else min(first + limit, solutions.size)
    return solutions.take((turn >= first) & (turn < end))


def grouped(
    solutions: Solutions,
    keys: Sequence[str],
    aggregates: Aggregates,
    events: int,
    options: Options,
    functions: Functions = MappingProxyType({}),
) -> Solutions:
    """GROUP BY with aggregates. Without keys each event has one group, which may be empty.

    `functions` are set functions by name that replace the usual ones.
    """
    group, first = _groups(solutions, list(keys))
    count = len(first)
    if keys:
        result = solutions.take(first).only(keys)
    elif solutions.event is None:
        group, count = np.zeros(solutions.size, np.intp), 1
        result = Solutions(1, None, {}, solutions.lexicon)
    else:
        group, count = solutions.event.astype(np.intp), events
        result = Solutions(events, np.arange(events, dtype=np.int64), {}, solutions.lexicon)
    for name, aggregate in aggregates:
        if aggregate.function == "COUNT" and "COUNT" not in functions:
            sizes, which = np.unique(
                _counted(solutions, aggregate, group, count, options), return_inverse=True
            )
            codes = encoded(solutions.lexicon, [encode(size) for size in sizes.tolist()])[which]
        else:
            texts = _aggregate(solutions, aggregate, group, count, options, functions)
            codes = encoded(solutions.lexicon, texts)
        result = result.with_column(name, codes)
    return result


def _counted(
    solutions: Solutions, aggregate: ast.Aggregate, group: Indices, count: int, options: Options
) -> Int64s:
    """The result of COUNT for each group."""
    if aggregate.operand is not None:
        texts, which = _values(solutions, aggregate.operand, options)
        numbers: dict[str | None, int] = {None: -1}
        values = np.array([numbers.setdefault(t, len(numbers)) for t in texts], np.int64)[which]
        rows = np.flatnonzero(values >= 0)
        if aggregate.distinct:
            rows = rows[first_rows([group[rows], values[rows]])]
    elif aggregate.distinct:
        rows = _groups(solutions, [v for v in solutions.columns if not v.startswith("_:")])[1]
    else:
        rows = np.arange(solutions.size)
    return np.bincount(group[rows], minlength=count)


def _groups(solutions: Solutions, names: Sequence[str]) -> tuple[Indices, Indices]:
    """(group of each row, first row of each group); a group has one event and equal values.

    Groups are numbered in order of events.
    """
    event = np.zeros(solutions.size, np.int64) if solutions.event is None else solutions.event
    first, which = grouped_rows([event, *(solutions.column(v) for v in names)])
    return which, first


def _aggregate(
    solutions: Solutions,
    aggregate: ast.Aggregate,
    group: Indices,
    count: int,
    options: Options,
    functions: Functions,
) -> list[str | None]:
    """The aggregate's term for each group, None where it is an error."""
    assert aggregate.operand is not None
    members: list[list[str | None]] = [[] for _ in range(count)]
    texts, which = _values(solutions, aggregate.operand, options)
    for number, i in zip(group.tolist(), which.tolist(), strict=True):
        members[number].append(texts[i])
    if aggregate.distinct:
        members = [list(dict.fromkeys(m)) for m in members]
    function = functions.get(aggregate.function) or set_function(aggregate)
    return [combined(function, m) for m in members]


def combined(function: Callable[[Elements], str], members: Elements) -> str | None:
    """The result of a set function; None where it is an error."""
    try:
        return function(members)
    except ExpressionError:
        return None
