"""Expressions over whole columns of term codes: FILTER and BIND on a batch of solutions.

The result equals that of evaluating row by row. A volatile expression is evaluated once per row,
any other once per distinct combination of the codes that it reads. float64 decides comparisons of
numbers and of dateTimes wherever it is certain to be right (`spaseq.expr.doubles`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np

from spaseq.algebra.groups import constant_text
from spaseq.compiled.arrays import Bools, Indices, Int32s
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.doubles import COMPARE, Doubles
from spaseq.expr.env import DictEnv, Env
from spaseq.expr.uses import is_volatile, variables_of
from spaseq.expr.vectorised import ColumnCall, without_column_calls
from spaseq.lang import ast
from spaseq.rdf.columns.term_columns import distinct_codes

R = TypeVar("R")
Columns = Mapping[str, Int32s]
_DEFAULT = Options()
_FEW = 16
"""Batches of at most this many rows are evaluated row by row."""


@dataclass(frozen=True, slots=True)
class _Compiled(Generic[R]):
    """A compiled expression, and the calls of vectorised functions whose results it reads."""

    run: Callable[[Env], R]
    calls: tuple[ColumnCall, ...]

    def rows(self, columns: Mapping[str, list[int]], terms: Sequence[str], rows: int) -> list[R]:
        """The result for each row."""
        bindings = _bindings(columns, terms, rows)
        if self.calls:
            bindings = list(bindings)
            for call in self.calls:
                call.bind(bindings)
        return [self.run(DictEnv(solution)) for solution in bindings]


@lru_cache(maxsize=512)  # the same filters come back with every batch
def _test(expr: ast.Expr, options: Options) -> _Compiled[bool]:
    expr, calls = without_column_calls(expr, options)
    return _Compiled(compile_filter(expr, options), calls)


@lru_cache(maxsize=512)
def _term(expr: ast.Expr, options: Options) -> _Compiled[str | None]:
    expr, calls = without_column_calls(expr, options)
    return _Compiled(compile_term(expr, options), calls)


_variables = lru_cache(maxsize=512)(variables_of)
_is_volatile = lru_cache(maxsize=512)(is_volatile)


def filter_rows(
    expr: ast.Expr,
    columns: Columns,
    terms: Sequence[str],
    *,
    rows: int | None = None,
    options: Options = _DEFAULT,
) -> Bools:
    """[n] whether each row passes a FILTER.

    Args:
        expr: the FILTER's expression.
        columns: [n] codes into `terms` for each variable, -1 for unbound; a variable without a
            column is unbound in every row.
        terms: N-Triples texts.
        rows: n, needed only if there are no columns.
        options: what the expression takes from its query.

    Raises:
        NotCompilable: as `compile_filter`.
    """
    count = _row_count(columns, rows)
    if count <= _FEW:
        return _few_hold(expr, columns, terms, count, options)
    keep = np.ones(count, dtype=np.bool_)
    for conjunct in _conjuncts(expr):
        live = np.flatnonzero(keep)
        read = {v: columns[v][live] for v in _variables(conjunct) if v in columns}
        keep[live] = _conjunct_holds(conjunct, read, terms, len(live), options)
    return keep


def extend_column(
    expr: ast.Expr,
    columns: Columns,
    terms: Sequence[str],
    *,
    rows: int | None = None,
    options: Options = _DEFAULT,
) -> tuple[list[str | None], Indices]:
    """The terms of an expression: (results, [n] the index of each row's result); None is an error.

    Arguments and errors as for `filter_rows`. Results may repeat a term.
    """
    read = {v: columns[v] for v in _variables(expr) if v in columns}
    count = _row_count(columns, rows)
    term = _term(expr, options)
    return _evaluate(term, read, terms, count, _is_volatile(expr))


def _few_hold(
    expr: ast.Expr, columns: Columns, terms: Sequence[str], rows: int, options: Options
) -> Bools:
    """`filter_rows` row by row, for batches that are not worth an array operation."""
    test = _test(expr, options)
    read = {v: columns[v].tolist() for v in _variables(expr) if v in columns}
    return np.array(test.rows(read, terms, rows), dtype=np.bool_)


def _bindings(
    columns: Mapping[str, list[int]], terms: Sequence[str], rows: int
) -> Iterable[dict[str, str | None]]:
    for row in range(rows):
        codes = ((v, column[row]) for v, column in columns.items())
        yield {v: terms[c] for v, c in codes if c >= 0}


def _row_count(columns: Columns, rows: int | None) -> int:
    if rows is not None:
        return rows
    return len(next(iter(columns.values())))


def _conjuncts(expr: ast.Expr) -> Iterator[ast.Expr]:
    """The operands that must all hold; under a FILTER an error in one counts as false."""
    if isinstance(expr, ast.And):
        for operand in expr.operands:
            yield from _conjuncts(operand)
    else:
        yield expr


def _conjunct_holds(
    conjunct: ast.Expr, columns: Columns, terms: Sequence[str], rows: int, options: Options
) -> Bools:
    match conjunct:
        case ast.Call("BOUND", (ast.Var(name),)):
            return columns[name] >= 0 if name in columns else np.zeros(rows, dtype=np.bool_)
        case ast.Compare(
            op, (ast.Var() | ast.Literal()) as left, (ast.Var() | ast.Literal()) as right
        ) if rows:
            return _compare(op, left, right, columns, terms, rows, options)
    return _holds(conjunct, columns, terms, rows, options)


def _compare(
    op: str,
    left: ast.Var | ast.Literal,
    right: ast.Var | ast.Literal,
    columns: Columns,
    terms: Sequence[str],
    rows: int,
    options: Options,
) -> Bools:
    a, b = (_doubles(side, columns, terms, rows) for side in (left, right))
    holds: Bools = COMPARE[op](a.value, b.value)
    unsure = np.flatnonzero(~a.decides(b))
    if len(unsure):
        expr = ast.Compare(op, left, right)  # type: ignore[arg-type]
        rest = {v: c[unsure] for v, c in columns.items()}
        holds[unsure] = _holds(expr, rest, terms, len(unsure), options)
    return holds


def _doubles(
    side: ast.Var | ast.Literal, columns: Columns, terms: Sequence[str], rows: int
) -> Doubles:
    if isinstance(side, ast.Literal):
        return Doubles.constant(constant_text(side), rows)
    if side.name not in columns:
        return Doubles.unknown(rows)
    return Doubles.column(columns[side.name], terms)


def _holds(
    expr: ast.Expr, columns: Columns, terms: Sequence[str], rows: int, options: Options
) -> Bools:
    test = _test(expr, options)
    results, which = _evaluate(test, columns, terms, rows, _is_volatile(expr))
    return np.array(results, dtype=np.bool_)[which]


def _evaluate(
    compiled: _Compiled[R], columns: Columns, terms: Sequence[str], rows: int, each_row: bool
) -> tuple[list[R], Indices]:
    """(results, [n] the index of each row's result)."""
    if each_row or not rows:
        first = which = np.arange(rows)
    elif columns:
        first, which = _distinct(list(columns.values()), len(terms))
    else:
        first, which = np.zeros(1, np.intp), np.zeros(rows, np.intp)
    picked = {v: c[first].tolist() for v, c in columns.items()}
    return compiled.rows(picked, terms, len(first)), which


def _distinct(columns: Sequence[Int32s], limit: int) -> tuple[Indices, Indices]:
    """(a row of each distinct combination, [n] the combination of each row); codes < limit."""
    if len(columns) == 1:
        used, which = distinct_codes(columns[0], limit)
        row = np.empty(len(used), np.intp)
        row[which] = np.arange(len(which))
        return row, which
    key = np.zeros(len(columns[0]), np.int64)
    keys = 1  # an upper bound for their number
    for column in columns:
        if keys * (limit + 1) >= 2**63:
            used, key = np.unique(key, return_inverse=True)
            keys = len(used)
        key = key * (limit + 1) + column + 1
        keys *= limit + 1
    _, row, which = np.unique(key, return_index=True, return_inverse=True)
    return row, which
