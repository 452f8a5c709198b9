"""The triples of a stream that some query of a run reads; readers may drop all others."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.algebra.nodes import Pattern
from spaseq.plan.query_plan import QueryPlan

_MOST_PATTERNS = 64
"""With more patterns, nearly every event has some solution."""


def stream_predicates(plans: Iterable[QueryPlan], iri: str) -> tuple[str, ...] | None:
    """The predicate IRIs, sorted, of the triples of a stream that some plan reads.

    None if some plan may read all triples.
    """
    inputs = [plan.inputs for plan in plans if iri in plan.inputs.streams]
    read: set[str] = set()
    for plan_inputs in inputs:
        predicates = plan_inputs.predicates[plan_inputs.streams.index(iri)]
        if predicates is None:
            return None
        read.update(predicates)
    return tuple(sorted(read))


def stream_patterns(plans: Iterable[QueryPlan], iri: str) -> tuple[Pattern, ...] | None:
    """The graph patterns over a stream: only events with a solution of one of them matter.

    None if other events affect some plan or its reports.
    """
    read: dict[Pattern, None] = {}
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
                read[gpm.core] = None
        if len(read) > _MOST_PATTERNS:
            return None
    return tuple(read)
