"""How much an evaluator has looked at: what its speed depends on, counted rather than timed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WorkCounts:
    """Counts of one process, from the start on; a snapshot does not keep them.

    `candidates` are the solutions looked at beside a partial match (for registers, a run that
    begins counts as one), `conditions` the FILTERs between events that were evaluated, `searches`
    the times that a match of a negated step was looked for.
    """

    candidates: int = 0
    conditions: int = 0
    searches: int = 0
