"""Queries that read each other's streams give a bounded run's answers as time advances."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.load import load_kb
from spaseq.plan.families import QueryUnits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.runtime.group_stage import GroupStage
from spaseq.runtime.job.unit_graph import QueryGroup, QueryGroups, reading_order
from tests.construct.test_differential import chain, inputs
from tests.oracle.choices import seeded
from tests.oracle.patterns import nt
from tests.oracle.strategies import Case
from tests.runtime.job.test_unit_graph import query
from tests.sizes import sizes

LONG_AFTER = 10**9


def groups(plans: Sequence[QueryPlan]) -> list[QueryGroup]:
    return [*QueryGroups.of(QueryUnits.of(plans)).every]


def test_groups() -> None:
    plans = reading_order(
        [query("last", "BR"), query("b", "A", "B"), query("alone", "R"), query("c", "R", "C")]
    )
    assert [p.identity.title for p in plans] == ["b", "last", "alone", "c"]
    assert groups(plans) == [
        QueryGroup((0, 1), ("http://e/A", "http://e/R")),
        QueryGroup((2,), ("http://e/R",)),
        QueryGroup((3,), ("http://e/R",)),
    ]


def test_a_query_that_reads_two_others_brings_them_together() -> None:
    plans = [query("b", "R", "B"), query("c", "R", "C"), query("both", "BC"), query("d", "R", "D")]
    assert [group.members for group in groups(plans)] == [(0, 1, 2), (3,)]


@sizes(15, 30, 120)
def test_chains_give_the_answers_of_a_bounded_run(examples: int) -> None:
    read = 0
    for number in range(examples):
        maker, reader, example = chain(seeded(f"group:{number}"))
        plans = reading_order([compile_query(reader, "reader"), compile_query(maker, "maker")])
        expected = [
            (m.query, m.answer)
            for m in spaseq.run([maker, reader], inputs(example), example.kb, "local")
        ]
        found = advanced(plans, example, Random(number))
        for plan, answers in zip(plans, found, strict=True):
            name = plan.identity.register or "query2"
            assert answers == [a for q, a in expected if q == name], (maker, reader)
        read += bool(found[1])
    assert read > examples // 6


def advanced(plans: Sequence[QueryPlan], example: Case, random: Random) -> list[list[Answer]]:
    """Each query's answers, with watermarks that rise in uneven steps, and with restarts."""
    knowledge = load_kb(list(example.kb.items()))
    (group,) = groups(plans)
    stage = GroupStage(QueryUnits.of(plans), group, knowledge)
    matchers = [PatternStage(plan, knowledge) for plan in plans]
    waiting = {iri: list(events) for iri, events in example.streams.items()}
    counters = {iri: InstantCounter() for iri in waiting}
    marks = dict.fromkeys(group.streams, -(2**63) + 1)
    found: list[list[Answer]] = [[] for _ in plans]
    for turn in range(5):
        for iri in group.streams:
            events = waiting.get(iri, [])
            size = len(events) if turn == 4 else random.randint(0, len(events))
            rows = [
                (time, name, [(nt(s), nt(p), nt(o)) for s, p, o in triples])
                for time, name, triples in events[:size]
            ]
            del events[:size]
            if rows:
                batch = batch_from_events(iri, rows, counters[iri])
                for number, matcher in enumerate(matchers):
                    if iri in plans[number].inputs.streams:
                        stage.push(number, matcher.match(batch))
            marks[iri] = (events[0][0] if events else LONG_AFTER) - 1
        for number, answers in stage.advance(marks):
            found[number] += answers
        if random.random() < 0.5:
            other = GroupStage(QueryUnits.of(plans), group, knowledge)
            other.restore(stage.snapshot())
            stage = other
    return found
