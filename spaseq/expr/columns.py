"""FILTER and BIND on a batch of solutions: expressions over columns of term codes.

The results are the same as row by row. A volatile expression is evaluated once per row, any other
one once per distinct combination of the codes that it reads. float64 decides comparisons of numbers
and of dateTimes wherever it is certainly right (`spaseq.expr.doubles`).

A variable replaces each call in the expression, and the result of the call is bound to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Generic, TypeVar, cast

import numpy as np

from spaseq import thresholds
from spaseq.budget import current_budget
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.doubles import (
    COMPARE,
    decided,
    doubles_of,
    doubles_of_constant,
    of_decimals,
    sum_of,
    whole_numbers,
)
from spaseq.expr.env import DictEnv, Env
from spaseq.expr.extension import Function, PlaceFunction
from spaseq.expr.functions.strings import TEXT_TESTS
from spaseq.expr.leaves import TermOrNone
from spaseq.expr.place_tests import PlaceTest, place_test
from spaseq.expr.uses import is_volatile
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import conjuncts, rewritten, variables_of
from spaseq.rdf.columns.term_columns import (
    DECIMAL_PLACES,
    DECIMAL_TYPE,
    NumberColumn,
    decimal_texts,
    distinct_codes,
    integer_texts,
)
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.geosparql import GEOF
from spaseq.rdf.terms.number_kinds import EXACT, SHORT
from spaseq.records import record

_PREFIX = "_:call"  # no variable of a query has such a name


@record
class ColumnCall:
    """One call. Its results, where there are any, are bound to the variable `name`."""

    name: str
    function: Function
    arguments: tuple[TermOrNone, ...]

    def bind(self, bindings: Sequence[dict[str, str | None]]) -> None:
        """Call the function for some solutions; an error in an argument leaves `name` unbound."""
        rows, picked = [], []
        for solution in bindings:
            env = DictEnv(solution)
            row = [term for argument in self.arguments if (term := argument(env)) is not None]
            if len(row) == len(self.arguments):
                rows.append(row)
                picked.append(solution)
        for solution, result in zip(picked, self.function.column(rows), strict=True):
            solution[self.name] = result


def without_column_calls(
    expr: ast.Expr, options: Options
) -> tuple[ast.Expr, tuple[ColumnCall, ...]]:
    """The expression with variables in place of calls, and the calls, inner ones first."""
    functions = {f.iri: f for f in options.functions if f.vectorised}
    calls: list[ColumnCall] = []

    def change(node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.FunctionCall) or node.function.value not in functions:
            return None
        compile_term(node, options)  # checks the call, the number of its arguments above all
        inner = [rewritten(argument, change) for argument in node.args]
        terms = tuple(compile_term(argument, options) for argument in inner)
        name = f"{_PREFIX}{len(calls)}"
        calls.append(ColumnCall(name, functions[node.function.value], terms))
        return ast.Var(name)

    return (rewritten(expr, change), tuple(calls)) if functions else (expr, ())


R = TypeVar("R")
Columns = Mapping[str, Int32s]
_DEFAULT = Options()


@record
class TermRows:
    """Rows of variables as columns of term codes.

    `columns` has an array [size] of codes into `terms` for each variable, -1 for unbound. A
    variable without a column is unbound in every row.
    """

    columns: Columns
    terms: Sequence[str]
    size: int

    @classmethod
    def of(cls, columns: Columns, terms: Sequence[str]) -> TermRows:
        """Rows with at least one column."""
        return cls(columns, terms, len(next(iter(columns.values()))))

    def read_by(self, expr: ast.Expr) -> TermRows:
        """The rows with only the columns that an expression reads."""
        read = {v: self.columns[v] for v in _variables(expr) if v in self.columns}
        return TermRows(read, self.terms, self.size)

    def picked(self, rows: Indices) -> TermRows:
        """Some of the rows."""
        columns = {v: column[rows] for v, column in self.columns.items()}
        return TermRows(columns, self.terms, len(rows))

    def bindings(self) -> Iterator[dict[str, str | None]]:
        """The bound variables of each row."""
        table, size = term_table(self.terms), max(1, thresholds.current.computed_rows)
        for begin in range(0, self.size, size):
            some = slice(begin, min(begin + size, self.size))
            columns = {v: table.row_texts(column[some]) for v, column in self.columns.items()}
            for row in range(some.stop - begin):
                texts = ((v, column[row]) for v, column in columns.items())
                yield {v: text for v, text in texts if text is not None}


@record
class _Compiled(Generic[R]):
    """A compiled expression, and the vectorised calls whose results it reads."""

    run: Callable[[Env], R]
    calls: tuple[ColumnCall, ...]
    makes_terms: bool = False

    def results(self, rows: TermRows) -> list[R]:
        """The result for each row.

        Raises:
            LimitExceeded: they take too long, or are too large together.
        """
        bindings: Iterable[dict[str, str | None]] = rows.bindings()
        if self.calls:
            bindings = list(bindings)
            for call in self.calls:
                call.bind(bindings)
        budget, computed, following = current_budget(), list[R](), iter(bindings)
        size = min(thresholds.current.computed_rows, max(1, rows.size))
        for start in range(0, rows.size, size):
            if start:
                budget.check()
            results = [self.run(DictEnv(binding)) for binding in islice(following, size)]
            if self.makes_terms:
                budget.texts(sum(map(len, filter(None, cast("list[str | None]", results)))))
            computed.extend(results)
        return computed


@lru_cache(maxsize=512)  # every batch evaluates the same filters
def _test(expr: ast.Expr, options: Options) -> _Compiled[bool]:
    expr, calls = without_column_calls(expr, options)
    return _Compiled(compile_filter(expr, options), calls)


@lru_cache(maxsize=512)
def _term(expr: ast.Expr, options: Options) -> _Compiled[str | None]:
    expr, calls = without_column_calls(expr, options)
    return _Compiled(compile_term(expr, options), calls, makes_terms=True)


_variables = lru_cache(maxsize=512)(variables_of)
_is_volatile = lru_cache(maxsize=512)(is_volatile)


def filter_rows(expr: ast.Expr, rows: TermRows, options: Options = _DEFAULT) -> Bools:
    """The rows that pass a FILTER, as a mask [size].

    Raises NotCompilable like `compile_filter`.
    """
    if rows.size <= thresholds.current.few_rows:
        return np.array(_test(expr, options).results(rows.read_by(expr)), dtype=np.bool_)
    first, *others = conjuncts([expr])
    keep = _conjunct_holds(first, rows.read_by(first), options)
    for conjunct in others:
        live = np.flatnonzero(keep)
        keep[live] = _conjunct_holds(conjunct, rows.read_by(conjunct).picked(live), options)
    return keep


def extend_column(
    expr: ast.Expr, rows: TermRows, options: Options = _DEFAULT
) -> tuple[list[str | None], Indices]:
    """The terms of an expression: (results, the index [size] of each row's result).

    None is an evaluation error. Results may repeat a term. Raises NotCompilable like
    `compile_term`.
    """
    rows = rows.read_by(expr)
    total = sum_of(expr)
    if total is not None and rows.size >= thresholds.current.summed_rows:
        return _summed(expr, total, rows, options)
    return _evaluate(_term(expr, options), rows, _is_volatile(expr))


def _summed(
    expr: ast.Expr, total: ast.Arithmetic, rows: TermRows, options: Options
) -> tuple[list[str | None], Indices]:
    """`extend_column` of a sum of two variables: whole numbers and decimals are added in one go."""
    results, which = list[str | None](), np.zeros(rows.size, np.intp)
    rest = np.arange(rows.size)
    for sums_of, texts_of in ((_whole_sums, integer_texts), (_decimal_sums, decimal_texts)):
        is_known, sums = sums_of(total, rows if len(rest) == rows.size else rows.picked(rest))
        distinct, places = np.unique(sums[is_known], return_inverse=True)
        which[rest[is_known]] = places + len(results)
        results += texts_of(distinct)
        rest = rest[~is_known]
        if not len(rest):
            return results, which
    more, places = _evaluate(_term(expr, options), rows.picked(rest), False)
    which[rest] = places + len(results)
    return results + more, which


def _whole_sums(total: ast.Arithmetic, rows: TermRows) -> tuple[Bools, Int64s]:
    """(the rows where a sum is one of small whole numbers, the sums)."""
    (is_known, left), (other, right) = _whole(total.left, rows), _whole(total.right, rows)
    return is_known & other, left + right if total.op == "+" else left - right


def _decimal_sums(total: ast.Arithmetic, rows: TermRows) -> tuple[Bools, Int64s]:
    """(the rows where a sum of short numbers is a decimal, the sums times 10**DECIMAL_PLACES)."""
    (left, is_left, some), (right, is_right, others) = (
        _scaled(operand, rows) for operand in (total.left, total.right)
    )
    return is_left & is_right & (some | others), left + right if total.op == "+" else left - right


def _scaled(operand: ast.Expr, rows: TermRows) -> tuple[Int64s, Bools, Bools]:
    column = rows.columns.get(operand.name) if isinstance(operand, ast.Var) else None
    if column is None:
        return np.zeros(rows.size, np.int64), *np.zeros((2, rows.size), np.bool_)
    return scaled(column, rows.terms)


def scaled(codes: Int32s, terms: Sequence[str]) -> tuple[Int64s, Bools, Bools]:
    """(values times 10**DECIMAL_PLACES, where they are known, where of xsd:decimal), each [n].

    The value of a code is known if its term is a short decimal or a whole number.
    """
    bound = np.where(codes < 0, codes.max(initial=0), codes)
    used, where = distinct_codes(bound, len(terms))
    number = doubles_of(used.astype(np.int32), terms)
    values, is_known = of_decimals(number.value)
    is_known &= (number.kind == EXACT) | (number.kind == SHORT)
    is_decimal = values % 10**DECIMAL_PLACES != 0
    for i in np.flatnonzero(is_known & ~is_decimal).tolist():
        is_decimal[i] = terms[int(used[i])].endswith(DECIMAL_TYPE)
    return values[where], is_known[where] & (codes >= 0), is_decimal[where]


def _whole(operand: ast.Expr, rows: TermRows) -> tuple[Bools, Int64s]:
    """(the rows where a variable is a small whole number, its values)."""
    column = rows.columns.get(operand.name) if isinstance(operand, ast.Var) else None
    if column is None:
        return np.zeros(rows.size, np.bool_), np.zeros(rows.size, np.int64)
    return _whole_of(column, rows.terms)


def whole_numbers_of(codes: Int32s, terms: Sequence[str]) -> Int64s | None:
    """The values [n] of the terms of codes [n], None unless all are small whole numbers."""
    is_whole, values = _whole_of(codes, terms)
    return values if is_whole.all() else None


def _whole_of(codes: Int32s, terms: Sequence[str]) -> tuple[Bools, Int64s]:
    """(which codes [n] are of small whole numbers, their values)."""
    bound = np.where(codes < 0, codes.max(initial=0), codes)
    used, where = distinct_codes(bound, len(terms))
    distinct = used.astype(np.int32)
    is_whole, values = _distinct_whole(distinct, terms)
    return is_whole[where] & (codes >= 0), values[where]


def _distinct_whole(codes: Int32s, terms: Sequence[str]) -> tuple[Bools, Int64s]:
    table = term_table(terms)
    is_whole, values = table.integers(codes)
    rest = np.flatnonzero(~is_whole)
    if len(rest):
        is_whole[rest], values[rest] = whole_numbers(table.take(codes[rest]))
    return is_whole, values


def _conjunct_holds(conjunct: ast.Expr, rows: TermRows, options: Options) -> Bools:
    match conjunct:
        case ast.Call("BOUND", (ast.Var(name),)):
            unbound = np.zeros(rows.size, dtype=np.bool_)
            return rows.columns[name] >= 0 if name in rows.columns else unbound
        case ast.Compare(
            _, (ast.Var() | ast.Literal()) as left, (ast.Var() | ast.Literal()) as right
        ) if rows.size:
            return _compare(conjunct, _doubles(left, rows), _doubles(right, rows), rows, options)
        case ast.Call(function, (ast.Var(left), ast.Var(right))) if (
            function in TEXT_TESTS and {left, right} <= rows.columns.keys()
        ):
            return _compare_texts(conjunct, TEXT_TESTS[function], left, right, rows, options)
    test = place_test(conjunct)
    if test is not None and _is_of_places(test, options):
        match test.first, test.second:
            case ast.Var(first), ast.Var(second) if {first, second} <= rows.columns.keys():
                return _placed(test, first, second, rows)
    return _holds(conjunct, rows, options)


def _is_of_places(test: PlaceTest, options: Options) -> bool:
    """Whether no function of the user takes the place of a test's."""
    names = ("distance", "metricDistance") if test.name == "distance" else (test.name,)
    functions = [f for f in options.functions if f.iri in {GEOF + name for name in names}]
    return bool(functions) and all(isinstance(f, PlaceFunction) for f in functions)


def _placed(test: PlaceTest, first: str, second: str, rows: TermRows) -> Bools:
    """The rows whose places pass a test."""
    from spaseq.places import geometries, operations

    def places(variable: str) -> tuple[geometries.GeometryColumn, Indices]:
        used, which = np.unique(rows.columns[variable], return_inverse=True)
        terms = term_table(rows.terms).row_texts(used)
        return geometries.GeometryColumn.of(terms), which

    pairs = *places(first), *places(second)
    return operations.passing(test.name, pairs, test.metres, test.also_equal)


def _compare(
    expr: ast.Compare, left: NumberColumn, right: NumberColumn, rows: TermRows, options: Options
) -> Bools:
    holds: Bools = COMPARE[expr.op](left.value, right.value)
    undecided = np.flatnonzero(~decided(left, right))
    if len(undecided):
        holds[undecided] = _holds(expr, rows.picked(undecided), options)
    return holds


def _compare_texts(
    expr: ast.Expr,
    test: Callable[[str, str], bool],
    left: str,
    right: str,
    rows: TermRows,
    options: Options,
) -> Bools:
    """The rows whose texts pass a test; others than plain strings are compared one by one."""
    pairs = _plain_texts(rows.columns[left], rows), _plain_texts(rows.columns[right], rows)
    found = [None if a is None or b is None else test(a, b) for a, b in zip(*pairs, strict=True)]
    holds = np.array([held is True for held in found], np.bool_)
    undecided = np.flatnonzero([held is None for held in found])
    if len(undecided):
        holds[undecided] = _holds(expr, rows.picked(undecided), options)
    return holds


def _plain_texts(codes: Int32s, rows: TermRows) -> list[str | None]:
    """The characters of the plain strings among the terms of codes [n]; None for other terms."""
    used, which = distinct_codes(codes, len(rows.terms))
    texts = [None if code < 0 else _plain(rows.terms[code]) for code in used.tolist()]
    return [*map(texts.__getitem__, which.tolist())]


def _plain(term: str) -> str | None:
    """The characters of an xsd:string; None for other terms."""
    value = decode(term)
    return value if type(value) is str else None


def _doubles(operand: ast.Var | ast.Literal, rows: TermRows) -> NumberColumn:
    if isinstance(operand, ast.Literal):
        return doubles_of_constant(constant_text(operand), rows.size)
    if operand.name not in rows.columns:
        return NumberColumn.unknown(rows.size)
    return doubles_of(rows.columns[operand.name], rows.terms)


def _holds(expr: ast.Expr, rows: TermRows, options: Options) -> Bools:
    results, which = _evaluate(_test(expr, options), rows, _is_volatile(expr))
    return np.array(results, dtype=np.bool_)[which]


def _evaluate(compiled: _Compiled[R], rows: TermRows, each_row: bool) -> tuple[list[R], Indices]:
    """(results, the index of each row's result); with `each_row`, one result per row."""
    if each_row or not rows.size:
        first = which = np.arange(rows.size)
    elif rows.columns:
        first, which = _distinct(list(rows.columns.values()), len(rows.terms))
    else:
        first, which = np.zeros(1, np.intp), np.zeros(rows.size, np.intp)
    return compiled.results(rows.picked(first)), which


def _distinct(columns: Sequence[Int32s], limit: int) -> tuple[Indices, Indices]:
    """(a row of each distinct combination, the combination of each row); codes < `limit`."""
    if len(columns) == 1:
        used, which = distinct_codes(columns[0], limit)
        row = np.empty(len(used), np.intp)
        row[which] = np.arange(len(which))
        return row, which
    key = np.zeros(len(columns[0]), np.int64)
    keys = 1  # upper bound of the keys so far
    for column in columns:
        if keys * (limit + 1) >= 2**63:
            used, key = np.unique(key, return_inverse=True)
            keys = len(used)
        key = key * (limit + 1) + column + 1
        keys *= limit + 1
    _, row, which = np.unique(key, return_index=True, return_inverse=True)
    return row, which
