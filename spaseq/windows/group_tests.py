"""Conditions on aggregates that a group surely fails, told from approximations of its sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import constant_text
from spaseq.compiled.arrays import Float64s, Int64s
from spaseq.expr.numbers import Float, is_number, to_double
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts
from spaseq.plan.query_plan import KeptGroups
from spaseq.plan.window_groups import beside_knowledge
from spaseq.windows.group_tables import TrackedOperands
from spaseq.windows.kernels.group_runs import AVERAGE, COUNT, DISTINCT, EXTREME, SUM, VALUES

_COMPARE = {"=": 0, ">": 1, ">=": 1, "<": 2, "<=": 2}
_SWAPPED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}


def tests_of(
    pattern: n.Pattern, kept: KeptGroups, tracked: TrackedOperands
) -> tuple[Int64s, Float64s]:
    """(aggregate, operand, comparison) int64 [c, 3] and constants float64 [c].

    They are those of `kernels.group_runs.advanced`. Filters of other forms are no tests.
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
            case _:  # what stands further out may be about values of the KB
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
