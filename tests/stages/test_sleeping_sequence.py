"""A stage says until when time passing gives nothing, and then need not be told of it."""

from __future__ import annotations

import random

import pytest

from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from tests.stages.single_query import SingleQuery

WINDOW_MS = 60_000


def plan_of(
    sequence: str,
    before: str = "WITHIN 1 MINUTES",
    gpms: str = "ABN",
    select: str = "?x",
    condition: str = "",
) -> QueryPlan:
    """The plan of a query over events with the predicates a, b and n; B has a condition."""
    conditions = {"B": condition}
    defined = " ".join(
        f"DEFINE GPM {gpm} ON S {{ ?x <http://e/{gpm.lower()}> ?{gpm.lower()} "
        f"{conditions.get(gpm, '')} }}"
        for gpm in gpms
    )
    return compile_query(
        f"SELECT {select} {before} FROM STREAM S <http://e/s> WHERE {{ SEQ({sequence}) {defined} }}"
    )


SHAPES = {
    "absence": plan_of("A; N!", gpms="AN"),
    "absence after two": plan_of("A; B; N!"),
    "partitions": plan_of("A; N!", "WITHIN 1 MINUTES PARTITION BY ?x", "AN"),
    "tumbling": plan_of("A; N!", "WITHIN 1 MINUTES TUMBLING", "AN"),
    "greedy end": plan_of("A; B+", gpms="AB"),
    "greedy end and absence": plan_of("A; B+; N!"),
    "of events": plan_of("A; N!; B", "WITHIN 3 EVENTS"),
    "two events": plan_of("A; B", gpms="AB"),
    "repeated": plan_of("A+; N!", gpms="AN"),
    "next": plan_of("A; B; N!", select="NEXT ?x"),
    "correlated greedy end": plan_of("A; B++", gpms="AB", condition="FILTER (?b >= ?a)"),
    "correlated, tumbling": plan_of(
        "A; B++", "WITHIN 1 MINUTES TUMBLING", "AB", condition="FILTER (?b >= ?a)"
    ),
}


def rows(plan: QueryPlan, *events: tuple[int, str, str]) -> SolutionBatch:
    """The solutions of events, each a time (ms), a subject and a predicate."""
    triples = [(ms, None, [(f"<http://e/{s}>", f"<http://e/{p}>", '"1"')]) for ms, s, p in events]
    batch = batch_from_events("http://e/s", triples, InstantCounter())
    return PatternStage(plan, KnowledgeBase.empty()).match(batch)


def test_a_stage_sleeps_until_its_window_closes() -> None:
    plan = SHAPES["absence"]
    stage = SingleQuery(plan)
    stage.push(rows(plan, (1000, "x", "a")))
    assert not stage.sleeps(1000)
    for ms in (1000, 2000):
        assert not stage.advance(ms)
    assert stage.sleeps(3000) and stage.sleeps(1000 + WINDOW_MS - 1)
    assert not stage.sleeps(1000 + WINDOW_MS)
    assert [answer.end[0] for answer in stage.advance(1000 + WINDOW_MS)] == [1000 + WINDOW_MS]


def test_rows_and_a_snapshot_wake_it() -> None:
    plan = SHAPES["absence"]
    stage = SingleQuery(plan)
    stage.push(rows(plan, (1000, "x", "a")))
    for ms in (1000, 2000):
        stage.advance(ms)
    other = SingleQuery(plan)
    other.restore(stage.snapshot())
    assert not other.sleeps(3000)
    stage.push(rows(plan, (5000, "x", "n")))
    assert not stage.sleeps(3000)


def test_a_row_that_is_ahead_of_the_watermark_wakes_it_at_its_time() -> None:
    plan = SHAPES["absence"]
    stage = SingleQuery(plan)
    stage.push(rows(plan, (9000, "x", "a")))
    for ms in (1000, 2000, 3000):
        assert not stage.advance(ms)
    assert stage.sleeps(8999)
    assert not stage.sleeps(9000)
    stage.advance(9000)
    assert stage.sleeps(9000 + WINDOW_MS - 1)
    assert [answer.end[0] for answer in stage.advance(9000 + WINDOW_MS)] == [9000 + WINDOW_MS]


@pytest.mark.parametrize("shape", SHAPES)
def test_sleeping_changes_no_answer(shape: str) -> None:
    plan, slept, answered = SHAPES[shape], 0, 0
    for seed in range(4):
        source = random.Random(seed)
        told, sleeping, now = SingleQuery(plan), SingleQuery(plan), 0
        for _ in range(60):
            if source.random() < 0.3:
                events = [
                    (now + source.randint(1, 9000), source.choice("xy"), source.choice("aabbn"))
                    for _ in range(source.randint(1, 3))
                ]
                for stage in (told, sleeping):
                    stage.push(rows(plan, *sorted(events)))
            if source.random() < 0.05:
                sleeping.live_states()
            if source.random() < 0.05:
                data, sleeping = sleeping.snapshot(), SingleQuery(plan)
                sleeping.restore(data)
            now += source.choice([500, 1000, 10_000, 25_000])
            skips = sleeping.sleeps(now)
            slept += skips
            expected = [(a.trace, a.end) for a in told.advance(now)]
            found = [] if skips else [(a.trace, a.end) for a in sleeping.advance(now)]
            assert found == expected, (seed, now)
            answered += len(expected)
    assert answered and slept


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "correlated" in shape])
def test_runs_tell_when_the_first_window_closes(shape: str) -> None:
    plan = SHAPES[shape]
    stage = SingleQuery(plan)
    assert plan.sequence.evaluator.name == "compiled-registers"
    stage.push(rows(plan, (61_000, "x", "a"), (62_000, "x", "b")))
    for ms in (63_000, 64_000):
        assert not stage.advance(ms)
    close = 61_000 + WINDOW_MS - (1000 if "tumbling" in shape else 0)
    assert stage.sleeps(close - 1) and not stage.sleeps(close)
    assert len(stage.advance(close)) == 1
