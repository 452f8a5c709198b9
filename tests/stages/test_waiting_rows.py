"""Rows wait until the evaluator can find a match; the answers are the same."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pytest

from spaseq.algebra.answers import Answer
from spaseq.compile import CompileOptions, compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.families import Family, UnitPlan, families_of
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.stages.sequence import SequenceStage
from spaseq.stages.unit_sequence import UnitSequence
from spaseq.stages.unit_stages import FamilyPatterns
from spaseq.stages.waiting_rows import WaitingRows
from tests.sizes import first_rows_of, sizes
from tests.stages.single_query import SingleQuery
from tests.thresholds import Force

QUERY = """PREFIX : <http://e/> SELECT {form} * WITHIN 5 SECONDS PARTITION BY (?x)
    FROM STREAM S <http://e/s> WHERE {{ SEQ({steps})
    DEFINE GPM A ON S {{ ?x :a ?v FILTER (?v > {least}) }}
    DEFINE GPM B ON S {{ ?x :b ?w FILTER (?w < {most}) }}
    DEFINE GPM C ON S {{ ?x :c ?u }} }}"""

EMPTY = KnowledgeBase.empty()

Drawn: TypeAlias = "tuple[int, int, str, int]"
"""An event: its time (ms), a subject, a predicate and a value."""


def batch_of(events: Sequence[Drawn]) -> EventBatch:
    """Some events."""
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    given = [
        (time, None, [(f"<http://e/{x}>", f"<http://e/{p}>", number.format(value))])
        for time, x, p, value in events
    ]
    return batch_from_events("http://e/s", given, InstantCounter())


class Member:
    """A family of four queries, whose rows wait or do not."""

    def __init__(self, steps: str, form: str, waits: bool) -> None:
        options = CompileOptions(several=True)
        given = [(i, 9 - i) for i in range(4)]
        texts = [QUERY.format(steps=steps, form=form, least=a, most=b) for a, b in given]
        plans = [compile_query(text, f"q{i}", options) for i, text in enumerate(texts)]
        self.family: Family
        (self.family,) = families_of(plans)
        self.plans = dict(enumerate(plans))
        self.patterns = FamilyPatterns(self.family, self.plans, EMPTY)
        self.sequence = UnitSequence(UnitPlan(self.plans, self.family))
        if not waits:
            self.sequence._waiting = None
        self.evaluated = 0

    def rows(self, events: Sequence[Drawn]) -> SolutionBatch:
        return self.patterns.match(batch_of(events))

    def pushed(self, events: Sequence[Drawn], watermark: int) -> list[str]:
        self.sequence.push(self.rows(events))
        return self.shown(self.sequence.advance(watermark))

    def closed(self) -> list[str]:
        return self.shown(self.sequence.close())

    @staticmethod
    def shown(found: object) -> list[str]:
        assert isinstance(found, dict)
        return sorted(
            repr((number, answer))
            for number, some in found.items()
            for part in some
            for answer in part
        )


class Alone:
    """A query by itself, whose rows wait or do not."""

    def __init__(self, steps: str, form: str, waits: bool) -> None:
        self.plan = compile_query(QUERY.format(steps=steps, form=form, least=3, most=6))
        self.patterns = PatternStage(self.plan, EMPTY)
        self.stage: SingleQuery | SequenceStage
        self.stage = SingleQuery(self.plan) if waits else SequenceStage(self.plan)

    def pushed(self, events: Sequence[Drawn], *how: Any) -> list[Answer]:
        """The answers of `advance`, which gets what follows the events."""
        self.stage.push(self.patterns.match(batch_of(events)))
        return [*self.stage.advance(*how)]


@pytest.fixture(autouse=True)
def _two_are_enough(force: Force) -> None:
    force("family_queries=2")


def drawn(seed: int) -> list[tuple[list[Drawn], int]]:
    """Batches of events, each with its watermark; some events are not in order."""
    choices, found, time = random.Random(seed), [], 0
    for _ in range(12):
        events = []
        for _ in range(choices.choice([0, 1, 1, 3, 8])):
            time += choices.choice([0, 100, 1000, 4000, 5000, 5001, 9000])
            late = choices.choice([0, 0, 500])
            events.append(
                (time - late, choices.randrange(3), choices.choice("abc"), choices.randrange(9))
            )
        found.append((events, time - 500))
    return found


def in_order(batches: list[tuple[list[Drawn], int]]) -> Iterator[tuple[list[Drawn], int]]:
    """The batches; an event stays only if it is later than all events of earlier batches."""
    last = -1
    for events, watermark in batches:
        later = sorted(event for event in events if event[0] > last)
        last = max([last, *(event[0] for event in later)])
        yield later, watermark


SHAPES = [
    ("A; B", ""),
    ("A: B", "NEXT"),
    ("A; C!; B", ""),
    ("C!; A; B", ""),
    ("A; B; C!", ""),
    ("A; B++", ""),
    ("A; (B | C)", ""),
    ("A: B+", "MAX"),
    ("A: B", "LAST"),
    ("(A AND B)", ""),
]


@pytest.mark.each_once
@sizes(3, 6)
@pytest.mark.parametrize(("steps", "form"), first_rows_of(SHAPES, 4), ids=str)
@pytest.mark.parametrize("most", [8192, 2], ids=["all", "few"])
def test_answers_come_when_they_come_without_waiting(
    steps: str, form: str, most: int, force: Force, examples: int
) -> None:
    force(f"waiting_rows={most}")
    force("waiting_batches=2")
    answered = 0
    for seed in range(examples):
        first, second = Member(steps, form, waits=True), Member(steps, form, waits=False)
        choices = random.Random(seed)
        for events, watermark in drawn(seed):
            found = first.pushed(events, watermark)
            assert found == second.pushed(events, watermark)
            answered += len(found)
            if choices.random() < 0.1:
                assert first.sequence.live_runs() >= 0  # the evaluator gets all rows
            if choices.random() < 0.1:
                state, first = first.sequence.snapshot(), Member(steps, form, waits=True)
                first.sequence.restore(state)
        assert first.closed() == second.closed()
    assert answered > 0


@pytest.mark.each_once
@sizes(5, 12)
@pytest.mark.parametrize(("steps", "form"), first_rows_of(SHAPES, 4), ids=str)
@pytest.mark.parametrize("most", [64, 2], ids=["all", "few"])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_query_by_itself_has_the_same_answers(
    steps: str, form: str, most: int, ahead: bool, force: Force, examples: int
) -> None:
    """With `ahead`, events come in order of time, as its promise asks for."""
    force(f"waiting_query={most}")
    force("waiting_batches=2")
    answered = 0
    for seed in range(examples):
        first, second = Alone(steps, form, waits=True), Alone(steps, form, waits=False)
        choices = random.Random(seed)
        for events, watermark in in_order(drawn(seed)) if ahead else drawn(seed):
            found = first.pushed(events, watermark, ahead)
            assert found == second.pushed(events, watermark, ahead)
            answered += len(found)
            if choices.random() < 0.1:
                assert first.stage.live_runs() >= 0  # the evaluator gets all rows
            if choices.random() < 0.1:
                state, first = first.stage.snapshot(), Alone(steps, form, waits=True)
                first.stage.restore(state)
        assert [*first.stage.close()] == [*second.stage.close()]
    assert answered > 0


def test_rows_without_a_partner_wait_and_leave_with_their_window() -> None:
    member = Member("A; B", "", waits=True)
    waiting = member.sequence._waiting
    assert isinstance(waiting, WaitingRows)
    assert member.pushed([(0, 1, "a", 9), (1000, 2, "b", 0)], 1000) == []
    assert len(waiting) == 8  # a row for each member
    assert member.pushed([], 7000) == [] and len(waiting) == 0
    assert member.pushed([(8000, 1, "b", 0)], 8000) == [] and len(waiting) == 4
    assert member.pushed([(9000, 1, "a", 9), (9500, 1, "b", 0)], 9500) != []
    assert len(waiting) == 0


def test_many_batches_that_wait_become_one(force: Force) -> None:
    force("waiting_batches=3")
    alone = Alone("A; B", "", waits=True)
    assert isinstance(alone.stage, SingleQuery)
    waiting = alone.stage.unit._waiting
    assert waiting is not None
    most = 0
    for number in range(20):
        assert alone.pushed([(1000 * number, number, "a", 9)], 1000 * number) == []
        most = max(most, len(waiting.waiting()))
        texts = [len(rows.values["x"].terms) for rows in waiting.waiting()]
        assert sum(texts) <= 12  # no more terms than the rows of two windows have
    assert most == 3 and 6 <= len(waiting) <= 9
    assert len(alone.pushed([(20_000, 17, "b", 0)], 20_000)) == 1


def test_a_family_with_one_required_gpm_does_not_wait() -> None:
    assert Member("A; B?", "", waits=True).sequence._waiting is None
