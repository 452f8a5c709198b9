"""A bound on the depth of a query, so that no query takes more stack than there is.

Lists may be of any length: triples, UNION, FILTER, `&&`, `||`, VALUES, the steps of a sequence, the
alternatives of a path. What is inside something else is deeper. So is what applies to everything
before it: each OPTIONAL, MINUS and BIND of a group, each operand of `+ - * /`, each operand of AND.
"""

from __future__ import annotations

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.variables import children

DEEPEST = 200
"""Most levels."""

_AND = 3
"""Levels of an operand of AND, whose automaton is nested more deeply."""

_DEEPER = ast.OptionalGraphPattern | ast.MinusGraphPattern | ast.Bind
_IN_PLACE = ast.GroupGraphPattern | ast.Triples | ast.Triple | ast.Sequence | ast.Step


def too_deep(*roots: ast.Node) -> Span | None:
    """The place of the first node, in the order of the text, that is too deep."""
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            return node.span
        waiting += reversed(_inside(node, depth))
    return None


def _inside(node: ast.Node, depth: int) -> list[tuple[ast.Node, int]]:
    """The children with their depths."""
    step = 0 if isinstance(node, _IN_PLACE) else 1
    further = [(child, depth + step) for child in children(node)]
    match node:
        case ast.GroupGraphPattern():
            for i, (child, _) in enumerate(further):
                depth += isinstance(child, _DEEPER)
                further[i] = child, depth
        case ast.Bracket("AND"):
            further = [(child, d + _AND * i) for i, (child, d) in enumerate(further)]
    return further
