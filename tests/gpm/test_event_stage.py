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
from spaseq.gpm.single_event.event_graph import EventGraph
from spaseq.gpm.single_event.event_operators import EventOperators
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.limits import Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.program_events import batch_from_events
from spaseq.render.plan_text import needs_columns, pushed_text
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

ordered = st.builds(
    "{{ ?x :p ?z {{ SELECT {} ?x ?y WHERE {} ORDER BY {} {} }} }}".format,
    st.sampled_from(["", "DISTINCT"]),
    p.any_groups,
    st.sampled_from(["?x ?y", "DESC(?y) ?x", "?y DESC(?x)", "DESC(str(?y)) ?x ?y"]),
    st.sampled_from(["", "LIMIT 1", "LIMIT 2", "OFFSET 1", "LIMIT 1 OFFSET 1", "LIMIT 0"]),
)
aggregated = st.builds(
    "{{ {{ SELECT ?x ({} AS ?n) WHERE {} GROUP BY ?x {} }} }}".format,
    st.sampled_from(
        [f"{f}({d} {v})" for f in ("SUM", "AVG", "MIN", "MAX", "COUNT")
         for d in ("", "DISTINCT") for v in ("?y", "?y * 0.1", "str(?y)")]
        + ["COUNT(DISTINCT *)", "COUNT(*)"]
    ),
    p.any_groups,
    st.sampled_from(["", "HAVING (COUNT(?y) > 1)"]),
)  # fmt: skip
sub_selects = st.one_of(p.subselect_groups, ordered, aggregated)
groups = st.one_of(
    p.basic_groups,
    p.groups,
    p.any_groups,
    p.exists_groups,
    p.graph_groups,
    p.path_groups,
    sub_selects,
)
typed = st.sampled_from(["{ ?x :p 1 }", "{ ?x :p ?y FILTER (?y < 2) }", "{ ?x :q ?y ; :p ?z }"])


def query(head: str, sequence: str, a: str, b: str) -> str:
    return (
        f"{PROLOGUE} {head} FROM STREAM S <{S}> FROM STREAM T <{T}> "
        f"FROM NAMED <http://e/kb0> FROM NAMED <http://e/kb1> FROM NAMED <http://e/kb2> "
        f"SEQ({sequence}) {{ DEFINE GPM A ON S {a} DEFINE GPM B ON S, T {b} }}"
    )


def rows(plan: QueryPlan, batch: EventRows | SolutionBatch | None) -> list[Any]:
    """The rows that stage 2 gets, without order.

    The rows of BARE are a set. So are the rows of a negated GPM that some partitions share.
    """
    if batch is None:
        return []
    if isinstance(batch, EventRows):
        variables = [*plan.patterns.row_variables, plan.sequence.partition]
        batch = batch_of(batch.rows(), variables, plan.patterns.columns)
    columns: list[Any] = [batch.stream, batch.time, batch.k, batch.gpm]
    found = [c.tolist() for c in columns] + [batch.event.texts()]
    found += [batch.texts(v) for v in sorted(batch.values)]
    for v in sorted(batch.numbers):
        number = batch.numbers[v]
        known = np.where(number.kind == 0, 0, number.value)  # NaN is not equal to itself
        found += [known.tolist(), number.kind.tolist()]
    each = [*zip(*found, strict=True)]
    partition = plan.sequence.partition
    sets = {BARE, *(i for i, g in enumerate(plan.patterns.gpms) if not g.certain >= {*partition})}
    once = {row for row in each if row[3] in sets}
    return sorted([*once, *(row for row in each if row[3] not in sets)], key=repr)


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
            for graph in [EventGraph(triples)]
            for row in rows(plan, single.match(iri, time, counter.next(time), name, graph))
        ]
        assert sorted(found, key=repr) == rows(plan, matcher.match(batch))


GROUPS = [
    "(AVG(?y) AS ?n) { EVENT { ?x :p ?y } }",
    "?x (MAX(?y) AS ?n) (COUNT(*) AS ?m) { EVENT { ?x :p ?y } } GROUP BY ?x",
    "(COUNT(DISTINCT ?y) AS ?n) (SUM(?y * 2) AS ?m) { EVENT { [] :p ?y } }",
    "(GROUP_CONCAT(?z) AS ?n) { EVENT { ?x :p ?y OPTIONAL { ?x :q ?z } } }",
    "?y (COUNT(?x) AS ?n) { EVENT { { ?x :p ?y } UNION { ?x :q ?y } } } GROUP BY ?y",
]


