"""Compiling expressions into closures (SPARQL 1.1 section 17, docs/meaning.md)."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.expr import leaves
from spaseq.expr.env import Env
from spaseq.expr.errors import ExpressionError, NotCompilable
from spaseq.expr.expression_compiler import ExpressionCompiler, Options
from spaseq.expr.leaves import TermOrNone
from spaseq.expr.logic import Test
from spaseq.expr.uses import is_volatile, timestamp_uses, variables_of
from spaseq.lang import ast
from spaseq.lang.variables import walk

__all__ = [
    "Options",
    "compile_filter",
    "compile_term",
    "compile_test",
    "is_volatile",
    "problems",
    "timestamp_uses",
    "variables_of",
]

_DEFAULT = Options()


def compile_filter(expr: ast.Expr, options: Options = _DEFAULT) -> Test:
    """The test of a FILTER: the effective boolean value, False where that is an error.

    Raises:
        NotCompilable: as `compile_test`.
    """
    match expr:
        case ast.And(operands):
            return _every([compile_filter(e, options) for e in operands])
        case ast.Or(operands):
            return _some([compile_filter(e, options) for e in operands])
    test = compile_test(expr, options)

    def run(env: Env) -> bool:
        try:
            return test(env)
        except ExpressionError:
            return False

    return run


def _every(filters: Sequence[Test]) -> Test:
    """`&&` without a third value: under a FILTER an error counts as false."""
    if len(filters) == 2:
        first, second = filters
        return lambda env: first(env) and second(env)
    return lambda env: all(f(env) for f in filters)


def _some(filters: Sequence[Test]) -> Test:
    """`||` without a third value."""
    return lambda env: any(f(env) for f in filters)


def compile_term(expr: ast.Expr, options: Options = _DEFAULT) -> TermOrNone:
    """The term of an expression as canonical N-Triples text, None where it is an error.

    Raises:
        NotCompilable: as `compile_test`.
    """
    return leaves.none_on_error(ExpressionCompiler(options).term(expr))


def compile_test(expr: ast.Expr, options: Options = _DEFAULT) -> Test:
    """The effective boolean value of an expression; its evaluation may raise ExpressionError.

    Raises:
        NotCompilable: an unknown function, a wrong number of arguments, EXISTS without
            `options.exists`, an aggregate that names no group variable.
    """
    return ExpressionCompiler(options).test(expr)


def problems(expr: ast.Expr, options: Options = _DEFAULT) -> list[NotCompilable]:
    """All parts of an expression that do not compile, in the order of the text."""
    reported: list[NotCompilable] = []
    for node in walk(expr):
        if isinstance(node, ast.Call | ast.FunctionCall | ast.Aggregate | ast.Exists):
            try:
                compile_test(node, options)
            except NotCompilable as problem:
                if not any(problem.node is known.node for known in reported):
                    reported.append(problem)
    return reported
