"""Bounds of fields that a row must be within to be in a solution of a query's graph patterns.

They come from constants and FILTERs of patterns that a template matches in at most one way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import conjuncts
from spaseq.algebra.triple_terms import is_part
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses
from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.pruned_lifts import spelled_field
from spaseq.lift.row_groups import Bound, bound_of
from spaseq.lift.virtual_patterns import unified

AskedRows: TypeAlias = "tuple[tuple[Bound, ...], ...]"
"""A row in a solution is within all bounds of one of these."""

_INTEGER = re.compile("0|-?[1-9][0-9]*")


class _Unknown(Exception):
    """Any row may matter."""


def asked_rows(patterns: Iterable[n.Pattern], plan: LiftPlan) -> AskedRows | None:
    """The bounds of the rows in solutions of some patterns; None if any row may be in one."""
    binds = {e.var.name: e.expr for e in plan.elements if isinstance(e, ast.Bind)}
    try:
        found = [_bounds(pattern, plan, binds) for pattern in patterns]
    except _Unknown:
        return None
    return tuple(dict.fromkeys(own for own in found if own is not None))


def _bounds(
    pattern: n.Pattern, plan: LiftPlan, binds: Mapping[str, ast.Expr]
) -> tuple[Bound, ...] | None:
    """The bounds of the rows in solutions of one pattern; None if there is no such row."""
    triples: list[n.TriplePattern] = []
    filters: list[ast.Expr] = []
    _collect(pattern, triples, filters)
    ways = unified(triples, [t.terms for t in plan.template if t.inside])
    if ways is None or len(ways) > 1:
        raise _Unknown
    if not ways:
        return None
    (way,) = ways
    found = [bound for one, other in way.equal for bound in _equal(one, other, binds)]
    for expr in conjuncts(filters):
        bound = bound_of(expr)
        term = None if bound is None else way.columns.get(bound.field)
        field = _field(term, binds) if isinstance(term, ast.Var) else None
        if bound is not None and field is not None:
            found.append(Bound(field, bound.op, bound.value))
    if not found:
        raise _Unknown
    return tuple(dict.fromkeys(found))


def _collect(pattern: n.Pattern, triples: list[n.TriplePattern], filters: list[ast.Expr]) -> None:
    """The triples and FILTERs that every solution has to pass; other parts are refused."""
    match pattern:
        case n.BGP(own):
            triples += (triple for triple in own if not is_part(triple))
        case n.Join(left, right):
            _collect(left, triples, filters)
            _collect(right, triples, filters)
        case n.Filter(expr, inner) if not exists_uses(expr):
            filters.append(expr)
            _collect(inner, triples, filters)
        case n.Graph(str(), inner) if _is_local(inner):
            pass  # of the knowledge base, joined only with rows that match
        case _:
            raise _Unknown


def _is_local(pattern: n.Pattern) -> bool:
    """Whether no endpoint is asked."""
    return isinstance(pattern, n.BGP) or (
        isinstance(pattern, n.Join | n.Filter | n.Union)
        and not (isinstance(pattern, n.Filter) and exists_uses(pattern.expr))
        and all(map(_is_local, n.children(pattern)))
    )


def _field(term: ast.Var, binds: Mapping[str, ast.Expr]) -> str | None:
    """The field whose values a variable of the lift has as they stand."""
    name = term.name
    while name in binds:
        expr = binds[name]
        if not isinstance(expr, ast.Var):
            return None
        name = expr.name
    return name


def _equal(one: ast.Var, other: n.PatternTerm, binds: Mapping[str, ast.Expr]) -> Iterator[Bound]:
    """The bounds of rows in which a variable of the lift is a constant."""
    if isinstance(other, ast.Var):
        return
    field = _field(one, binds)
    if field is not None:
        value = decode(other) if other.startswith('"') else None
        if type(value) is str or (type(value) is int and other.startswith(f'"{value}"')):
            yield Bound(field, "=", value)
        return
    spelled = spelled_field(binds[one.name]) if one.name in binds else None
    if spelled is None:
        return
    prefix, field, suffix = spelled
    before, after = f"<{prefix}", f"{suffix}>"
    if len(other) >= len(before) + len(after) and other.startswith(before):
        inner = other[len(before) : -len(after)]
        if other.endswith(after):
            yield Bound(field, "=", inner, _INTEGER.fullmatch(inner) is not None)


def asked_text(asked: Sequence[Sequence[Bound]]) -> str:
    """The bounds in words."""
    return " or ".join(" && ".join(map(str, own)) for own in asked) or "no row"
