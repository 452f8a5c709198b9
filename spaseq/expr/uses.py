"""Analysis of expressions: the variables and event times that they read, and volatility."""

from __future__ import annotations

from spaseq.expr.functions import BUILTINS
from spaseq.lang import ast
from spaseq.lang.variables import walk


def timestamp_uses(expr: ast.Expr) -> frozenset[str]:
    """Names of the GPMs whose TIMESTAMP is read."""
    return frozenset(node.gpm.name for node in walk(expr) if isinstance(node, ast.Timestamp))


def is_of_its_event(expr: ast.Expr) -> bool:
    """Whether it has another value once a further event is taken: by NOW, PREV or an aggregate."""
    return any(
        isinstance(node, ast.Prev | ast.Aggregate)
        or (isinstance(node, ast.Call) and node.function == "NOW")
        for node in walk(expr)
    )


def calls_functions(expr: ast.Expr) -> bool:
    """Whether it calls a function or an aggregate, so that its results may be long or take time."""
    calls = ast.Call | ast.FunctionCall | ast.Aggregate
    return any(isinstance(node, calls) for node in walk(expr))


def is_volatile(expr: ast.Expr) -> bool:
    """Whether two evaluations on equal bindings may differ (RAND, UUID, STRUUID, BNODE)."""
    return any(
        isinstance(node, ast.Call)
        and node.function in BUILTINS
        and BUILTINS[node.function].volatile
        for node in walk(expr)
    )
