"""A few events at a time reach the queries that they may concern, and the others miss nothing."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.messages import Message, MessageColumns
from spaseq.options import FileSourceSettings
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.terms.times import time_literal
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.pushed import Tolerated
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.broker_stream import BrokerStream
from spaseq.stages.unit_sequence import UnitSequence
from tests.runtime.test_running_units import STREAMS, XSD, drawn_event, drawn_queries
from tests.sizes import sizes
from tests.thresholds import Force

ARRIVAL = 1_767_225_600_000  # 2026-01-01
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"


MEMBER = """PREFIX : <http://example.org/> PREFIX e: <http://e/>
    SELECT ?o ?v WITHIN 1 MINUTES FROM STREAM S <{stream}> WHERE {{ SEQ(A; B)
        DEFINE GPM A ON S {{ ?e e:kind e:k{kind} . ?o :v ?v FILTER (?v > {least}) }}
        DEFINE GPM B ON S {{ ?f e:kind e:k{kind} . ?o :v {value} }} }}"""


def members() -> list[str]:
    """Queries of a family: each for one kind of events."""
    ways = [(n % 4, n % 3 - 1, n // 4 % 4) for n in range(12)]
    return [MEMBER.format(stream=STREAMS[0], kind=k, least=m, value=v) for k, m, v in ways]


def payload(number: int, ms: int, graph: str) -> bytes:
    name = f"<http://e/g{number}>"
    lines = [f"{line.removesuffix(' .')} {name} ." for line in graph.splitlines()]
    return "\n".join([*lines, f"{name} {PROV} {time_literal(ARRIVAL + ms)} {name} .\n"]).encode()


def engine_of(plans: list[QueryPlan]) -> LiveEngine:
    """An engine that waits two seconds for late events."""
    settings = FileSourceSettings(delay_ms=2000, max_ahead_ms=10**12)
    streams = [
        LiveStream(iri, BrokerStream(StreamOptions(iri, ()), ""), settings) for iri in STREAMS
    ]
    job = Job(reading_order(plans), (), KnowledgeBase.empty())
    return LiveEngine(job, streams, tolerated=Tolerated.ALL)


def taken(engine: LiveEngine, iri: str, payloads: list[bytes]) -> list[str]:
    """The answers after some messages of a stream."""
    messages = [Message(each, 0, n, "", ARRIVAL) for n, each in enumerate(payloads)]
    engine.take(iri, [MessageColumns.of(messages)])
    return [answer_json(plan.identity.title, answer) for plan, answer in engine.advance()]


def answers(plans: list[QueryPlan], seed: int) -> Iterator[list[str]]:
    """The answers of each batch of one to five events, some of which are late.

    An engine goes on from the state of another, and queries come and go.
    """
    random, engine, number = Random(seed), engine_of(plans[:-2]), 0
    assert len(engine.queries.running.families) == 1
    for step in range(60):
        payloads = []
        for _ in range(random.randint(1, 5)):
            number += 1
            ms = 300 * number - random.randrange(2500)
            payloads.append(payload(number, ms, drawn_event(random)))
        yield taken(engine, random.choice(STREAMS), payloads)
        if step % 20 == 10:
            queries, state = [query.plan for query in engine.queries.queries], engine.snapshot()
            engine = engine_of(queries)
            engine.restore(state)
        if step in (15, 30):
            engine.add(plans[-1 if step == 15 else -2])
        if step == 40:
            engine.remove(engine.queries.queries[3])
    for iri in STREAMS:
        yield taken(engine, iri, [payload(0, 10**9, "")])


@sizes(2, 4, 60)
def test_drawn_queries_have_the_answers_that_they_have_in_columns(
    examples: int, force: Force
) -> None:
    count = 0
    for seed in range(examples):
        texts, several = [*drawn_queries(seed, 30), *members()], CompileOptions(several=True)
        plans = [compile_query(text, f"q{n}", several) for n, text in enumerate(texts)]
        force("graphs_one_by_one=least template_queries=never")
        expected = [*answers(plans, seed)]
        force("graphs_one_by_one=never template_queries=least")
        assert [*answers(plans, seed)] == expected
        count += sum(map(len, expected))
    assert count > 50


def test_an_event_costs_the_queries_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty queries, each for one kind of events, an event is matched by one, and it waits for
    the watermark without being asked again.
    """
    texts = [
        f"""PREFIX : <http://e/> SELECT ?x WITHIN 1 MINUTES FROM STREAM S <{STREAMS[0]}>
        WHERE {{{{ SEQ(A; B)
            DEFINE GPM A ON S {{{{ ?x :kind :k{n} ; :is 0 {more} }}}}
            DEFINE GPM B ON S {{{{ ?x :kind :k{n} ; :is 1 {more} }}}} }}}}"""
        for n in range(20)
        for more in ["".join(f"OPTIONAL {{{{ ?x :p{i} ?y{i} }}}}" for i in range(n))]
    ]
    plans = [compile_query(text.format(), f"q{n}") for n, text in enumerate(texts)]
    engine, calls = engine_of(plans), list[str]()

    def counted(of: type[Any], name: str) -> None:
        real = getattr(of, name)

        def call(self: Any, *args: Any) -> Any:
            calls.append(f"{of.__name__}.{name}")
            return real(self, *args)

        monkeypatch.setattr(of, name, call)

    def event(number: int, ms: int, kind: int, state: int) -> bytes:
        kind_of = f"<http://e/x> <http://e/kind> <http://e/k{kind}> ."
        return payload(
            number, ms, f'{kind_of}\n<http://e/x> <http://e/is> "{state}"^^<{XSD}integer> .'
        )

    taken(engine, STREAMS[0], [event(0, 0, 99, 0)])
    taken(engine, STREAMS[0], [event(1, 1, 99, 0)])
    for of, name in (
        (SingleEventStage, "match"), (PatternStage, "match"), (UnitSequence, "advance")
    ):  # fmt: skip
        counted(of, name)
    found = taken(engine, STREAMS[0], [event(2, 10, 5, 0)])
    assert calls == ["SingleEventStage.match", "UnitSequence.advance"]
    for number in range(3, 100):
        found += taken(engine, STREAMS[0], [event(number, 10 + number, 99, 0)])
    assert calls.count("SingleEventStage.match") == 1
    assert calls.count("UnitSequence.advance") < 4
    found += taken(engine, STREAMS[0], [event(100, 200, 5, 1), event(101, 9000, 99, 0)])
    assert len(found) == 1
    assert "PatternStage.match" not in calls
