"""Predicates pushed down to the readers: which triples of a stream any query of a run looks at."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.algebra.predicates import (
    Predicates,
    predicates_of_expression,
    predicates_read,
    together,
)
from spaseq.algebra.schema import Schema
from spaseq.plan.query_plan import GpmPlan, QueryPlan
from spaseq.plan.rules import PUSHED_PREDICATES


def stream_predicates(plans: Iterable[QueryPlan], iri: str) -> tuple[str, ...] | None:
    """The predicate IRIs, sorted, of the triples of a stream that answers may depend on.

    None if they may depend on all, or a plan does not want to push them.
    """
    plans = tuple(plans)
    if any(PUSHED_PREDICATES in plan.disabled for plan in plans if iri in plan.streams):
        return None
    found = together(
        _gpm_predicates(gpm, plan.schema)
        for plan in plans
        for gpm in plan.gpms
        if iri in (plan.streams[stream] for stream in gpm.streams)
    )
    return None if found is None else tuple(sorted(text[1:-1] for text in found))


def _gpm_predicates(gpm: GpmPlan, schema: Schema | None) -> Predicates:
    patterns = [gpm.pattern] if gpm.membership is None else [gpm.pattern, gpm.membership]
    return together(
        [
            *(predicates_read(p, schema) for p in patterns),
            *(predicates_of_expression(e, schema) for e in gpm.conditions),
        ]
    )
