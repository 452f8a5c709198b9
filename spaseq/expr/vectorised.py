"""Calls of vectorised extension functions, each made once for many solutions.

A variable replaces each call in the expression, and the result of the call is bound to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.expr.compile import Options, compile_term
from spaseq.expr.env import DictEnv
from spaseq.expr.extension import Function
from spaseq.expr.leaves import TermOrNone
from spaseq.lang import ast
from spaseq.lang.variables import rewritten
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
