"""How large the state of one bucket may become, and what is said when it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spaseq.errors import RunError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch


@dataclass(frozen=True, slots=True)
class StateLimits:
    """Of each bucket of each query: partial matches that wait, and bytes in the state store."""

    rows: int = 10_000_000
    bytes: int = 2**30

    def check(
        self,
        plan: QueryPlan,
        bucket: int,
        rows: int,
        size: int,
        recent: Callable[[], SolutionBatch],
    ) -> None:
        """See that a bucket is within the limits.

        Args:
            rows: its partial matches.
            size: its bytes in the state store.
            recent: gives the solutions that came last, of which most is said to be the reason.

        Raises:
            RunError: it is not; the message names the query, the fullest key and the step.
        """
        if rows <= self.rows and size <= self.bytes:
            return
        found = f"{rows:,} partial matches" if rows > self.rows else f"{size:,} bytes of state"
        limit = self.rows if rows > self.rows else self.bytes
        last = recent()
        raise RunError(
            f"query {plan.name} has {found} in one bucket ({bucket}), more than the limit of "
            f"{limit:,}: {_key(plan, last)}{_step(plan, last)}. Shorten WITHIN, add a condition"
            " that ties the steps together, or raise the limit (--max-state-rows, "
            "--max-state-bytes)"
        )


def _key(plan: QueryPlan, recent: SolutionBatch) -> str:
    """The key that most of the solutions have."""
    if not plan.key:
        return f"it has no key ({plan.key_reason}), so all is in one bucket"
    if not len(recent):
        return f"its key is {', '.join(f'?{v}' for v in plan.key)}"
    texts = [recent.texts(v) for v in plan.key]
    counts: dict[tuple[str | None, ...], int] = {}
    for key in zip(*texts, strict=True):
        counts[key] = counts.get(key, 0) + 1
    most = max(counts, key=lambda key: counts[key])
    named = ", ".join(f"?{v} = {text}" for v, text in zip(plan.key, most, strict=True))
    return f"most of what came last is of the key {named}"


def _step(plan: QueryPlan, recent: SolutionBatch) -> str:
    """The step that most of the solutions are of."""
    gpms = recent.gpm[recent.gpm != BARE]
    if not len(gpms):
        return ""
    numbers, counts = np.unique(gpms, return_counts=True)
    return f", and of the step {plan.gpms[int(numbers[counts.argmax()])].name}"
