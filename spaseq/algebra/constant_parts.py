"""Which parts of a graph pattern read no event."""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses


def is_constant(pattern: n.Pattern) -> bool:
    """Whether a pattern's solutions do not depend on the event."""
    waiting = [pattern]
    while waiting:
        match waiting.pop():
            case n.Graph() | n.Table() | n.BGP(()):
                continue
            case n.BGP() | n.Path() | n.EventBlock() | n.EventName():
                return False
            case n.Filter(expr) | n.Extend(expr=expr) | n.LeftJoin(expr=ast.Node() as expr) as node:
                if exists_uses(expr):
                    return False
                waiting += n.children(node)
            case node:
                waiting += n.children(node)
    return True
