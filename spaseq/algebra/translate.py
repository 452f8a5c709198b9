"""A GPM as algebra: a pattern over one event, and the FILTERs that look at earlier steps."""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.algebra.correlation import AWAITED, Correlation, asks, correlate, why_correlated
from spaseq.algebra.deferral import Deferred, lifted
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import mapped
from spaseq.algebra.schema import Schema
from spaseq.algebra.scope import certain, possible, visible
from spaseq.lang import ast
from spaseq.lang.variables import pattern_mentions
from spaseq.records import record


@record
class GpmAlgebra:
    """One GPM.

    A GPM is evaluated with the bindings of earlier steps substituted into it
    (docs/meaning.md#known-variables, `spaseq.algebra.substitution`). For most GPMs that is the
    same as joining the solutions over the event alone with these bindings, and then testing the
    `deferred` expressions. For the others, `correlation` says how they are evaluated.
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
    """The algebra of a GPM, without the FILTER conjuncts that look at earlier steps.

    These conjuncts mention a variable not in scope of their group, or use PREV, TIMESTAMP or an
    aggregate. `elsewhere` are the variables that may have a value before the GPM is evaluated. The
    patterns are rewritten with `schema`. With `awaited`, a GPM that asks endpoints is correlated,
    unless it comes first in the sequence.
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
    """The pattern with all FILTERs left out, at any depth (docs/meaning.md#partition)."""
    match pattern:
        case n.Filter(pattern=inner):
            return without_filters(inner)
        case n.LeftJoin(left, right):
            return n.LeftJoin(without_filters(left), without_filters(right))
        case _:
            return mapped(pattern, without_filters)
