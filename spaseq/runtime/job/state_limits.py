"""Checks the state of a bucket against its limits; the error names the largest parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spaseq.errors import RunError
from spaseq.lang.shapes import is_made
from spaseq.options import StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch


def check_state(
    limits: StateLimits,
    plan: QueryPlan,
    bucket: int,
    rows: int,
    size: int,
    recent: Callable[[], SolutionBatch],
) -> None:
    """Check that a bucket is within its limits.

    Args:
        rows: the bucket's partial matches.
        size: the bucket's bytes in the state store.
        recent: gives the latest solutions; the message names the most frequent key and step.

    Raises:
        RunError: a limit is exceeded; the message names the query, the fullest key and the step.
    """
    if rows <= limits.rows and size <= limits.bytes:
        return
    excess = f"{rows:,} partial matches" if rows > limits.rows else f"{size:,} bytes of state"
    limit = limits.rows if rows > limits.rows else limits.bytes
    last = recent()
    raise RunError(
        f"query {plan.identity.name} has {excess} in one bucket ({bucket}), more than the limit of "
        f"{limit:,}: {_key(plan, last)}{_step(plan, last)}. Shorten WITHIN, add a condition"
        " that ties the steps together, or raise the limit (--max-state-rows, "
        "--max-state-bytes)"
    )


def _key(plan: QueryPlan, recent: SolutionBatch) -> str:
    """The most frequent key, as part of a message."""
    variables = [v for v in plan.sequence.key.variables or () if not is_made(v)]
    if not variables:
        return f"it has no key ({plan.sequence.key.reason}), so all is in one bucket"
    if not len(recent):
        return f"its key is {', '.join(f'?{v}' for v in variables)}"
    texts = [recent.texts(v) for v in variables]
    counts: dict[tuple[str | None, ...], int] = {}
    for key in zip(*texts, strict=True):
        counts[key] = counts.get(key, 0) + 1
    most = max(counts, key=lambda key: counts[key])
    named = ", ".join(f"?{v} = {text}" for v, text in zip(variables, most, strict=True))
    return f"most of what came last is of the key {named}"


def _step(plan: QueryPlan, recent: SolutionBatch) -> str:
    """The most frequent step, as part of a message."""
    gpms = recent.gpm[recent.gpm != BARE]
    if not len(gpms):
        return ""
    numbers, counts = np.unique(gpms, return_counts=True)
    return f", and of the step {plan.patterns.gpms[int(numbers[counts.argmax()])].name}"