@given(st.sampled_from(GROUPS), st.booleans(), p.events)
@settings(max_examples=150, deadline=None)
def test_single_events_of_windows_have_the_rows_of_batches(group, has_partition, events):
    text = f"""{PROLOGUE} SELECT * WITHIN 1 HOURS {"PARTITION BY (?k)" if has_partition else ""}
    FROM STREAM S <{S}> FROM WINDOW W ON S RANGE 1 MINUTES {"KEY { ?k :q [] }" * has_partition}
    WHERE {{ SEQ(A) DEFINE GPM A ON W {{ {{ SELECT {group} }} }} }}"""
    plan = compile_query(text)
    matcher = PatternStage(plan, knowledge_of({}))
    single = SingleEventStage(plan, matcher)
    given = [(1000 * i, f"http://e/g{i}", t) for i, t in enumerate(events)]
    found = []
    for time, name, triples in given:
        rows_of_event = single.match(S, time, 0, name, EventGraph(triples))
        assert not isinstance(rows_of_event, SolutionBatch)
        found += rows(plan, rows_of_event)
    batch = batch_from_events(S, given, InstantCounter())
    assert sorted(found, key=repr) == rows(plan, matcher.match(batch))


@pytest.mark.parametrize(
    ("pattern", "whole"),
    [
        ("{ ?x :p ?y ; :q [] FILTER (?y > 1) }", True),
        ("{ ?x :p ?y { ?y :q ?z FILTER (?z > 1) } }", True),
        ("{ }", True),
        ("{ ?x :p ?y OPTIONAL { ?x :q ?z FILTER (?z > ?y) } }", True),
        ("{ { ?x :p ?y } UNION { ?x :q ?y } MINUS { ?x :r ?y } }", True),
        ("{ ?x :p ?y BIND (?y + 1 AS ?z) VALUES ?y { 1 2 } }", True),
        ("{ ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER (?z > ?y) } }", True),
        ("{ ?x :p ?y OPTIONAL { GRAPH <http://e/kb0> { ?x :q ?z } } }", True),
        ("{ FILTER (1 > 2) }", True),
        ("{ ?x :p ?y FILTER (RAND() < 2) }", False),
        ("{ ?x :p ?y BIND (BNODE() AS ?z) }", False),
        ("{ ?x :p ?y FILTER EXISTS { ?x :q ?z OPTIONAL { ?z :r ?y } } }", True),
        ("{ ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER NOT EXISTS { ?z :r ?y } } }", True),
        ("{ ?x :p ?y FILTER EXISTS { ?x :q ?z OPTIONAL { ?z :r+ ?y } } }", False),
        ("{ ?x :p ?y FILTER EXISTS { GRAPH ?g { ?x :q ?z OPTIONAL { ?z :r ?y } } } }", False),
        ("{ ?x :p+ ?y }", False),
        ("{ { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x } }", True),
        ("{ { SELECT ?x (GROUP_CONCAT(?y) AS ?n) { ?x :p ?y } GROUP BY ?x } }", False),
        ("{ { SELECT ?x { ?x :p ?y } ORDER BY (EXISTS { ?y :q ?z }) LIMIT 1 } }", False),
    ],
)
def test_what_is_done_without_columns(pattern: str, whole: bool) -> None:
    plan = compile_query(query(HEADS[0], "A", pattern, "{ ?x :p ?y }"))
    evaluator = PatternStage(plan, knowledge_of({})).evaluator(0)
    assert EventOperators(evaluator, plan.expressions, 1000).pattern().is_whole == whole
    assert pushed_text(plan).startswith("without columns" if whole else "in columns where")


@given(groups, p.kbs)
@settings(max_examples=60, deadline=None)
def test_explain_says_what_needs_columns(pattern: str, kb: Any) -> None:
    """Beside that, only a part of a large knowledge base needs them."""
    try:
        plan = compile_query(query(HEADS[0], "A", pattern, "{ ?x :p ?y }"))
    except QueryError:
        assume(False)
    gpm = plan.patterns.gpms[0]
    core = gpm.pattern if gpm.correlation is None else gpm.correlation.core
    evaluator = PatternStage(plan, knowledge_of(kb)).evaluator(0)
    operators = EventOperators(evaluator, plan.expressions, 100_000)
    assert operators.pattern().is_whole == (needs_columns(core) is None)


