"""Nodes of patterns with other operands or other expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.lang import ast


def mapped(pattern: n.Pattern, change: Callable[[n.Pattern], n.Pattern]) -> n.Pattern:
    """The pattern with its operands changed; a leaf as it is."""
    match pattern:
        case n.BGP() | n.Path() | n.Table() | n.EventName():
            return pattern
        case n.Join(left, right) | n.Union(left, right) | n.Minus(left, right):
            return type(pattern)(change(left), change(right))
        case n.LeftJoin(left, right, expr):
            return n.LeftJoin(change(left), change(right), expr)
        case _:
            return replace(pattern, pattern=change(pattern.pattern))


def expressions(pattern: n.Pattern) -> Iterator[ast.Expr]:
    """The expressions of a node itself, not of its operands."""
    match pattern:
        case n.Filter(expr) | n.Extend(expr=expr):
            yield expr
        case n.LeftJoin(expr=ast.Node() as expr):
            yield expr
        case n.OrderBy(_, conditions):
            yield from (c.expr for c in conditions)
        case n.Group(_, _, aggregates):
            yield from (a.operand for _, a in aggregates if a.operand is not None)


def with_expressions(pattern: n.Pattern, change: Callable[[ast.Expr], ast.Expr]) -> n.Pattern:
    """The pattern with the expressions of a node itself changed."""
    match pattern:
        case n.Filter(expr, inner):
            return n.Filter(change(expr), inner)
        case n.Extend(inner, variable, expr):
            return n.Extend(inner, variable, change(expr))
        case n.LeftJoin(left, right, ast.Node() as expr):
            return n.LeftJoin(left, right, change(expr))
        case n.OrderBy(inner, conditions):
            return n.OrderBy(inner, tuple(replace(c, expr=change(c.expr)) for c in conditions))
        case n.Group(inner, keys, aggregates):
            changed = tuple(
                (name, a if a.operand is None else replace(a, operand=change(a.operand)))
                for name, a in aggregates
            )
            return n.Group(inner, keys, changed)
        case _:
            return pattern
