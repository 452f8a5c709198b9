"""A GPM as algebra: what one event decides, and the FILTERs that need bindings of earlier steps."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.algebra import nodes as n
from spaseq.algebra.correlation import AWAITED, Correlation, asks, correlate, why_correlated
from spaseq.algebra.deferral import Deferred, lifted
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.mapping import mapped
from spaseq.algebra.schema import Schema
from spaseq.algebra.scope import certain, possible, visible
from spaseq.lang import ast
from spaseq.lang.variables import pattern_mentions


@dataclass(frozen=True, slots=True)
class GpmAlgebra:
    """One GPM.

    LANGUAGE evaluates a GPM with the bindings of earlier steps substituted into it
    (`spaseq.algebra.substitution`). Mostly that is the same as joining its solutions over the event
    alone with those bindings, and then testing the `deferred` expressions; where it is not,
    `correlation` says how it is evaluated.
    """

    pattern: n.Pattern
    deferred: Deferred
    possible: frozenset[str]  # variables that a solution may bind
    certain: frozenset[str]  # variables that every solution over the event alone binds
    correlation: Correlation | None = None


def split_gpm(
    gpm: ast.Gpm,
    elsewhere: frozenset[str] = frozenset(),
    schema: Schema | None = None,
    awaited: bool = False,
) -> GpmAlgebra:
    """The algebra of a GPM, with the FILTER conjuncts taken out that look at earlier steps.

    These are the operands of top-level `&&` that mention a variable not in scope of their group,
    or use PREV, TIMESTAMP or an aggregate. `elsewhere` are the variables that may have a value
    before the GPM is evaluated; `schema` what is entailed. `awaited`: what asks endpoints is
    evaluated where the sequence takes the event, unless the GPM comes first in it.
    """
    whole = entailed(translate_group(gpm.pattern), schema)
    pattern, deferred = lifted(whole)
    reason = why_correlated(pattern, deferred, elsewhere)
    if awaited and reason is None and elsewhere and asks(pattern):
        reason = AWAITED
    if reason is None:
        names = visible(possible(pattern)), visible(certain(pattern))
        return GpmAlgebra(pattern, deferred, *names)
    pattern, how = correlate(whole, pattern_mentions(gpm.pattern), reason)
    names = visible(possible(pattern)), visible(certain(how.core))
    return GpmAlgebra(pattern, (), *names, how)


def membership_pattern(gpm: ast.Gpm, schema: Schema | None = None) -> n.Pattern:
    """The GPM's pattern without FILTERs, whose solutions decide the partitions of an event."""
    return entailed(without_filters(translate_group(gpm.pattern)), schema)


def without_filters(pattern: n.Pattern) -> n.Pattern:
    """The pattern with all FILTERs left out, at any depth (LANGUAGE section 3, Partition)."""
    match pattern:
        case n.Filter(pattern=inner):
            return without_filters(inner)
        case n.LeftJoin(left, right):
            return n.LeftJoin(without_filters(left), without_filters(right))
        case _:
            return mapped(pattern, without_filters)