def test_an_event_that_may_exceed_a_limit_is_matched_as_in_a_batch() -> None:
    """Of nine pairs six pass the condition; the limit is eight, and counts all pairs."""
    pattern = "{ ?x :p ?y . ?z :p ?y FILTER (?x != ?z) }"
    plan = compile_query(query(HEADS[0], "A", pattern, pattern))
    triples = [(f"<http://e/s{i}>", "<http://e/p>", "<http://e/o>") for i in range(3)]
    for solutions, count in ((9, 6), (8, 0)):
        bad: list[BadInput] = []
        limits = Limits(solutions=solutions)
        stage = PatternStage(plan, knowledge_of({}), bad.append, limits)
        found = SingleEventStage(plan, stage).match(S, 0, 0, None, EventGraph(triples))
        assert len(rows(plan, found)) == count
        assert len(bad) == (not count)


V = [("<http://e/s>", "<http://e/p>", f"<http://e/r{i}>") for i in range(3)]
RATED = "?x :p ?r . ?r :q ?y"


def rated(*values: str) -> list[tuple[str, str, str]]:
    """An event whose thing :s has the ratings :r0, :r1 and so on, with these values."""
    return [
        *V[: len(values)],
        *((r, "<http://e/q>", v) for (_, _, r), v in zip(V, values, strict=False)),
    ]


def number(text: str, kind: str = "integer") -> str:
    return f'"{text}"^^<http://www.w3.org/2001/XMLSchema#{kind}>'


@pytest.mark.parametrize(
    ("select", "values", "expected"),
    [
        ("(COUNT(*) AS ?n)", ["1", "1"], number("2")),
        ("(COUNT(DISTINCT ?y) AS ?n)", ["1", "1"], number("1")),
        ("(SUM(?y) AS ?n)", ["1", "1", "5"], number("7")),
        ("(AVG(DISTINCT ?y) AS ?n)", ["1", "1", "3"], number("2", "decimal")),
        ("(MAX(?y) AS ?n)", ["1", "3", "2"], number("3")),
        ("(SAMPLE(?y) AS ?n)", ["1", "1"], number("1")),
        ("(SAMPLE(?y) AS ?n)", ["1", "2"], None),
        ("(MIN(?y) AS ?n)", ["1", "01"], None),
        ("(MIN(?y) AS ?n)", ["1", "02", "2"], number("1")),
        ("(SUM(?y * 0.1e0) AS ?n)", ["1", "2", "3"], None),
    ],
)
def test_columns_are_needed_where_the_order_of_solutions_decides(
    select: str, values: list[str], expected: str | None
) -> None:
    """`expected` is the aggregate, None if columns make it."""
    pattern = f"{{ {{ SELECT ?x {select} {{ {RATED} }} GROUP BY ?x }} }}"
    plan = compile_query(query(HEADS[0], "A", pattern, "{ ?x :z ?y }"))
    single = SingleEventStage(plan, PatternStage(plan, knowledge_of({})))
    found = single.match(S, 0, 0, None, EventGraph(rated(*map(number, values))))
    assert isinstance(found, SolutionBatch if expected is None else EventRows)
    if expected is not None:
        ((_, (*_, solution)),) = found.rows()
        assert set(solution) == {"<http://e/s>", expected}


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("ORDER BY DESC(?y) LIMIT 1", ["3"]),
        ("ORDER BY ?y LIMIT 1 OFFSET 1", ["2"]),
        ("ORDER BY ?y OFFSET 1", ["2", "3"]),
        ("LIMIT 3", ["1", "2", "3"]),
        ("ORDER BY DESC(?y > 1) LIMIT 2", ["2", "3"]),
        ("ORDER BY (?y > 1) LIMIT 2", None),
        ("LIMIT 2", None),
        ("ORDER BY ?y LIMIT 0", []),
    ],
)
def test_columns_are_needed_where_a_limit_cuts_what_is_equal(
    end: str, expected: list[str] | None
) -> None:
    pattern = f"{{ {{ SELECT ?y {{ {RATED} }} {end} }} }}"
    plan = compile_query(query(HEADS[0], "A", pattern, "{ ?x :z ?y }"))
    single = SingleEventStage(plan, PatternStage(plan, knowledge_of({})))
    found = single.match(S, 0, 0, None, EventGraph(rated(*map(number, ["2", "3", "1"]))))
    if expected:
        assert isinstance(found, EventRows)
        assert sorted(row[1][-1] for row in found.rows()) == [(number(y),) for y in expected]
    else:
        assert found is None if expected == [] else isinstance(found, SolutionBatch)
