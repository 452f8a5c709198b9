"""Graph patterns that need columns, even on a single pushed event."""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_constant
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.algebra.schema import Schema
from spaseq.algebra.substitution import lifted, sensitive
from spaseq.expr.aggregates import WITHOUT_COLUMNS
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses


def needs_columns(pattern: n.Pattern, schema: Schema | None = None) -> str | None:
    """The part of a pattern that needs columns on a single event, in words; None if there is none.

    A part that reads no event is joined, of whatever kind.
    """
    match pattern:
        case n.Service():
            return "SERVICE"
        case _ if is_constant(pattern):
            return None
        case n.Path():
            return "a property path"
        case n.Group(_, _, aggregates):
            for _, aggregate in aggregates:
                if aggregate.function not in WITHOUT_COLUMNS:
                    return f"{aggregate.function} in a sub-SELECT"
    place = _PLACES.get(type(pattern))
    here = (_in_expression(expr, place, schema) for expr in expressions(pattern))
    inner = (needs_columns(part, schema) for part in n.children(pattern))
    return next((reason for some in (here, inner) for reason in some if reason), None)


_PLACES = {n.Extend: "BIND", n.OrderBy: "ORDER BY", n.Group: "an aggregate"}
"""The place of an expression whose value is used, and not only its truth, in words."""


def _in_expression(expr: ast.Expr, place: str | None, schema: Schema | None) -> str | None:
    if is_volatile(expr):
        return "RAND, UUID, STRUUID or BNODE"
    for use in exists_uses(expr):
        if place is not None:
            return f"EXISTS in {place}"
        pattern, conditions = lifted(entailed(translate_group(use.pattern), schema))
        if sensitive(pattern):
            return "EXISTS whose inner scopes mention variables from outside"
        inner = (_in_expression(condition, None, schema) for condition in conditions)
        reason = needs_columns(pattern, schema) or next(filter(None, inner), None)
        if reason is not None:
            return reason
    return None
