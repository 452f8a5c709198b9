"""Solution modifiers of a sub-SELECT, per event: BIND, GROUP BY, ORDER BY, DISTINCT, LIMIT."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from spaseq import thresholds
from spaseq.algebra.nodes import RESERVED
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.expr.aggregates import Elements
from spaseq.expr.columns import TermRows, extend_column
from spaseq.expr.compile import Options
from spaseq.expr.doubles import sum_of
from spaseq.expr.errors import ExpressionError
from spaseq.expr.expression_compiler import set_function
from spaseq.expr.order import order_key
from spaseq.expr.values import encode
from spaseq.gpm.solutions.lazy_columns import LazyColumns
from spaseq.gpm.solutions.lexicon import encoded
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.gpm.solutions.value_columns import IntegerColumn, values_of
from spaseq.lang import ast

Aggregates = Sequence[tuple[str, ast.Aggregate]]
Functions = Mapping[str, Callable[[Elements], str]]


def extended(found: Solutions, variable: str, expr: ast.Expr, options: Options) -> Solutions:
    """The solutions with the value of an expression as another variable."""
    if isinstance(expr, ast.Var) and expr.name in found.columns:
        copied = LazyColumns.of(found.columns)
        column = copied.column(expr.name)
        assert column is not None
        columns = copied.with_made(variable, column)
        return Solutions(found.size, found.event, columns, found.lexicon)
    total = sum_of(expr)
    if total is not None and found.size >= thresholds.current.summed_rows:
        values = _summed(found, total)
        if values is not None:
            own = IntegerColumn(values, found.lexicon)
            columns = LazyColumns.of(found.columns).with_made(variable, own)
            return Solutions(found.size, found.event, columns, found.lexicon)
    results, which = _values(found, expr, options)
    return found.with_column(variable, encoded(found.lexicon, results)[which])


def _summed(found: Solutions, total: ast.Arithmetic) -> Int64s | None:
    """The sums [size] of two variables, None unless all are sums of small whole numbers."""
    assert isinstance(total.left, ast.Var)
    assert isinstance(total.right, ast.Var)
    left = values_of(found, total.left.name)
    right = None if left is None else values_of(found, total.right.name)
    if left is None or right is None:
        return None
    return left + right if total.op == "+" else left - right


SOLUTION = RESERVED + "solution"
"""A variable with a different value in each solution, for the evaluation of BNODE(label)."""


def numbered(found: Solutions) -> Solutions:
    """The solutions with a unique value in SOLUTION."""
    batch = uuid.uuid4().hex
    texts = [f'"{batch}.{row}"' for row in range(found.size)]
    return found.with_column(SOLUTION, found.lexicon.encode(texts))


def _values(found: Solutions, expr: ast.Expr, options: Options) -> tuple[list[str | None], Indices]:
    """(distinct values of the expression, index of each solution's value [size])."""
    texts = found.lexicon
    return extend_column(expr, TermRows(found.columns, texts, found.size), options)


def distinct(found: Solutions) -> Solutions:
    """The first of equal solutions of one event."""
    _, first = _groups(found, list(found.columns))
    return found.take(np.sort(first))


def ordered(
    found: Solutions, conditions: Sequence[ast.OrderCondition], options: Options
) -> Solutions:
    """The solutions of each event in the order of ORDER BY."""
    keys: list[Int64s] = []
    for condition in reversed(conditions):
        results, which = _values(found, condition.expr, options)
        ranks = _ranks(results)[which]
        keys.append(-ranks if condition.descending else ranks)
    if found.event is not None:
        keys.append(found.event)
    return found.take(np.lexsort(keys)) if keys else found


def _ranks(terms: Sequence[str | None]) -> Int64s:
    """The rank of each term under ORDER BY; terms that it holds equal have equal ranks."""
    keys = [order_key(term) for term in terms]
    ranks = np.zeros(len(terms), np.int64)
    rank, before = 0, None
    for i in sorted(range(len(terms)), key=keys.__getitem__):
        rank += before is not None and keys[i] != before
        ranks[i], before = rank, keys[i]
    return ranks


def sliced(found: Solutions, offset: int, limit: int | None) -> Solutions:
    """OFFSET and LIMIT within each event."""
    place = np.arange(found.size)
    if found.event is not None:
        place -= np.searchsorted(found.event, found.event, "left")
    first = min(offset, found.size)
    end = found.size if limit is None else min(first + limit, found.size)
    return found.take((place >= first) & (place < end))


def grouped(
    found: Solutions,
    keys: Sequence[str],
    aggregates: Aggregates,
    events: int,
    options: Options,
    functions: Functions = MappingProxyType({}),
) -> Solutions:
    """GROUP BY with aggregates. Without keys each event has one group, which may be empty.

    `functions` are set functions by name that take the place of the usual ones.
    """
    group, first = _groups(found, list(keys))
    count = len(first)
    if keys:
        result = found.take(first).only(keys)
    elif found.event is None:
        group, count = np.zeros(found.size, np.intp), 1
        result = Solutions(1, None, {}, found.lexicon)
    else:
        group, count = found.event.astype(np.intp), events
        result = Solutions(events, np.arange(events, dtype=np.int64), {}, found.lexicon)
    for name, aggregate in aggregates:
        texts = _aggregate(found, aggregate, group, count, options, functions)
        result = result.with_column(name, encoded(found.lexicon, texts))
    return result


def _groups(found: Solutions, names: Sequence[str]) -> tuple[Indices, Indices]:
    """(group of each row, first row of each group); a group has one event and equal values.

    Groups are numbered in order of events.
    """
    columns = [found.column(v).astype(np.int64) for v in names]
    event = np.zeros(found.size, np.int64) if found.event is None else found.event
    if not found.size:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    table = np.stack([event, *columns])
    _, first, which = np.unique(table, axis=1, return_index=True, return_inverse=True)
    return which.reshape(-1), first


def _aggregate(
    found: Solutions,
    aggregate: ast.Aggregate,
    group: Indices,
    count: int,
    options: Options,
    functions: Functions,
) -> list[str | None]:
    """The aggregate's term for each group, None where it is an error."""
    members: list[list[str | None]] = [[] for _ in range(count)]
    if aggregate.operand is None:
        rows = range(found.size)
        if aggregate.distinct:
            every = _groups(found, [v for v in found.columns if not v.startswith("_:")])
            rows = every[1].tolist()
        sizes = np.bincount(group[list(rows)], minlength=count)
        return [encode(int(size)) for size in sizes.tolist()]
    texts, which = _values(found, aggregate.operand, options)
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
