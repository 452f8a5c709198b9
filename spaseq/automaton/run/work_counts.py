"""Counts of the steps that decide an evaluator's speed, so that tests need no timing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WorkCounts:
    """Counts of one process since its start; a snapshot does not keep them.

    `candidates` counts the pairs of a partial match and a solution that were examined (for
    registers, a run that begins counts as one), `conditions` the evaluations of FILTERs between
    events, and `searches` the searches for a match of a negated step.
    """

    candidates: int = 0
    conditions: int = 0
    searches: int = 0
