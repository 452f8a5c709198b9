"""The limit on partial matches is a fact of the query and the instant, however rows are cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from spaseq.algebra.answers import Answer, Instant
from spaseq.errors import QueryError
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Case, Event, batch, cases, plans, query
from tests.sizes import first_rows_of, sizes
from tests.thresholds import Force

Outcome = tuple[list[Answer], dict[Instant, int]]
"""The answers, and the instant at which the limit was exceeded, with the count."""


def outcome(
    plan: QueryPlan, events: Sequence[Event], most: int | None, cuts: Sequence[int]
) -> Outcome:
    """What a stage gives for events that come in batches, which end before some of the events."""
    stage = SequenceStage(plan, StageOptions(most_waiting=most))
    answers: list[Answer] = []
    for begin, end in pairwise([0, *cuts, len(events)]):
        if begin < end:
            stage.push(batch(plan, events[begin:end]))
            answers += stage.advance(events[begin].time - 1, ahead=True)
    answers += stage.close()
    return answers, {own.instant: own.count for own in stage.exceeded.values()}


def starts(events: Sequence[Event]) -> list[int]:
    """Where an instant begins."""
    return [
        i
        for i in range(1, len(events))
        if (events[i - 1].time, events[i - 1].k) < (events[i].time, events[i].k)
    ]


def assert_the_same_for_all_cuts(
    plan: QueryPlan, events: Sequence[Event], most: int, random: Random
) -> dict[Instant, int]:
    events = sorted(events, key=lambda e: (e.time, e.k, e.stream))
    places = starts(events)
    answers, exceeded = outcome(plan, events, most, places)
    for _ in range(2):
        cuts = sorted(random.sample(places, random.randint(0, len(places))))
        assert outcome(plan, events, most, cuts) == (answers, exceeded)
    assert outcome(plan, events, most, []) == (answers, exceeded)
    free, _ = outcome(plan, events, None, [])
    for instant in exceeded:
        free = [answer for answer in free if answer.end < instant]
    assert answers == free
    return exceeded


@sizes(3, 6, 12)
def test_every_evaluator_fails_at_an_instant_that_does_not_depend_on_batches(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(cases(), st.integers(0, 4), st.randoms(use_true_random=False))
    def check(case: Case, most: int, random: Random) -> None:
        try:
            found = plans(case.text)
        except QueryError:  # no window of events has a negated step at its end
            reject()
        for plan in found.values():
            assert_the_same_for_all_cuts(plan, case.events, most, random)

    check()


LONGER = [
    ("A: B: C", "4 SECONDS"),
    ("A; B: C", "7 SECONDS TUMBLING"),
    ("A: B+: C", "4 SECONDS"),
    ("A, B+, C", "9 SECONDS"),
    ("A: B!; C", "9 EVENTS"),
    ("(A AND B): C", "5 SECONDS"),
    ("A: (B | C)++", "5 SECONDS"),
    ("A; B; C!", "5 SECONDS"),
]


@pytest.mark.each_once
@pytest.mark.parametrize(
    ("related", "most"),
    first_rows_of(
        [
            *((True, 0), (True, 20), (False, 3), (False, 150)),
            *((False, 0), (False, 20), (True, 3), (True, 150)),
        ],
        4,
    ),
)
@pytest.mark.parametrize(("sequence", "window"), first_rows_of(LONGER, 3))
def test_a_longer_stream_fails_at_one_instant(
    sequence: str, window: str, related: bool, most: int, force: Force
) -> None:
    force("limit_room=4")
    random = Random(f"{sequence} {related} {most}")
    gpms = {name: f"?k :is ?{name.lower()}" for name in "ABC"}
    if related:
        gpms["C"] += " FILTER (?c > ?a)"
    events = [
        Event(
            500 * (i // 2) if i % 7 else 500 * i // 2,
            i % 2,
            0,
            {n: [value(random, n) for _ in range(2)] for n in random.sample("ABC", 2)},
        )
        for i in range(60)
    ]
    for plan in plans(query(sequence, gpms, window)).values():
        assert_the_same_for_all_cuts(plan, events, most, random)


def value(random: Random, name: str) -> dict[str, str | None]:
    """A solution about one of some things."""
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    number = f'"{random.randrange(9)}"^^<{integer}>'
    return {"k": f"<k{random.randrange(30)}>", name.lower(): number}


@pytest.mark.parametrize("sequence", ["A; B!", "A; B; C", "A: B+: C", "B!; A; C"])
def test_a_restored_stage_fails_at_the_same_instant(sequence: str) -> None:
    random = Random(sequence)
    gpms = {name: f"?k :is ?{name.lower()}" for name in "ABC"}
    events = [Event(500 * i, 0, 0, {n: [value(random, n)]}) for i, n in enumerate("AABAC" * 8)]
    for plan in plans(query(sequence, gpms, "4 SECONDS")).values():
        for most in (1, 3, 100):
            expected = outcome(plan, events, most, [20])
            options, answers = StageOptions(most_waiting=most), list[Answer]()
            stage = SequenceStage(plan, options)
            for some in (events[:20], events[20:]):
                snapshot, stage = stage.snapshot(), SequenceStage(plan, options)
                stage.restore(snapshot)
                stage.push(batch(plan, some))
                answers += stage.advance(some[0].time - 1, ahead=True)
            answers += stage.close()
            found = {own.instant: own.count for own in stage.exceeded.values()}
            assert (answers, found) == expected
