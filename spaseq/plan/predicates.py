"""The triples of a stream that some query of a run uses; readers may drop all others."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.plan.query_plan import QueryPlan


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
