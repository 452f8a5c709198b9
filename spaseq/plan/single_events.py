"""Which graph patterns need columns, even on an event that is pushed by itself."""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_constant
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.algebra.schema import Schema
from spaseq.algebra.substitution import lifted, sensitive
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses


def needs_columns(pattern: n.Pattern, schema: Schema | None = None) -> str | None:
    """What of a pattern on a single event needs columns, in words; None if nothing does.

    A part that reads no event is joined, whatever it is.
    """
    match pattern:
        case n.Service():
            return "SERVICE"
        case _ if is_constant(pattern):
            return None
        case n.Path():
            return "a property path"
        case n.Project() | n.Distinct() | n.OrderBy() | n.Slice() | n.Group():
            return "a sub-SELECT"
    here = (
        _in_expression(expr, isinstance(pattern, n.Extend), schema) for expr in expressions(pattern)
    )
    inner = (needs_columns(part, schema) for part in n.children(pattern))
    return next((reason for some in (here, inner) for reason in some if reason), None)


def _in_expression(expr: ast.Expr, is_bind: bool, schema: Schema | None) -> str | None:
    if is_volatile(expr):
        return "RAND, UUID, STRUUID or BNODE"
    for use in exists_uses(expr):
        if is_bind:
            return "EXISTS in BIND"
        pattern, conditions = lifted(entailed(translate_group(use.pattern), schema))
        if sensitive(pattern):
            return "EXISTS whose inner scopes mention variables from outside"
        inner = (_in_expression(condition, False, schema) for condition in conditions)
        reason = needs_columns(pattern, schema) or next(filter(None, inner), None)
        if reason is not None:
            return reason
    return None
