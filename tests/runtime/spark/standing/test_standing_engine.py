"""A standing run on Spark gives the answers of one in this process, per query in the same order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from spaseq.api.prepare import StandingPlanner, load_knowledge
from spaseq.errors import OtherStateError, RunError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.messages import Message, MessageColumns
from spaseq.logs.stream_log import Entry, Heartbeat, Partitions
from spaseq.options import (
    FileSourceSettings,
    KnowledgeOptions,
    PlanningOptions,
    ServiceOptions,
    StageOptions,
)
from spaseq.rdf.inputs.stream_options import BadInput, MessageOptions, StreamOptions
from spaseq.runtime.job.job import Job, LateEvent
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_engine import EngineLost, LiveEngine
from spaseq.runtime.pushed import Tolerated
from spaseq.runtime.spark.standing import remote_stages, stage_jobs, standing_engine
from spaseq.runtime.spark.standing.standing_engine import SparkEngines
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.broker_stream import BrokerStream
from tests.runtime.live.live_jobs import event
from tests.thresholds import Force

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

IRIS = {"S": "http://example/s", "T": "http://example/t"}
MADE = "http://example/made"
ARRIVAL = 1_767_225_600_000  # 2026-01-01
KB = "http://example/kb"


def gpm(name: str, word: str, stream: str = "S", thing: str = "?x", more: str = "") -> str:
    return f'DEFINE GPM {name} ON {stream} {{ {thing} <http://example/is> "{word}" {more} }} '


def query(
    steps: str,
    *gpms: str,
    form: str = "SELECT *",
    streams: str = "ST",
    more: str = "",
    named: str = "",
) -> str:
    given = " ".join(f"FROM STREAM {s} <{IRIS.get(s, MADE)}>" for s in streams)
    return f"{form} WITHIN 5 SECONDS {more} {given} {named} WHERE {{ {steps} {' '.join(gpms)} }}"


HOT, COLD = gpm("A", "hot"), gpm("B", "cold", "S, T")
QUERIES = {
    "keyed": query("SEQ(A; B)", HOT, COLD),
    "unkeyed": query("SEQ(A; B)", HOT, gpm("B", "cold", "T", "?y")),
    "partitioned": query("SEQ(A, B)", HOT, COLD, more="PARTITION BY (?x)"),
    "next": query("SEQ(A, B)", HOT, gpm("B", "cold", "S, T", "?y")),
    "negated": query("SEQ(A; B!)", HOT, COLD),
    "consumed": query("SEQ(A; B)", HOT, COLD, more="AFTER MATCH CONSUME"),
    "muted": query("SEQ(A)", HOT, streams="S", more="AFTER MATCH MUTE 3 SECONDS"),
    "known": query(
        "SEQ(A; B)",
        gpm("A", "hot", more=f"GRAPH <{KB}> {{ ?x <http://example/near> ?y }}"),
        gpm("B", "cold", "S, T", "?y"),
        named=f"FROM NAMED <{KB}>",
    ),
    "maker": query(
        "SEQ(A; B)",
        HOT,
        COLD,
        form=f'REGISTER STREAM <{MADE}> AS CONSTRUCT {{ ?x <http://example/is> "made" }}',
    ),
    "reader": query("SEQ(A; B)", gpm("A", "made", "M"), gpm("B", "cold", "T"), streams="MT"),
    **{f"family{n}": query("SEQ(A; B)", gpm("A", "hot", thing=f"<http://example/x{n}>"), COLD)
       for n in range(10)},
}  # fmt: skip


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    path = tmp_path_factory.mktemp("kb") / "kb.ttl"
    near = "<http://example/near>"
    path.write_text(
        "".join(f"<http://example/x{n}> {near} <http://example/x{n + 1}> .\n" for n in range(8))
    )
    return load_knowledge((), [(KB, str(path))], KnowledgeOptions())


class Both:
    """An engine in this process and one on Spark, which are told the same."""

    def __init__(self, knowledge: KnowledgeBase, limit: int | None = None) -> None:
        messages = MessageOptions(dedup_ms=2000)
        settings = FileSourceSettings(delay_ms=500, max_ahead_ms=10**12)
        self.streams = [
            LiveStream(name, BrokerStream(StreamOptions(iri, (), messages=messages), ""), settings)
            for name, iri in IRIS.items()
        ]
        self.plan = StandingPlanner(PlanningOptions(), knowledge)
        self.knowledge, self.limit = knowledge, limit
        self.reports: list[list[BadInput | LateEvent]] = [[], []]
        self.answers: list[dict[str, list[str]]] = [{}, {}]
        self.engines = [self._engine(0), self._engine(1)]

    def _engine(self, number: int) -> LiveEngine:
        take: Any = self.reports[number].append
        options = StageOptions(self.limit)
        job = Job((), (), self.knowledge, options, on_bad=take, on_late=take)
        make = SparkEngines() if number else LiveEngine
        return make(job, self.streams, None, Tolerated.ALL)

    def add(self, name: str, text: str) -> None:
        for engine in self.engines:
            engine.add(self.plan(name, text))

    def remove(self, name: str) -> None:
        for engine in self.engines:
            found = engine.queries.query_of(name)
            assert found is not None
            engine.remove(found)

    def feed(self, given: Sequence[tuple[str, Sequence[Entry]]]) -> None:
        for answers, engine in zip(self.answers, self.engines, strict=True):
            for iri, entries in given:
                engine.take(iri, entries)
            for plan, answer in engine.advance():
                line = answer_json(plan.identity.name, answer)
                answers.setdefault(plan.identity.title, []).append(line)

    def restart(self) -> None:
        """Let new engines go on from the states of the present ones."""
        names = [q.plan.identity.title for q in self.engines[0].queries.queries]
        plans = [own.plan for own in self.engines[0].queries.queries]
        assert len(names) == len(plans)
        for number, engine in enumerate([*self.engines]):
            self.engines[number] = self._engine(number)
            self.engines[number].restore(engine.snapshot(), plans)
            assert self.engines[number].queries.muted == engine.queries.muted

    def check(self) -> None:
        assert self.answers[1] == self.answers[0]
        late = [[r for r in own if isinstance(r, LateEvent)] for own in self.reports]
        bad = [[r for r in own if isinstance(r, BadInput)] for own in self.reports]
        assert late[1] == late[0]
        assert bad[1] == bad[0]
        assert self.engines[1].queries.muted == self.engines[0].queries.muted
        counts = [engine.counts for engine in self.engines]
        assert counts[1] == counts[0]
        states = [engine.streams_as_json() for engine in self.engines]
        assert states[1] == states[0]


def block(message: Message) -> MessageColumns:
    return MessageColumns.of([message])


def entries(seed: int, count: int) -> list[tuple[str, Entry]]:
    """Entries of both streams' logs: with ties, disorder, late and bad events, and partitions."""
    chance, found = random.Random(seed), list[tuple[str, Entry]]()
    for number in range(count):
        iri, arrival = IRIS[chance.choice("ST")], ARRIVAL + number // 3 * 100
        ms = max(0, number // 2 * 100 - chance.choice((0, 0, 0, 100, 400, 1500)))
        payload = event(number, ms, f"x{chance.randrange(6)}", chance.choice(("hot", "cold", "no")))
        if chance.random() < 0.05:
            payload = chance.choice((b"no RDF", payload + b"no RDF\n", b""))
        partition = 0 if number < count // 2 else chance.randrange(2)
        found.append((iri, block(Message(payload, partition, number, "", arrival))))
        if chance.random() < 0.05:  # again: its graph was seen
            found.append(found[-1])
        if number == count // 2:
            found.append((IRIS["S"], Partitions(2)))
        if number > count // 2 and chance.random() < 0.05:
            found.append((IRIS["S"], Heartbeat(1, ARRIVAL + ms)))
    return found


def by_stream(some: Sequence[tuple[str, Entry]]) -> list[tuple[str, Sequence[Entry]]]:
    return [(iri, own) for iri in IRIS.values() if (own := [e for i, e in some if i == iri])]


def fed_at_random(both: Both, seed: int, count: int) -> int:
    """Feed entries in batches, between which queries come and go and engines start anew.

    Returns:
        Most queries that ran as one on Spark.
    """
    chance, given = random.Random(seed), entries(seed, count)
    for name, text in QUERIES.items():
        if name != "family9":
            both.add(name, text)
    at = most = 0
    while at < len(given):
        size = chance.choice((1, 7, 40))
        both.feed(by_stream(given[at : at + size]))
        at += size
        most = max(most, *(len(unit.queries) for unit in both.engines[1].queries.running))
        if chance.random() < 0.3:
            name = chance.choice([*QUERIES])
            if both.engines[0].queries.query_of(name) is None:
                both.add(name, QUERIES[name])
            else:
                both.remove(name)
        if chance.random() < 0.15:
            both.restart()
    last = Message(event(9999, count * 100 + 60_000, "x", "no"), 0, 10**6, "", ARRIVAL)
    both.feed([(iri, [block(last)]) for iri in IRIS.values()])
    return most


def test_answers_are_those_of_an_engine_in_this_process(
    spark: Any, knowledge: KnowledgeBase
) -> None:
    both = Both(knowledge)
    for name in ("partitioned", "known", "maker", "reader"):
        both.add(name, QUERIES[name])
    given = entries(1, 120)
    for some in (given[:70], given[70:]):
        both.feed(by_stream(some))
    both.check()
    assert {*both.answers[0]} == {"partitioned", "known", "maker", "reader"}


def test_blank_nodes_of_two_events_are_two(spark: Any, knowledge: KnowledgeBase) -> None:
    both = Both(knowledge)
    both.add("keyed", QUERIES["keyed"])
    both.add("hot", query("SEQ(A)", HOT, streams="S"))
    for number, state in enumerate(("hot", "hot", "cold")):
        text = event(number, 1000, "x", state).replace(b"<http://example/x>", b"_:x")
        both.feed([(IRIS["S"], [block(Message(text, 0, number, "", ARRIVAL))])])
    end = [block(Message(event(9, 60_000, "x", "no"), 0, 9, "", ARRIVAL))]
    both.feed([(iri, end) for iri in IRIS.values()])
    both.check()
    assert len({*both.answers[0]["hot"]}) == 2
    assert "keyed" not in both.answers[0]


LOGS = ("", "log_bytes=0 log_entries=1", "log_bytes=0 log_entries=1000", "log_bytes=1500")
"""States come with each result, nearly with each, nearly never, or once steps are many bytes."""


@pytest.mark.parametrize(
    "seed", [0, 3, 5, 6, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 4, 7))]
)
def test_queries_that_come_and_go_and_restarts_change_nothing(
    spark: Any, knowledge: KnowledgeBase, seed: int, monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    monkeypatch.setattr(stage_jobs, "MOST", 2)
    monkeypatch.setattr(standing_engine, "_BLOCK", (300, 2000))
    families = "family_queries=2" if seed % 2 else ""
    force(f"{LOGS[seed // 2]} {families}")
    both = Both(knowledge, limit=1 if seed == 3 else None)
    assert fed_at_random(both, seed, 300) > 1
    both.check()
    assert len(both.answers[0]) > 12
    assert sum(map(len, both.reports)) > 10
    for local in both.engines[0].queries.queries:
        assert_live(both, local.plan.identity.title)


def assert_live(both: Both, title: str) -> None:
    """The parts of a unit know the time of their own last event: they may hold more."""
    found = []
    for engine in both.engines:
        own = engine.queries.query_of(title)
        assert own is not None
        found.append(engine.queries.unit(own).live_states(own).waiting)
    assert all(found[1].get(state, 0) >= count for state, count in found[0].items())
    assert title not in ("unkeyed", "next") or found[1] == found[0]


def test_a_large_state_travels_only_when_its_log_is_long(
    spark: Any, knowledge: KnowledgeBase, force: Force, monkeypatch: pytest.MonkeyPatch
) -> None:
    force("log_bytes=1 log_entries=5")
    monkeypatch.setattr(remote_stages, "_STATE_TO_LOG", 1)
    monkeypatch.setattr(remote_stages, "_OVERLAP", 2)
    both = Both(knowledge)
    both.add("unkeyed", QUERIES["unkeyed"])
    spark_query = both.engines[1].queries.query_of("unkeyed")
    assert spark_query is not None
    stage: Any = both.engines[1].queries.unit(spark_query).sequence
    (part,) = stage._parts
    given, states, logs = entries(2, 240), set[int](), list[int]()
    for first in range(0, 240, 10):
        both.feed(by_stream(given[first : first + 10]))
        states.add(part.kept)
        logs.append(len(part.log))
    both.check()
    assert both.answers[0]
    assert part.version == 24
    assert 5 <= len(states) < 16
    assert 3 <= max(logs) <= 5 + 2
    assert_live(both, "unkeyed")
    assert part.kept == part.version


@pytest.mark.parametrize("more", ["", "PARTITION BY (?x)"])
def test_muted_answers_are_counted_over_restarts(
    spark: Any, knowledge: KnowledgeBase, more: str
) -> None:
    both = Both(knowledge)
    mute = f"{more} AFTER MATCH MUTE 3 SECONDS"
    both.add("muted", query("SEQ(A)", HOT, streams="S", more=mute))
    for n in range(3):
        both.feed(by_stream(entries(5, 180)[60 * n : 60 * (n + 1)]))
        assert both.engines[1].queries.muted["muted"] > 0
        both.check()
        both.restart()


def test_a_state_of_this_process_goes_on_on_spark_and_a_split_one_stays_there(
    spark: Any, knowledge: KnowledgeBase
) -> None:
    both = Both(knowledge)
    both.add("keyed", QUERIES["keyed"])
    given = entries(2, 80)
    both.feed(by_stream(given[:40]))
    plans, states = [both.plan("keyed", QUERIES["keyed"])], [e.snapshot() for e in both.engines]
    with pytest.raises(RunError, match="is in parts, as Spark keeps it"):
        both._engine(0).restore(states[1], plans)
    both.engines[1] = both._engine(1)
    both.engines[1].restore(states[0], plans)
    both.feed(by_stream(given[40:]))
    both.check()
    assert both.answers[0]


@pytest.mark.parametrize("limits", [(None, 1000), (1000, None)])
def test_a_split_state_goes_on_with_or_without_a_limit(
    spark: Any, knowledge: KnowledgeBase, limits: tuple[int | None, int | None]
) -> None:
    """With a limit, stage 2 of a query is not split by an inferred key, and a family by members."""
    both = Both(knowledge, limits[0])
    for name in ("keyed", "partitioned", "unkeyed", *(n for n in QUERIES if "family" in n)):
        both.add(name, QUERIES[name])
    given = entries(2, 80)
    both.feed(by_stream(given[:40]))
    both.limit = limits[1]
    both.restart()
    both.feed(by_stream(given[40:]))
    both.check()
    assert len(both.answers[0]) > 3


def test_a_state_of_another_evaluator_is_refused_before_anything_changes(
    spark: Any, knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(knowledge)
    both.add("keyed", QUERIES["keyed"])
    given = entries(2, 80)
    both.feed(by_stream(given[:40]))
    states = [engine.snapshot() for engine in both.engines]
    with monkeypatch.context() as later:
        later.setattr("spaseq.plan.planner.STATE_FORMAT", "later")
        plans = [both.plan("keyed", QUERIES["keyed"])]
        assert plans[0].signature.fingerprint
    for engine, state in zip(both.engines, states, strict=True):
        with pytest.raises(OtherStateError, match="with another evaluator"):
            engine.restore(state, plans)
    both.feed(by_stream(given[40:]))
    both.check()
    assert both.answers[0]


def test_a_query_that_fails_fails_alone(spark: Any, knowledge: KnowledgeBase) -> None:
    both = Both(knowledge)
    both.add("keyed", QUERIES["keyed"])
    both.add("unkeyed", QUERIES["unkeyed"])
    own = both.engines[1].queries.query_of("unkeyed")
    assert own is not None
    stage: Any = both.engines[1].queries.unit(own).sequence
    stage._parts = [remote_stages._Part(b"no state")]
    both.feed(by_stream(entries(3, 60)))
    assert own.failure is not None
    assert "damaged" in own.failure
    assert both.answers[1] == {"keyed": both.answers[0]["keyed"]}


def test_endpoints_are_not_asked(spark: Any) -> None:
    services = ServiceOptions(allow=("127.0.0.1",))
    url = "http://127.0.0.1:9/sparql"
    asked = load_knowledge((), [(KB, url)], KnowledgeOptions(services))
    both = Both(asked)
    with pytest.raises(UsageError, match="query known asks a SPARQL endpoint"):
        both.engines[1].add(both.plan("known", QUERIES["known"]))
    assert not both.engines[1].queries.queries


def test_a_job_that_fails_ends_the_engine(spark: Any, knowledge: KnowledgeBase) -> None:
    both = Both(knowledge)
    both.add("keyed", QUERIES["keyed"])
    engine: Any = both.engines[1]
    engine._stored = engine._jobs._knowledge = None  # no task can work
    with pytest.raises(EngineLost, match="no event is lost"):
        both.feed(by_stream(entries(3, 10)))
    for use in (engine.clocks, engine.snapshot, engine.advance):
        with pytest.raises(EngineLost):
            use()
