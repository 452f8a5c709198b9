"""The answers of the evaluator in Python do not depend on the size of batches."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from spaseq.algebra.answers import Answer
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


@pytest.mark.each_once
@pytest.mark.parametrize("window", ["4 SECONDS", "6 SECONDS TUMBLING"])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_answers_do_not_depend_on_the_size_of_batches(sequence: str, window: str) -> None:
    random = Random(f"{sequence} {window}")
    text = " ".join(f"{random.choice('aabbcd')}{i}" for i in range(120))
    plan, events = registers(sequence, text, window)
    expected = pushed(plan, events, 1)
    assert expected
    for size in (7, 120):
        assert pushed(plan, events, size) == expected
