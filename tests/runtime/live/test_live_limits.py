"""When a query has too many partial matches does not depend on how messages come together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import RunError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.messages import Message, MessageColumns
from spaseq.options import FileSourceSettings, StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.pushed import Tolerated
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.broker_stream import BrokerStream
from tests.sizes import sizes

IRI = "http://example/s"
STREAM = BrokerStream(StreamOptions(IRI, ()), "nats://h/s")
ARRIVAL = 1_767_225_600_000  # 2026-01-01
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"

QUERY = """PREFIX : <http://example/> SELECT * WITHIN 4 SECONDS FROM STREAM S <{iri}> WHERE {{
    SEQ({steps}) DEFINE GPM A ON S {{ ?x :a ?v {first} }}
    DEFINE GPM B ON S {{ ?x :b ?w {second} }} DEFINE GPM C ON S {{ ?x :c ?u }} }}"""


def plan(name: str, evaluator: str, steps: str, first: str = "", second: str = "") -> QueryPlan:
    text = QUERY.format(iri=IRI, steps=steps, first=first, second=second)
    made = compile_query(text, name, CompileOptions(several=True))
    assert made.evaluator == evaluator
    return made


def family(steps: str, evaluator: str, second: str = "") -> list[QueryPlan]:
    """Queries of one family; most things are for the first ones."""
    return [
        plan(f"{evaluator}{n}", evaluator, steps, f"FILTER (?v >= {n})", second) for n in range(9)
    ]


PLANS = [
    plan("chain", "compiled-chain", "A: B: C"),
    plan("compact", "compiled-compact", "A: B+: C"),
    plan("compiled", "compiled-registers", "A: B; C", second="FILTER (?w > ?v)"),
    plan("python", "registers", "A; B; C", second="FILTER (?w + RAND() >= ?v)"),
    *family("A; C", "compiled-chain"),
    *family("A: B; C", "compiled-registers", "FILTER (?w > ?v)"),
]
"""One query for each way to count, and two families."""


def messages(seed: int, count: int) -> list[bytes]:
    """Events about several things, some of one time."""
    chance, found = Random(seed), []
    for number in range(count):
        name, ms = f"<http://example/e{number}>", 300 * (number - number % 3)
        lines = {
            f"<http://example/x{chance.randrange(5)}> <http://example/{chance.choice('aabbc')}> "
            f'"{chance.randrange(9)}"^^<{INTEGER}> {name} .\n'
            for _ in range(chance.randrange(1, 4))
        }
        at = f"2026-01-01T00:00:{ms // 1000:02d}.{ms % 1000:03d}Z"
        time = f'{name} <{TIME}> "{at}"^^<http://www.w3.org/2001/XMLSchema#dateTime> {name} .\n'
        found.append("".join([*sorted(lines), time]).encode())
    return found


def outcome(
    payloads: Sequence[bytes], cuts: Sequence[int], most: int
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The answers of each query, and why queries have failed, if messages come in batches."""
    job = Job(tuple(PLANS), (STREAM,), KnowledgeBase.empty())
    streams = [LiveStream("S", STREAM, FileSourceSettings(max_ahead_ms=10**9))]
    engine = LiveEngine(job, streams, StateLimits(rows=most), Tolerated.ALL)
    assert sum(unit.is_family for unit in engine.queries.running) == 2
    answers: dict[str, list[str]] = {}
    failures: dict[str, str] = {}
    for begin, end in pairwise([0, *cuts, len(payloads)]):
        some = [Message(own, 0, n, "", ARRIVAL) for n, own in enumerate(payloads[begin:end], begin)]
        engine.take(IRI, [MessageColumns.of(some)] if some else [])
        for own, answer in engine.advance():
            answers.setdefault(own.identity.name, []).append(answer_json("", answer))
        for title, reason in engine.check_waiting().items():
            query = engine.queries.query_of(title)
            assert query is not None
            engine.queries.fail(query, reason)
            failures[title] = reason
    return answers, failures


@sizes(2, 6, 12)
def test_answers_and_failures_do_not_depend_on_batches(examples: int) -> None:
    for number in range(examples):
        chance = Random(number)
        payloads, most = messages(number, 60), chance.choice([0, 2, 5, 9])
        one_by_one = outcome(payloads, range(1, 60), most)
        cuts = sorted(chance.sample(range(1, 60), chance.randrange(13)))
        assert outcome(payloads, cuts, most) == one_by_one, number
        assert outcome(payloads, [], most) == one_by_one, number


def test_each_member_fails_for_its_own_partial_matches() -> None:
    """A query by itself fails as the member does, and gives the same answers until then."""
    payloads = messages(7, 60)
    for most in (2, 9):
        answers, failures = outcome(payloads, [], most)
        alone = [outcome_of(own, payloads, most) for own in PLANS]
        found = [(answers.get(p.identity.name, []), p.identity.title in failures) for p in PLANS]
        assert found == alone
        assert any(has_failed for _, has_failed in alone)
        assert any(own for own, _ in alone)


def outcome_of(own: QueryPlan, payloads: Sequence[bytes], most: int) -> tuple[list[str], bool]:
    """The answers of a query by itself, and whether it has failed."""
    job = Job((own,), (STREAM,), KnowledgeBase.empty())
    streams = [LiveStream("S", STREAM, FileSourceSettings(max_ahead_ms=10**9))]
    engine = LiveEngine(job, streams, StateLimits(rows=most))
    some = [Message(each, 0, n, "", ARRIVAL) for n, each in enumerate(payloads)]
    engine.take(IRI, [MessageColumns.of(some)])
    answers = [answer_json("", answer) for _, answer in engine.advance()]
    try:
        engine.check_waiting()
    except RunError:
        return answers, True
    return answers, False


def test_the_error_says_when() -> None:
    job = Job((PLANS[0],), (STREAM,), KnowledgeBase.empty())
    streams = [LiveStream("S", STREAM, FileSourceSettings(max_ahead_ms=10**9))]
    engine = LiveEngine(job, streams, StateLimits(rows=1))
    payloads, kind = [], "http://www.w3.org/2001/XMLSchema#dateTime"
    for second, (thing, what) in enumerate([("x", "a"), ("y", "a"), ("z", "d")]):
        name = f"<http://example/e{second}>"
        fact = f'<http://example/{thing}> <http://example/{what}> "1" {name} .\n'
        time = f'{name} <{TIME}> "2026-01-01T00:00:0{second}Z"^^<{kind}> {name} .\n'
        payloads.append((fact + time).encode())
    some = [Message(each, 0, n, "", ARRIVAL) for n, each in enumerate(payloads)]
    engine.take(IRI, [MessageColumns.of(some)])
    assert not engine.advance()
    with pytest.raises(RunError) as raised:
        engine.check_waiting()
    assert "2 partial matches in one bucket (0) after the events of 2026-01-01T00:00:01Z" in str(
        raised.value
    )
