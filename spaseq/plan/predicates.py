"""The triples of a stream that some query of a run uses; readers may drop all others."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.algebra.nodes import Pattern
from spaseq.plan.query_plan import QueryPlan

_MOST_PATTERNS = 64
"""With more patterns, hardly any event is in no solution."""


def stream_predicates(plans: Iterable[QueryPlan], iri: str) -> tuple[str, ...] | None:
    """The predicate IRIs, sorted, of the triples of a stream that some plan reads.

    None if some plan may read all triples.
    """
    inputs = [plan.inputs for plan in plans if iri in plan.inputs.streams]
    found: set[str] = set()
    for own in inputs:
        predicates = own.predicates[own.streams.index(iri)]
        if predicates is None:
            return None
        found.update(predicates)
    return tuple(sorted(found))


def stream_patterns(plans: Iterable[QueryPlan], iri: str) -> tuple[Pattern, ...] | None:
    """The graph patterns over a stream: only events with a solution of one of them matter.

    None if other events matter to some plan, too, or to what it reports.
    """
    found: dict[Pattern, None] = {}
    for plan in plans:
        if iri not in plan.inputs.streams:
            continue
        patterns, number = plan.patterns, plan.inputs.streams.index(iri)
        if (
            plan.inputs.windows
            or plan.sequence.needs_instants
            or patterns.memberships
            or not patterns.evaluation.virtual
        ):
            return None
        for gpm in patterns.gpms:
            if number in gpm.streams:
                found[gpm.correlation.core if gpm.correlation else gpm.pattern] = None
        if len(found) > _MOST_PATTERNS:
            return None
    return tuple(found)
