"""A GPM as algebra: what one event decides, and the FILTERs that need bindings of earlier steps."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import translate_group
from spaseq.algebra.scope import certain, possible, visible
from spaseq.algebra.substitution import Deferred, lifted, sensitive
from spaseq.algebra.support import unsupported
from spaseq.lang import ast

__all__ = ["GpmAlgebra", "split_gpm", "translate_group", "unsupported", "without_filters"]


@dataclass(frozen=True, slots=True)
class GpmAlgebra:
    """One GPM.

    LANGUAGE evaluates a GPM with the bindings of earlier steps substituted into it. For variables
    outside `sensitive` that is the same as joining its solutions over the event alone with those
    bindings, and then testing the `deferred` expressions.
    """

    pattern: n.Pattern
    deferred: Deferred
    possible: frozenset[str]  # variables that a solution may bind
    certain: frozenset[str]  # variables that every solution binds
    sensitive: frozenset[str]


def split_gpm(gpm: ast.Gpm) -> GpmAlgebra:
    """The algebra of a GPM, with the FILTER conjuncts taken out that look at earlier steps.

    These are the operands of top-level `&&` that mention a variable not in scope of their group,
    or use PREV, TIMESTAMP or an aggregate.
    """
    pattern, deferred = lifted(translate_group(gpm.pattern))
    return GpmAlgebra(
        pattern,
        deferred,
        visible(possible(pattern)),
        visible(certain(pattern)),
        visible(sensitive(pattern)),
    )


def without_filters(pattern: n.Pattern) -> n.Pattern:
    """The pattern with all FILTERs left out, at any depth (LANGUAGE section 3, Partition)."""
    match pattern:
        case n.Filter(pattern=inner):
            return without_filters(inner)
        case n.LeftJoin(left, right):
            return n.LeftJoin(without_filters(left), without_filters(right))
        case n.Join(left, right) | n.Union(left, right) | n.Minus(left, right):
            return type(pattern)(without_filters(left), without_filters(right))
        case n.Graph(name, inner):
            return n.Graph(name, without_filters(inner))
        case n.Extend(inner, variable, expr):
            return n.Extend(without_filters(inner), variable, expr)
        case n.Project(inner, variables):
            return n.Project(without_filters(inner), variables)
        case n.Distinct(inner):
            return n.Distinct(without_filters(inner))
        case n.OrderBy(inner, conditions):
            return n.OrderBy(without_filters(inner), conditions)
        case n.Slice(inner, offset, limit):
            return n.Slice(without_filters(inner), offset, limit)
        case n.Group(inner, keys, aggregates):
            return n.Group(without_filters(inner), keys, aggregates)
        case _:
            return pattern
