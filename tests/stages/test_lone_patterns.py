"""Lone queries that are evaluated together have the solutions that each has by itself."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from spaseq.compile import compile_query
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.terms.term import Triple
from spaseq.stages import shared_matching
from spaseq.stages.joint_patterns import LonePatterns
from tests.oracle.choices import seeded
from tests.oracle.strategies import EVERYTHING, case
from tests.sizes import sizes
from tests.thresholds import Force

NOTHING = KnowledgeBase.empty()
STREAM = "http://example.org/stream/1"
NAME = "http://example.org/"


def integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def drawn_events(random: Random, count: int) -> EventBatch:
    """Events over the vocabulary of the oracle; some of their nodes are blank."""
    events: list[tuple[int, str, list[Triple]]] = []
    for i in range(count):
        triples: list[Triple] = []
        for _ in range(random.randrange(4)):
            thing = random.choice([f"<{NAME}o1>", f"<{NAME}o2>", "_:x", "_:y"])
            triples += [
                (thing, f"<{NAME}is>", f"<{NAME}{random.choice('ABCDE')}>"),
                (thing, f"<{NAME}v>", integer(random.randrange(4))),
                (thing, f"<{NAME}k>", random.choice([f"<{NAME}k1>", "_:k"])),
                (thing, f"<{NAME}w>", integer(random.randrange(3))),
            ]
        events.append((1000 * i, f"http://e/g{i}", triples))
    return batch_from_events(STREAM, events, InstantCounter())


def drawn_plans(seed: int, count: int) -> list[QueryPlan]:
    """Queries of the oracle's generator."""
    cases = (case(seeded(f"lone{seed}:{i}"), EVERYTHING) for i in range(count))
    return [compile_query(own.query, f"q{i}") for i, own in enumerate(cases)]


def plan(pattern: str, name: str = "q", stream: str = STREAM) -> QueryPlan:
    return compile_query(
        f"PREFIX : <{NAME}> SELECT * WITHIN 9 SECONDS FROM STREAM S <{stream}> "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}",
        name,
    )


def shown(rows: SolutionBatch) -> tuple[list[object], list[str]]:
    """(time and GPM of all rows in order, all rows in order of their contents)."""
    columns: list[Sequence[object]] = [
        rows.stream.tolist(),
        rows.time.tolist(),
        rows.k.tolist(),
        rows.gpm.tolist(),
        rows.event.texts(),
    ]
    columns += [rows.texts(v) for v in sorted(rows.values)]
    columns += [rows.numbers[v].value.tolist() for v in sorted(rows.numbers)]
    columns += [rows.numbers[v].kind.tolist() for v in sorted(rows.numbers)]
    order = [*zip(rows.time.tolist(), rows.gpm.tolist(), strict=True)]
    return [*order], sorted(map(repr, zip(*columns, strict=True)))


def assert_alike(
    plans: Sequence[QueryPlan], events: EventBatch, limits: Limits = DEFAULT_LIMITS
) -> tuple[int, int]:
    """(solutions, queries that were evaluated together), after each has been compared."""
    lone, index = LonePatterns(), VerticalPartition(events)
    reports: tuple[list[BadInput], list[BadInput]] = [], []
    stages = [PatternStage(p, NOTHING, reports[0].append, limits, joint=lone) for p in plans]
    rows = together = 0
    for own, stage in zip(plans, stages, strict=True):
        found = stage.match(events, index)
        alone = PatternStage(own, NOTHING, reports[1].append, limits).match(events)
        assert found.values.keys() == alone.values.keys()
        assert found.numbers.keys() == alone.numbers.keys()
        assert shown(found) == shown(alone)
        rows += len(found)
        together += lone.solutions(stage, index) is not None
    assert reports[0] == reports[1]
    return rows, together


