"""Errors for a bucket whose state exceeds a limit; the message names the largest parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import RunError, TooManyWaiting
from spaseq.lang.variables import is_made
from spaseq.options import StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.terms.times import format_time


def check_size(
    limits: StateLimits,
    plan: QueryPlan,
    bucket: int,
    size: int,
    recent: Callable[[], SolutionBatch],
) -> None:
    """Check that the stored state of a bucket is within its limit.

    Args:
        limits: the limits.
        plan: of the query.
        bucket: the bucket's number.
        size: the bucket's bytes in the state store.
        recent: returns the latest solutions; the message names their most frequent key and step.

    Raises:
        RunError: the state is larger.
    """
    if size > limits.bytes:
        raise RunError(
            _message(plan, bucket, f"{size:,} bytes of state", limits.bytes, recent())
            + "--max-state-bytes)"
        )


def too_many_waiting(
    limits: StateLimits,
    plan: QueryPlan,
    query: int,
    bucket: int,
    excess: Excess,
    recent: SolutionBatch,
) -> TooManyWaiting:
    """The error for a bucket with too many partial matches; other arguments are as above.

    Args:
        query: the query's number in the run.
        excess: the instant at which there were too many.
    """
    what = f"{excess.count:,} partial matches"
    text = _message(plan, bucket, what, limits.rows, recent, format_time(excess.instant[0]))
    return TooManyWaiting(f"{text}--max-state-rows)", query, excess.instant)


def _message(
    plan: QueryPlan, bucket: int, what: str, limit: int, recent: SolutionBatch, time: str = ""
) -> str:
    """The text of an error, up to the name of the option."""
    at = f" after the events of {time}" if time else ""
    return (
        f"query {plan.identity.name} has {what} in one bucket ({bucket}){at}, more than the limit "
        f"of {limit:,}: {_key(plan, recent)}{_step(plan, recent)}. Shorten WITHIN, add a condition"
        " that ties the steps together, or raise the limit ("
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
