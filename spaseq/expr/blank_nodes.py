"""BNODE(label): the same blank node for a label throughout one solution (SPARQL 17.4.2.9)."""

from __future__ import annotations

from spaseq.lang import ast
from spaseq.lang.variables import rewritten, walk

OF_SOLUTION = "BNODE of"
"""The function of a label and a solution that `with_solution` writes. No query can call it."""


def makes_labelled_nodes(expr: ast.Expr) -> bool:
    """Whether an expression calls BNODE with a label, outside the patterns of EXISTS."""
    return any(isinstance(n, ast.Call) and n.function == "BNODE" and n.args for n in walk(expr))


def with_solution(expr: ast.Expr, variable: str) -> ast.Expr:
    """The expression with `variable`, which differs by solution, added to each BNODE(label)."""

    def changed(node: ast.Node) -> ast.Node | None:
        match node:
            case ast.Call("BNODE", (label,)):
                return ast.Call(OF_SOLUTION, (rewritten(label, changed), ast.Var(variable)))
        return None

    return rewritten(expr, changed)
