"""What a graph pattern may say in the language, but is not evaluated yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from spaseq.algebra.groups import conjuncts, translate_group
from spaseq.algebra.scope import visible
from spaseq.algebra.substitution import lifted, sensitive
from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.variables import (
    exists_uses,
    expression_variables,
    looks_back,
    nested_groups,
    pattern_variables,
    plain_variables,
    walk,
)

Finding = tuple[str, Span]


def unsupported(group: ast.Group, elsewhere: frozenset[str] | None = None) -> list[Finding]:
    """Each construct of a GPM's pattern that is not evaluated yet, with its place.

    `elsewhere` are the variables that may have a value already when the GPM is evaluated, because
    another use of a GPM binds them; None: any.
    """
    found = [*_constructs(group), *_Reach(pattern_variables(group)).group(group, True)]
    if not found:
        found += _substituted(group, elsewhere)
    return found


def _constructs(group: ast.Group) -> Iterator[Finding]:
    mentions = _mentions(group)
    for node in walk(group):
        match node:
            case ast.Service():
                yield "SERVICE", node.span
            case ast.Exists(pattern):
                if any(isinstance(n, ast.Prev | ast.Aggregate | ast.Timestamp) for n in walk(node)):
                    yield "PREV, TIMESTAMP or an aggregate inside EXISTS", node.span
                outer = frozenset(mentions - _mentions(pattern))
                hidden = sensitive(lifted(translate_group(pattern))[0]) & outer
                if hidden:
                    yield (
                        f"EXISTS whose OPTIONAL, MINUS or inner group reads ?{min(hidden)}",
                        (node.span),
                    )


def _mentions(node: ast.Node) -> Counter[str]:
    return Counter(n.name for n in walk(node) if isinstance(n, ast.Var))


def _substituted(group: ast.Group, elsewhere: frozenset[str] | None) -> Iterator[Finding]:
    """Variables whose values from elsewhere would have to be known to evaluate the pattern."""
    names = visible(sensitive(lifted(translate_group(group))[0]))
    for name in sorted(names if elsewhere is None else names & elsewhere):
        for node in walk(group):
            what = _opaque(node)
            if what is not None and name in _mentions(node):
                yield f"{what} over ?{name}, which another use of a GPM may bind,", node.span
                break


def _opaque(node: ast.Node) -> str | None:
    """What to call a construct whose variables cannot be joined with values afterwards."""
    match node:
        case ast.Optional():
            return "OPTIONAL"
        case ast.Minus():
            return "MINUS"
        case ast.Bind():
            return "BIND"
        case ast.SubSelect():
            return "a sub-SELECT"
        case ast.Filter():
            return "a FILTER"
        case ast.Triples() if any(isinstance(n, ast.PathRepeat) for n in walk(node)):
            return "a property path"
        case _:
            return None


class _Reach:
    """FILTERs that reach for bindings of earlier steps from where they cannot be lifted out."""

    def __init__(self, bound: frozenset[str]) -> None:
        self._bound = bound  # by any part of the GPM

    def group(self, group: ast.Group, liftable: bool) -> Iterator[Finding]:
        scope = pattern_variables(group)
        for element in group.elements:
            if isinstance(element, ast.Filter):
                for expr in conjuncts([element.expr]):
                    yield from self.filter(expr, scope, liftable)
            lifts = liftable and isinstance(element, ast.Group | ast.Graph)
            for inner in nested_groups(element):
                yield from self.group(inner, lifts)

    def filter(self, expr: ast.Expr, scope: frozenset[str], liftable: bool) -> Iterator[Finding]:
        back = looks_back(expr)
        if not liftable:
            if back:
                what = "an aggregate, PREV or TIMESTAMP inside OPTIONAL, UNION, MINUS or sub-SELECT"
                yield what, expr.span
            return
        hidden = sorted(plain_variables(expr) & self._bound - scope)
        if hidden:
            yield (
                f"a FILTER over ?{hidden[0]}, which its GPM binds outside the FILTER's group",
                (expr.span),
            )
        if (back or not expression_variables(expr) <= scope) and exists_uses(expr):
            yield "EXISTS in one condition with bindings of earlier steps", expr.span
