"""Runs do not wait for solutions that the batch does not have, and answers stay equal."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from spaseq.algebra.answers import Answer
from spaseq.automaton.run.coming_rows import ComingRows
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, batch, letters, plans, query

SEQUENCES = [
    "A: B: C",
    "A; B+; C",
    "A: B*[:]: C?",
    "A, B+, C",
    "((A; B) AND C)",
    "(A AND (B: C))",
    "A: (B; C | C)+",
    "A; B++; C",
    "A; B!; C?; D",
    "A; B++",
    "A+ UNTIL B: C",
]


def registers(sequence: str, text: str, window: str) -> tuple[QueryPlan, list[Event]]:
    gpms, events = letters(text, "ABCD")
    return plans(query(sequence, gpms, window))["registers"], events


def pushed(plan: QueryPlan, events: Sequence[Event], size: int) -> list[Answer]:
    """The answers if the events come in batches of a size."""
    stage, answers = SequenceStage(plan, StageOptions()), list[Answer]()
    for first in range(0, len(events), size):
        some = events[first : first + size]
        stage.push(batch(plan, some))
        answers += stage.advance(some[-1].time)
    return [*answers, *stage.close()]


@pytest.mark.parametrize("window", ["4 SECONDS", "6 SECONDS TUMBLING"])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_answers_do_not_depend_on_what_is_known_to_come(sequence: str, window: str) -> None:
    random = Random(f"{sequence} {window}")
    text = " ".join(f"{random.choice('aabbcd')}{i}" for i in range(120))
    plan, events = registers(sequence, text, window)
    expected = pushed(plan, events, 1)
    assert expected
    for size in (7, 120):
        assert pushed(plan, events, size) == expected


def test_a_run_waits_if_its_window_is_open_or_the_batch_has_a_solution() -> None:
    plan, events = registers("A: B", "a1 a2 b3 a4 c5 c6 c7 a8 c9", "2 SECONDS")
    stage = SequenceStage(plan, StageOptions())
    stage.push(batch(plan, events))
    assert len(stage.advance(8000)) == 2
    # The start; a1, a2, which meet b3; a8, whose window is open. In vain: a4.
    (partition,) = stage._sequencer._partitions.values()
    assert len([*partition._waiting]) == 4


def test_solutions_after_the_current_instant_count_within_the_window() -> None:
    plan, events = registers("A: B", "a1 b2 c3 c4 b5 c6", "2 SECONDS")
    rows = batch(plan, events)
    coming = ComingRows.of(rows, 5000, plan.sequence.window)
    assert coming is not None
    a, b = 0, 1
    met = []
    for now in range(4):
        coming.now = 1000 * now
        met.append((coming.may_meet(a, coming.now), coming.may_meet(b, coming.now)))
    assert met == [(False, True), (False, False), (False, True), (True, True)]