@sizes(3, 6, 100)
def test_drawn_queries_have_the_solutions_of_each(examples: int, force: Force) -> None:
    for seed in range(examples):
        few = ("least", "never", "4")[seed % 3]
        singly = ("", "columns_first=least", "columns_first=least graphs_one_by_one=never")[
            seed // 2 % 3
        ]
        force(f"template_uses={1 + seed % 2} few_possible={few} {singly}")
        rows, together = assert_alike(drawn_plans(seed, 40), drawn_events(Random(seed), 30))
        assert rows > 0 and together > 10


PATTERNS = [f"?x :v ?y ; :is :{kind}" for kind in "ABCDEFGHIJ"]


def plans_of(patterns: Sequence[str]) -> list[QueryPlan]:
    return [plan(pattern, f"q{i}") for i, pattern in enumerate(patterns)]


def test_blank_nodes_get_the_labels_of_answers() -> None:
    plans = plans_of(PATTERNS)
    rows, together = assert_alike(plans, drawn_events(Random(1), 50))
    assert rows > 20 and together == len(plans)


def test_constants_that_stand_only_inside_of_triple_terms() -> None:
    """The terms of a batch get them when the first pattern about such parts is evaluated."""
    inner = f"<<( <{NAME}o1> <{NAME}v> {integer(2)} )>>"
    said = f"<<( <{NAME}someone> <{NAME}says> {inner} )>>"
    reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
    triples: list[Triple] = [(f"<{NAME}r1>", reifies, term) for term in (inner, said)]
    events = batch_from_events(STREAM, [(0, "http://e/g", triples)], InstantCounter())
    patterns = [f"<< ?s :says <<( :o{n % 2} :v ?x )>> ~ ?r >>" for n in range(6)]
    patterns += ["<< :someone :says ?x >>", "<< :nobody :says ?x >>", "<< :o1 :v ?x >>"]
    rows, together = assert_alike(plans_of(patterns), events)
    assert (rows, together) == (3 + 1 + 1, len(patterns))


def test_a_private_variable_tells_several_solutions_apart() -> None:
    texts = [
        f"SELECT {shown} WITHIN 9 SECONDS FROM STREAM S <{STREAM}> WHERE {{ SEQ(A; B) "
        f"DEFINE GPM A ON S {{ ?x <{NAME}v> ?y ; <{NAME}is> <{NAME}{kind}> }} "
        f"DEFINE GPM B ON S {{ ?b <{NAME}is> <{NAME}{kind}> }} }}"
        for kind, shown in product("ABCD", ["?b", "?b ?y", "*"])
    ]
    plans = [compile_query(text, f"q{i}") for i, text in enumerate(texts)]
    assert [len(own.patterns.gpms[0].private) for own in plans[:3]] == [2, 1, 0]
    rows, together = assert_alike(plans, drawn_events(Random(2), 50))
    assert rows > 20 and together == len(plans)


def test_few_queries_are_evaluated_by_themselves() -> None:
    assert assert_alike(plans_of(PATTERNS[:7]), drawn_events(Random(1), 9))[1] == 0


def test_an_event_beyond_a_limit_is_judged_query_by_query() -> None:
    plans = plans_of([*PATTERNS, "?x :v ?y . ?z :v ?a . ?b :w ?c . ?d :w ?e"])
    rows, together = assert_alike(plans, drawn_events(Random(1), 50), Limits(solutions=20))
    assert rows > 20 and together == len(PATTERNS)


def test_a_template_beyond_a_limit_is_evaluated_query_by_query() -> None:
    crowded = [
        f"?x :v ?y . ?z :v ?a . ?b :w {i % 3} . ?d :is :{kind}"
        for i, kind in enumerate("ABCDEFGHIJ")
    ]
    events = drawn_events(Random(1), 50)
    rows, together = assert_alike(plans_of(crowded), events, Limits(solutions=30))
    assert rows > 20 and together == 0


def test_many_solutions_are_made_query_by_query(force: Force) -> None:
    force("joint_rows=5")
    rows, together = assert_alike(plans_of(PATTERNS), drawn_events(Random(1), 50))
    assert rows > 20 and together == 0


