"""The answers depend on the messages alone: not on batches, nor on where a run is restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import RunError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.messages import Message, MessageColumns
from spaseq.options import FileSourceSettings, StateLimits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.program_events import FewEvents
from spaseq.runtime.job.job import Job, LateEvent
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_engine import LiveEngine
from spaseq.runtime.pushed import Tolerated
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.broker_stream import BrokerStream
from tests.runtime.live.live_jobs import IRI, event, events, expected_lines, job_of

STREAM = BrokerStream(StreamOptions(IRI, ()), "nats://h/s")
ARRIVAL = 1_767_225_600_000  # 2026-01-01


class Fed:
    """An engine, its answers, and what it reported."""

    def __init__(self, delay_ms: int = 500, max_ahead_ms: int = 10**9) -> None:
        self.bad: list[BadInput] = []
        self.late: list[LateEvent] = []
        self.job = job_of(STREAM, on_bad=self.bad.append, on_late=self.late.append)
        settings_ = FileSourceSettings(delay_ms=delay_ms, max_ahead_ms=max_ahead_ms)
        self.streams = [LiveStream("S", STREAM, settings_)]
        self.engine = LiveEngine(self.job, self.streams)
        self.answers: list[str] = []

    def feed(self, payloads: list[bytes], arrival: int = ARRIVAL) -> None:
        messages = [Message(p, 0, n, "", arrival) for n, p in enumerate(payloads)]
        self.engine.take(IRI, [MessageColumns.of(messages)])
        for plan, answer in self.engine.advance():
            self.answers.append(answer_json(plan.identity.name, answer))


def test_the_answers_are_those_of_a_run_over_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    given_events = events(400, disorder_ms=400)
    fed = Fed()
    for begin in range(0, 401, 50):
        fed.feed(given_events[begin : begin + 50])
    assert not fed.late
    assert fed.answers == expected_lines(tmp_path, given_events)
    assert len(fed.answers) > 100
    [(title, seconds)] = fed.job.stats.query_seconds.items()
    assert title == fed.job.plans[0].identity.title
    assert seconds > 0


@given(st.integers(0, 1000), st.lists(st.integers(0, 120), max_size=6), st.booleans())
@settings(deadline=None, max_examples=25)
def test_batches_and_restarts_change_nothing(seed: int, cuts: list[int], restart: bool) -> None:
    payloads = events(120, seed, disorder_ms=900)
    payloads[60:60] = [b"no RDF"]
    whole, parts = Fed(), Fed()
    whole.feed(payloads)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(payloads)], strict=True):
        parts.feed(payloads[begin:end])
        if restart:
            fresh = Fed()
            fresh.engine.restore(parts.engine.snapshot())
            fresh.answers, fresh.late, parts = parts.answers, parts.late, fresh
            fresh.job.on_late = fresh.late.append
    assert parts.answers == whole.answers
    assert parts.late == whole.late
    assert whole.late


def one_by_one(directory: Path) -> None:
    """Each message has come by itself; some have several events, or none, or are late."""
    payloads = events(300, 7, disorder_ms=400)
    expected = expected_lines(directory, payloads)
    payloads[40:60] = [b"".join(payloads[40:60])]
    payloads[20:20] = [b"no RDF"]
    fed, halves = Fed(), (payloads[:111], payloads[111:])
    for number, half in enumerate(halves):
        messages = [
            Message(payload, 0, 1000 * number + n, "", ARRIVAL + 1000 * number + n)
            for n, payload in enumerate(half)
        ]
        fed.engine.take(IRI, [MessageColumns.of([message]) for message in messages])
        fed.answers += (answer_json(plan.identity.name, a) for plan, a in fed.engine.advance())
    assert fed.answers == expected
    assert len(fed.bad) == 1
    assert fed.job.stats.events == 301


def test_messages_that_came_one_by_one_are_matched_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, match = list[int](), LiveEngine._match

    def counted(engine: LiveEngine, events: EventBatch | FewEvents) -> None:
        sizes.append(len(events))
        match(engine, events)

    monkeypatch.setattr(LiveEngine, "_match", counted)
    one_by_one(tmp_path)
    assert len(sizes) == 2


def test_an_event_too_far_ahead_is_bad_and_moves_no_clock() -> None:
    fed = Fed(0, max_ahead_ms=10_000)
    fed.feed([event(0, 0, "x", "hot"), event(1, 3_000_000, "x", "none"), event(2, 9, "x", "cold")])
    assert len(fed.bad) == 1
    assert "--max-ahead" in fed.bad[0].reason
    assert not fed.late
    fed.feed([event(3, 3_000_000, "x", "none")], arrival=ARRIVAL + 3_000_000)
    assert len(fed.bad) == 1
    assert len(fed.answers) == 1


def test_the_first_event_starts_the_clock() -> None:
    fed = Fed(0, max_ahead_ms=1000)
    fed.feed([event(0, 0, "x", "hot"), event(1, 900, "x", "cold"), event(2, 1800, "x", "none")], 5)
    assert len(fed.answers) == 1
    assert not fed.bad


def test_state_beyond_a_limit_ends_the_run() -> None:
    fed = Fed()
    streams = [LiveStream("S", STREAM, FileSourceSettings())]
    fed.engine = LiveEngine(fed.job, streams, StateLimits(rows=3))
    fed.feed([event(n, n, f"x{n}", "hot") for n in range(9)])
    with pytest.raises(RunError, match=r"partial matches in one bucket .* the limit of 3"):
        fed.engine.check_waiting()


def test_state_beyond_a_limit_is_that_of_one_member_of_a_family() -> None:
    """Nine things are hot, and one is in each of the states s1 to s8."""
    text = f"""SELECT * WITHIN 1 MINUTES FROM STREAM S <{IRI}> WHERE {{{{ SEQ(A; B)
        DEFINE GPM A ON S {{{{ ?x <http://example/is> "{{}}" }}}}
        DEFINE GPM B ON S {{{{ ?x <http://example/is> "cold" }}}} }}}}"""
    states = ["hot", *(f"s{n}" for n in range(1, 9))]
    options = CompileOptions(several=True)
    plans = [compile_query(text.format(x), f"q{n}", options) for n, x in enumerate(states)]
    fed = Fed(delay_ms=0)
    job = Job(tuple(plans), (STREAM,), KnowledgeBase.empty())
    fed.engine = LiveEngine(job, fed.streams, StateLimits(rows=3), Tolerated.ALL)
    (unit,) = fed.engine.queries.running
    assert len(unit.queries) == 9
    fed.feed([event(n, n, f"x{n}", "hot") for n in range(9)])
    fed.feed([event(n, n, "x8", state) for n, state in enumerate(states[1:], 10)])
    (reason,) = fed.engine.check_waiting().items()
    assert reason[0] == "q0"
    assert "query q0 has 4 partial matches in one bucket (0) after the events of" in reason[1]
    query = fed.engine.queries.query_of("q0")
    assert query is not None
    fed.engine.queries.fail(query, reason[1])
    fed.feed([event(30, 30, "x8", "cold"), event(31, 10_000, "end", "none")])
    assert [json.loads(line)["query"] for line in fed.answers] == [f"q{n}" for n in range(1, 9)]
    state = fed.engine.snapshot()
    assert list(job.stats.live_runs) == list(job.stats.state_bytes) == ["q1"]
    again = LiveEngine(job, fed.streams, StateLimits(rows=3), Tolerated.ALL)
    again.restore(state)
    query = again.queries.query_of("q0")
    assert query is not None
    assert query.failure == reason[1]
    again.add(plans[0])  # it begins anew
    assert all(query.failure is None for query in again.queries.queries)


@pytest.mark.parametrize("state", [None, [[], []], [["a"], []], 7])
def test_a_damaged_state_is_refused(state: object) -> None:
    with pytest.raises(RunError, match="damaged"):
        Fed().engine.restore(state)  # type: ignore[arg-type]
