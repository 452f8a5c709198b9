"""Bindings of earlier steps and a pattern: what can wait for them, and what cannot.

LANGUAGE section 3 substitutes the bindings of earlier steps into a graph pattern, and SPARQL those
of a solution into the pattern of EXISTS. Instead, a pattern is evaluated by itself and joined with
the bindings afterwards; here stands what that takes.
"""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import conjoined, conjuncts
from spaseq.algebra.scope import certain, possible
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, expression_variables, looks_back, pattern_mentions

Deferred = tuple[ast.Expr, ...]


def lifted(pattern: n.Pattern) -> tuple[n.Pattern, Deferred]:
    """The pattern without the FILTER conjuncts that look at other bindings, and those.

    They mention a variable not in scope of their group, or use PREV, TIMESTAMP or an aggregate, and
    stand where a FILTER commutes with all that is around it.
    """
    match pattern:
        case n.Filter(expr, inner):
            return _split_filter(expr, inner)
        case n.Join(left, right):
            left, first = lifted(left)
            right, second = lifted(right)
            return n.Join(left, right), first + second
        case n.LeftJoin(left, right, expr):
            left, deferred = lifted(left)
            return n.LeftJoin(left, right, expr), deferred
        case n.Minus(left, right):
            left, deferred = lifted(left)
            return n.Minus(left, right), deferred
        case n.Extend(inner, variable, expr):
            inner, deferred = lifted(inner)
            return n.Extend(inner, variable, expr), deferred
        case n.Graph(name, inner):
            inner, deferred = lifted(inner)
            return n.Graph(name, inner), deferred
        case _:
            return pattern, ()


def _split_filter(expr: ast.Expr, inner: n.Pattern) -> tuple[n.Pattern, Deferred]:
    scope = possible(inner)
    inner, deferred = lifted(inner)
    local: list[ast.Expr] = []
    back: list[ast.Expr] = []
    for part in conjuncts([expr]):
        here = expression_variables(part) <= scope and not looks_back(part)
        (local if here else back).append(part)
    kept = conjoined(local)
    pattern = inner if kept is None else n.Filter(kept, inner)
    return pattern, deferred + tuple(back)


def sensitive(pattern: n.Pattern) -> frozenset[str]:
    """Variables for which substituting a value differs from joining with it afterwards."""
    inside = frozenset[str]().union(*map(sensitive, n.children(pattern)))
    match pattern:
        case n.LeftJoin(left, right, expr):
            mentioned = possible(right) | (_mentions(expr) if expr else frozenset())
            return inside | (mentioned - certain(left))
        case n.Minus(_, right):
            return inside | possible(right)
        case n.Filter(expr, inner) | n.Extend(inner, _, expr):
            return inside | (_mentions(expr) - certain(inner))
        case n.Project(_, variables) | n.Group(_, variables):
            return inside & frozenset(variables)
        case n.Slice(inner):
            return possible(inner)
        case n.Path(path=path) if _may_be_empty(path):
            return possible(pattern)
        case _:
            return inside


def _mentions(expr: ast.Expr) -> frozenset[str]:
    inner = (pattern_mentions(use.pattern) for use in exists_uses(expr))
    return expression_variables(expr).union(*inner)


def _may_be_empty(path: ast.Path) -> bool:
    match path:
        case ast.PathRepeat(inner, modifier):
            return modifier != "+" or _may_be_empty(inner)
        case ast.PathSequence(parts):
            return all(map(_may_be_empty, parts))
        case ast.PathAlternative(parts):
            return any(map(_may_be_empty, parts))
        case ast.PathInverse(inner):
            return _may_be_empty(inner)
        case _:
            return False