def test_filters_of_one_template_are_each_querys_own() -> None:
    tests = [f"?y {op} {i}" for i in range(4) for op in ("<=", "!=", ">")]
    plans = plans_of([f"?x :v ?y ; :is ?z FILTER ({test} && ?y < 3)" for test in tests])
    rows, together = assert_alike(plans, drawn_events(Random(3), 50))
    assert rows > 100 and together == len(plans)


def test_queries_of_another_stream_have_no_solutions() -> None:
    other = [plan(pattern, f"r{i}", "http://e/t") for i, pattern in enumerate(PATTERNS)]
    plans = [*plans_of(PATTERNS), *other]
    rows, together = assert_alike(plans, drawn_events(Random(1), 20))
    assert rows > 5 and together == len(plans)


def test_a_query_that_comes_is_joined_when_enough_have_come() -> None:
    lone, events = LonePatterns(), drawn_events(Random(1), 9)
    stages = [PatternStage(own, NOTHING, joint=lone) for own in plans_of(PATTERNS)]

    def joined(stage: PatternStage) -> bool:
        return lone.solutions(stage, VerticalPartition(events)) is not None

    assert all(map(joined, stages))
    late = PatternStage(plan("?x :w ?y"), NOTHING, joint=lone)
    assert not joined(late) and joined(late) and joined(stages[0])


def test_a_query_that_has_gone_is_not_evaluated() -> None:
    lone, events = LonePatterns(), drawn_events(Random(1), 9)
    patterns = [*PATTERNS, "?x :k ?y MINUS { ?x :w 1 }"]
    stages = [PatternStage(own, NOTHING, joint=lone) for own in plans_of(patterns)]
    assert lone.solutions(stages[0], VerticalPartition(events)) is not None
    del stages[1:]
    assert lone.solutions(stages[0], VerticalPartition(events)) is None


def test_the_rows_of_a_query_are_pickled_without_those_of_others() -> None:
    lone, events = LonePatterns(), drawn_events(Random(1), 500)
    stages = [PatternStage(own, NOTHING, joint=lone) for own in plans_of(PATTERNS)]
    found = stages[0].match(events, VerticalPartition(events))
    alone = stages[0].match(events)
    assert len(found) > 100
    assert len(pickle.dumps(found.compact())) < 1.5 * len(pickle.dumps(alone.compact()))


def test_queries_without_solutions_are_idle() -> None:
    lone, index = LonePatterns(), VerticalPartition(drawn_events(Random(1), 9))
    stages = [PatternStage(own, NOTHING, joint=lone) for own in plans_of(PATTERNS)]
    idle = lone.idle(index)
    assert idle == {own for own in stages if not len(own.match(index.batch))}
    assert 5 <= len(idle) < 10


def test_a_query_that_fails_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lone, index = LonePatterns(), VerticalPartition(drawn_events(Random(1), 9))
    plans = plans_of([*PATTERNS, "?x :v ?y MINUS { ?x :w 1 }"])
    stages = [PatternStage(own, NOTHING, joint=lone) for own in plans]

    def fails(*_: object) -> None:
        raise ValueError("a function of the user's")

    monkeypatch.setattr(stages[-1], "finished", fails)
    found = [lone.solutions(own, index) for own in stages]
    assert found[-1] is None and stages[-1] not in lone.idle(index)
    assert all(rows is not None for rows in found[:-1])
    with pytest.raises(ValueError, match="of the user's"):
        stages[-1].match(index.batch, index)


def test_a_template_that_fails_leaves_its_queries_to_themselves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lone, events = LonePatterns(), drawn_events(Random(1), 50)
    stages = [PatternStage(own, NOTHING, joint=lone) for own in plans_of(PATTERNS)]

    def fails(*_: object) -> None:
        raise ValueError("no such column")

    monkeypatch.setattr(shared_matching._JoinedTemplate, "_solutions", fails)
    index = VerticalPartition(events)
    found = [stage.match(events, index) for stage in stages]
    assert [*map(len, found)] == [len(stage.match(events)) for stage in stages]
    assert lone.solutions(stages[0], index) is None and stages[0] not in lone.idle(index)
    assert "no such column" in caplog.text
