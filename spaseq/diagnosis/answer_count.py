"""How many answers a run over the observed rows has."""

from __future__ import annotations

from collections.abc import Callable

from spaseq.algebra.answers import Answer
from spaseq.diagnosis.observed import Observed, ignored
from spaseq.diagnosis.search import SearchTime, answers_in_pieces
from spaseq.options import StageOptions
from spaseq.stages.sequence import SequenceStage

COUNT_SECONDS = 6.0
"""The processor time in which the answers are counted."""


def answer_count(
    observed: Observed,
    options: StageOptions,
    counts: Callable[[Answer], bool] | None = None,
    until: int | None = None,
) -> tuple[int, bool]:
    """The number of answers, and whether that is all of them.

    Args:
        observed: the rows.
        options: those of the run.
        counts: which answers count; None for all.
        until: if given, only answers that are certain when all streams have come to this time (ms).
    """
    plan = observed.question.plan
    stage = SequenceStage(plan, options, observed.knowledge, ignored)
    rows = observed.rows if plan.sequence.needs_instants else observed.solutions
    count = 0
    time = SearchTime(COUNT_SECONDS)
    for answers in answers_in_pieces(stage, rows, time, until):
        if answers is None:
            return count, False
        count += len(answers) if counts is None else sum(map(counts, answers))
    return count, True
