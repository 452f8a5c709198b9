"""Stage 1 for single events agrees with stage 1 over columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spaseq.automaton.run.event_rows import EventRows, batch_of
from spaseq.compile import compile_query
from spaseq.errors import QueryError
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.patterns.conjunction import conjunction
from spaseq.gpm.single_event.event_pattern import EventPattern
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.limits import Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.in_memory.program_events import batch_from_events
from spaseq.rdf.inputs.bad_input import BadInput
from tests.gpm import patterns as p
from tests.gpm.graphs import PROLOGUE, knowledge_of

S, T = "http://e/s", "http://e/t"

HEADS = [
    "SELECT * WITHIN 1 HOURS",
    "SELECT * WITHIN 3 EVENTS",
    "SELECT STRICT * WITHIN 1 HOURS PARTITION BY (?x)",
    "SELECT ?x WITHIN 1 HOURS PARTITION BY (?x)",
]
SEQUENCES = ["A; B", "A, B", "A; B!; A", "A!; B"]

groups = st.one_of(
    p.basic_groups, p.groups, p.any_groups, p.exists_groups, p.graph_groups, p.path_groups
)
typed = st.sampled_from(["{ ?x :p 1 }", "{ ?x :p ?y FILTER (?y < 2) }", "{ ?x :q ?y ; :p ?z }"])


def query(head: str, sequence: str, a: str, b: str) -> str:
    return (
        f"{PROLOGUE} {head} FROM STREAM S <{S}> FROM STREAM T <{T}> "
        f"FROM NAMED <http://e/kb0> FROM NAMED <http://e/kb1> FROM NAMED <http://e/kb2> "
        f"SEQ({sequence}) {{ DEFINE GPM A ON S {a} DEFINE GPM B ON S, T {b} }}"
    )


def rows(plan: QueryPlan, batch: EventRows | SolutionBatch | None) -> list[Any]:
    """The rows that stage 2 gets, without order."""
    if batch is None:
        return []
    if isinstance(batch, EventRows):
        batch = batch_of(
            batch.rows(), [g.variables for g in plan.patterns.gpms], plan.patterns.columns
        )
    columns: list[Any] = [batch.stream, batch.time, batch.k, batch.gpm]
    found = [c.tolist() for c in columns] + [batch.event.to_pylist()]
    found += [batch.texts(v) for v in sorted(batch.values)]
    for v in sorted(batch.numbers):
        number = batch.numbers[v]
        known = np.where(number.kind == 0, 0, number.value)  # NaN is not equal to itself
        found += [known.tolist(), number.kind.tolist()]
    return sorted(zip(*found, strict=True), key=repr)


@given(
    st.sampled_from(HEADS),
    st.sampled_from(SEQUENCES),
    st.one_of(groups, typed),
    st.one_of(groups, typed),
    p.events,
    p.kbs,
)
@settings(max_examples=100, deadline=None)
def test_single_events_have_the_rows_of_batches(head, sequence, a, b, events, kb):
    try:
        plan = compile_query(query(head, sequence, a, b))
    except QueryError:
        assume(False)
    matcher = PatternStage(plan, knowledge_of(kb))
    single = SingleEventStage(plan, matcher)
    for iri in (S, T):
        given = [(1000 * (i // 2), f"http://e/g{i}", t) for i, t in enumerate(events)]
        batch = batch_from_events(iri, given, InstantCounter())
        counter = InstantCounter(ordered=True)
        found = [
            row
            for time, name, triples in given
            for row in rows(plan, single.match(iri, time, counter.next(time), name, triples))
        ]
        assert sorted(found, key=repr) == rows(plan, matcher.match(batch))


@pytest.mark.parametrize(
    ("pattern", "whole"),
    [
        ("{ ?x :p ?y ; :q [] FILTER (?y > 1) }", True),
        ("{ ?x :p ?y { ?y :q ?z FILTER (?z > 1) } }", True),
        ("{ }", True),
        ("{ ?x :p ?y OPTIONAL { ?x :q ?z } }", False),
        ("{ ?x :p ?y FILTER (RAND() < 2) }", False),
        ("{ ?x :p ?y FILTER EXISTS { ?x :q ?z } }", False),
        ("{ ?x :p+ ?y }", False),
        ("{ FILTER (1 > 2) }", False),
    ],
)
def test_what_is_done_without_columns(pattern: str, whole: bool) -> None:
    plan = compile_query(query(HEADS[0], "A", pattern, "{ ?x :p ?y }"))
    parts = conjunction(plan.patterns.gpms[0].pattern)
    assert EventPattern(parts, plan.expressions).is_whole == whole


def test_an_event_that_may_exceed_a_limit_is_matched_as_in_a_batch() -> None:
    """Of nine pairs six pass the condition; the limit is eight, and counts all pairs."""
    pattern = "{ ?x :p ?y . ?z :p ?y FILTER (?x != ?z) }"
    plan = compile_query(query(HEADS[0], "A", pattern, pattern))
    triples = [(f"<http://e/s{i}>", "<http://e/p>", "<http://e/o>") for i in range(3)]
    for solutions, count in ((9, 6), (8, 0)):
        bad: list[BadInput] = []
        limits = Limits(solutions=solutions)
        stage = PatternStage(plan, knowledge_of({}), bad.append, limits)
        found = SingleEventStage(plan, stage).match(S, 0, 0, None, triples)
        assert len(rows(plan, found)) == count
        assert len(bad) == (not count)
