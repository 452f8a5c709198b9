"""The state of a bucket: any worker can continue from the log and the snapshots."""

from __future__ import annotations

import base64
import json
import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.algebra.answers import Answer
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import RunError
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.options import StateLimits
from spaseq.plan.families import QueryUnits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionCodec
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.runtime.job.state_limits import check_size, too_many_waiting
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.stages import bucket_state
from spaseq.runtime.spark.stages.bucket_state import STATE_FORMAT, BucketState, Entry, WarmStage
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.stages.sequence import SequenceStage
from spaseq.stages.state_pickles import STATE_VERSION
from spaseq.storage.checksums import sealed
from tests.runtime.machines import HEAD, IRIS, KEYED, UNKEYED
from tests.thresholds import Force


class FakeValue:
    """A value state in memory."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


class FakeMap:
    """A map state in memory; `written` is the number of bytes written to it."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, int], tuple[bytes]] = {}
        self.written = self.read = 0

    def getValue(self, key: tuple[int, int]) -> tuple[bytes] | None:
        found = self.values.get(key)
        self.read += 0 if found is None else len(found[0])
        return found

    def updateValue(self, key: tuple[int, int], value: tuple[bytes]) -> None:
        self.values[key] = value
        self.written += len(value[0])

    def removeKey(self, key: tuple[int, int]) -> None:
        self.values.pop(key, None)


EVENTS = [(1000 * n, f"m{n * 7 % 5}", "starts" if n % 3 else "stops", n) for n in range(60)]


def triples(machine: str, what: str, value: int) -> list[tuple[str, str, str]]:
    """The triples of an event; its value is both a string and a number."""
    m, number = f"<http://m.example/{machine}>", "http://www.w3.org/2001/XMLSchema#integer"
    return [
        (m, f"<http://m.example/{what}>", f'"{value}"'),
        (m, "<http://m.example/size>", f'"{value}"^^<{number}>'),
    ]


def entries(
    plan: QueryPlan, sizes: Sequence[int], later_ms: int = 0, matcher: PatternStage | None = None
) -> Iterator[Entry]:
    """The events in batches of these sizes, with all times shifted."""
    matcher, counter, at = matcher or PatternStage(plan, KnowledgeBase.empty()), InstantCounter(), 0
    for size in sizes:
        some, at = EVENTS[at : at + size], at + size
        events = [(t + later_ms, None, triples(m, p, v)) for t, m, p, v in some]
        solutions = matcher.match(batch_from_events(IRIS[0], events, counter))
        halves = np.array_split(np.arange(len(solutions)), 2)
        some_rows = [solutions.take(half) for half in halves if len(half)]
        time = some[-1][0] + later_ms - 1 if some else 0
        yield Entry(
            (time,) * len(plan.inputs.streams),
            tuple((0, SolutionCodec(plan.patterns.columns).encode(rows)) for rows in some_rows),
        )


def bucket(plan: QueryPlan, meta: FakeValue, chunks: FakeMap) -> BucketState:
    """The state of a bucket for a single query."""
    groups = QueryGroups.of(QueryUnits.of([plan]))
    return BucketState(groups.units, groups.home[0], meta, chunks)


def applied(entry: Entry, warm: WarmStage) -> list[Answer]:
    return [answer for _, answers in entry.apply(warm.stage) for answer in answers]


def in_process(plan: QueryPlan) -> list[Answer]:
    stage = SequenceStage(plan)
    matcher, counter = PatternStage(plan, KnowledgeBase.empty()), InstantCounter()
    events = [(t, None, triples(m, p, v)) for t, m, p, v in EVENTS]
    stage.push(matcher.match(batch_from_events(IRIS[0], events, counter)))
    return stage.advance(EVENTS[-1][0] - 1)


@pytest.fixture(autouse=True)
def small_logs(monkeypatch: pytest.MonkeyPatch, force: Force) -> None:
    force("log_entries=4")
    monkeypatch.setattr(bucket_state, "CHUNK_BYTES", 300)


PLANS = {name: compile_query(text, name) for name, text in (("keyed", KEYED), ("not", UNKEYED))}


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(PLANS)),
    st.lists(st.integers(1, 9), min_size=7, max_size=60),
    st.data(),
)
def test_any_worker_goes_on_where_the_others_stopped(
    name: str, sizes: list[int], data: st.DataObject
) -> None:
    plan = PLANS[name]
    meta, chunks = FakeValue(), FakeMap()
    workers: list[WarmStage | None] = [None, None, None]
    found: list[Answer] = []
    sizes = [*sizes, max(len(EVENTS) - sum(sizes), 0)]
    for entry in entries(plan, [s for s in sizes if s]):
        number = data.draw(st.integers(0, 2))
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            workers[number] = None  # the worker was killed
        state = bucket(plan, meta, chunks)
        known, warm = state.load(workers[number])
        found += applied(entry, warm)
        state.append(known, entry, warm.stage)
        warm.version = known.version
        workers[number] = warm
    if sum(sizes) >= len(EVENTS):
        expected = in_process(plan)
        last = EVENTS[-1][0] - 1
        assert found == [a for a in expected if a.end[0] <= last]


def test_a_worker_that_is_ahead_of_the_state_starts_anew() -> None:
    plan = PLANS["keyed"]
    meta, chunks = FakeValue(), FakeMap()
    first, second = entries(plan, [20, 20])
    state = bucket(plan, meta, chunks)
    known, warm = state.load(None)
    applied(first, warm)
    state.append(known, first, warm.stage)
    before = meta.value, dict(chunks.values)
    once = applied(second, warm)
    state.append(known, second, warm.stage)
    warm.version = known.version
    meta.value, chunks.values = before  # the batch failed elsewhere and runs again
    known, warm = state.load(warm)
    assert (known.version, warm.version) == (1, 1)
    assert applied(second, warm) == once


def test_a_batch_writes_what_it_brought_however_much_there_is(
    force: Force,
) -> None:
    force("log_entries=1000")
    plan = PLANS["keyed"]
    meta, chunks = FakeValue(), FakeMap()
    state, warm = bucket(plan, meta, chunks), None
    written = []
    for entry in entries(plan, [1] * len(EVENTS)):
        known, warm = state.load(warm)
        applied(entry, warm)
        before = chunks.written
        state.append(known, entry, warm.stage)
        written.append(chunks.written - before)
        warm.version = known.version
    assert chunks.read == 0
    assert max(written) < 2 * min(written)


def test_what_the_window_has_passed_is_dropped() -> None:
    plan = PLANS["keyed"]
    meta, chunks = FakeValue(), FakeMap()
    state, sizes = bucket(plan, meta, chunks), []
    warm = None
    for cycle in range(12):
        for entry in entries(plan, [3] * 20, later_ms=cycle * 600_000):
            known, warm = state.load(warm)
            applied(entry, warm)
            state.append(known, entry, warm.stage)
            warm.version = known.version
        sizes.append(len(warm.stage.snapshot()))
    assert max(sizes[6:]) <= 1.5 * max(sizes[:6])


def test_a_state_of_another_format_is_refused() -> None:
    meta = FakeValue()
    meta.value = (99, 0, 1, 0, 0, 0, [0, 0])
    with pytest.raises(RunError, match="state format 99"):
        bucket(PLANS["keyed"], meta, FakeMap()).load(None)


def test_a_state_beyond_its_limit_names_query_key_and_step() -> None:
    plan = PLANS["keyed"]
    *_, entry = entries(plan, [30])
    recent = entry.solutions(0, bucket(plan, FakeValue(), FakeMap()).load(None)[1].stage)
    check_size(StateLimits(bytes=100), plan, 3, 100, lambda: recent)
    with pytest.raises(RunError) as raised:
        check_size(StateLimits(bytes=99), plan, 3, 100, lambda: recent)
    excess = Excess((1000, 0), 30)
    error = too_many_waiting(StateLimits(rows=29), plan, 0, 3, excess, recent)
    waiting = "30 partial matches in one bucket (3) after the events of 1970-01-01T00:00:01Z"
    for found, text in ((raised.value, "100 bytes of state"), (error, waiting)):
        assert f"query keyed has {text}" in str(found)
        assert "of the key ?machine = <http://m.example/m" in str(found)
        assert "of the step A" in str(found)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.instant) == (str(error), (1000, 0))
    error = too_many_waiting(StateLimits(rows=29), PLANS["not"], 0, 0, excess, recent)
    assert "it has no key" in str(error)


CORRELATED = (
    HEAD
    + """FROM NAMED <http://m.example/kb> SEQ (A; B) {
  DEFINE GPM A ON N, S { ?machine :starts ?load }
  DEFINE GPM B ON N, S { ?machine :stops ?code OPTIONAL {
    GRAPH <http://m.example/kb> { ?machine :name ?name } OPTIONAL { ?machine :takes ?load } } } }"""
)
"""B is correlated with A, so stage 2 evaluates it."""


def test_a_log_is_replayed_with_the_knowledge_base_it_was_made_with(
    tmp_path: Path,
) -> None:
    """The name changes before the third batch; each batch has a new stage."""

    def stored(name: str) -> StoredKnowledge:
        lines = [f'<http://m.example/m{i}> <http://m.example/name> "{name}" .' for i in range(5)]
        file = tmp_path / f"{name}.nt"
        file.write_text("\n".join(lines) + "\n")
        load_kb([("http://m.example/kb", file)]).save(tmp_path / f"kb-{name}")
        return StoredKnowledge(str(tmp_path / f"kb-{name}"), f"kb-{name}")

    plan = compile_query(CORRELATED, "correlated")
    assert any(gpm.correlation for gpm in plan.patterns.gpms)
    first, second = stored("one"), stored("two")
    matcher = PatternStage(plan, first.open())
    meta, chunks = FakeValue(), FakeMap()
    found: list[list[str]] = []
    for number, entry in enumerate(entries(plan, [10] * 6, matcher=matcher)):
        knowledge = (first if number < 2 else second).name
        entry = replace(entry, knowledge=knowledge)
        state = replace(bucket(plan, meta, chunks), knowledge=first)
        known, warm = state.load(None)
        renewed = state.renew(knowledge, known, warm)
        assert renewed == (number == 2)
        answers = applied(entry, warm)
        found.append(sorted({dict(a.bindings)["name"] for a in answers}))
        state.append(known, entry, warm.stage, renewed=renewed)
        log = [Entry.of(v) for (kind, _), (v,) in chunks.values.items() if kind == 1]
        assert {logged.knowledge for logged in log} <= {knowledge}
        if number == 2:
            Path(first.path).unlink()  # it is no longer needed
            first = second
    assert found == [['"one"']] * 2 + [['"two"']] * 4


STORED = Path(__file__).parent / "state"
"""Stored states of format versions (see `written`).

They contain forty events: in the log, and in a snapshot of each evaluator.
"""


def written(plan: QueryPlan, sizes: Sequence[int]) -> dict[str, Any]:
    """The state after batches of these sizes, in a form that JSON can represent."""
    meta, chunks = FakeValue(), FakeMap()
    state, warm = bucket(plan, meta, chunks), None
    for entry in entries(plan, sizes):
        known, warm = state.load(warm)
        applied(entry, warm)
        state.append(known, entry, warm.stage)
        warm.version = known.version
    parts = [[*key, base64.b64encode(v).decode()] for key, (v,) in chunks.values.items()]
    return {"meta": meta.value, "chunks": parts}


def check_going_on(plan: QueryPlan, stored: dict[str, Any]) -> None:
    """Check that the last twenty events give the same answers as an undisturbed run."""
    meta, chunks = FakeValue(), FakeMap()
    meta.value = tuple(stored["meta"])
    for kind, number, data in stored["chunks"]:
        chunks.values[kind, number] = (base64.b64decode(data),)
    state, found = bucket(plan, meta, chunks), list[Answer]()
    for entry in list(entries(plan, [40, 10, 10]))[1:]:
        known, warm = state.load(None)
        found += applied(entry, warm)
        state.append(known, entry, warm.stage)
    done = EVENTS[39][0] - 1
    assert found == [a for a in in_process(plan) if a.end[0] > done]
    assert found


def test_there_is_a_stored_state_of_this_format() -> None:
    assert (STORED / f"format-{STATE_FORMAT}.json").exists()
    assert (STORED / f"snapshot-{STATE_VERSION}.json").exists()


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_run_goes_on_from_a_stored_log(name: str) -> None:
    stored = json.loads((STORED / f"format-{STATE_FORMAT}.json").read_text())
    check_going_on(PLANS[name], stored[name])


_STARTS = "DEFINE GPM A ON N, S { ?machine :starts ?load }"
_STOPS = "DEFINE GPM B ON N, S { ?machine :stops ?code }"
_SMALL = "DEFINE GPM A ON N, S { ?machine :starts ?code ; :size ?size }"
_LARGE = "DEFINE GPM B ON N, S { ?machine :starts ?more ; :size ?large FILTER (?large > ?size) }"
_GROWS = "DEFINE GPM B ON N, S { ?machine :starts ?more ; :size ?large FILTER (SUM(?large) > 1) }"
_STOPPED = "DEFINE GPM C ON N, S { ?machine :stops ?stop }"
_FAILS = "DEFINE GPM U ON N, S { ?machine :stops ?fault FILTER (?fault > 80) }"
SEQUENCES = {
    "chain": f"SEQ (A; B) {{ {_STARTS} {_STOPS} }}",
    "compact": f"SEQ (A+; B) {{ {_STARTS} {_STOPS} }}",
    "registers": f"SEQ (A; B) {{ {_SMALL} {_LARGE} }}",
    "loops": f"SEQ (A; B++[:] UNTIL U; C) {{ {_SMALL} {_GROWS} {_STOPPED} {_FAILS} }}",
}
EVALUATORS = ("registers", "compiled-chain", "compiled-compact")
EVALUATORS += ("compiled-registers", "registers of loops")


def evaluator_plan(name: str) -> QueryPlan:
    """The plan of a query for the evaluator with this name."""
    evaluator, _, loops = name.partition(" of ")
    sequence = SEQUENCES[loops or evaluator.removeprefix("compiled-")]
    return compile_query(HEAD + sequence, name, options=CompileOptions(evaluator=evaluator))


@pytest.mark.parametrize("name", EVALUATORS)
def test_a_run_goes_on_from_a_stored_snapshot(name: str) -> None:
    """`store_snapshot` wrote the file when the format was new."""
    stored = json.loads((STORED / f"snapshot-{STATE_VERSION}.json").read_text())[name]
    assert 0 in {kind for kind, *_ in stored["chunks"]}  # a snapshot, not only a log
    check_going_on(evaluator_plan(name), stored)


@pytest.mark.parametrize("name", EVALUATORS)
def test_a_snapshot_of_an_older_version_is_refused(name: str) -> None:
    stored = json.loads((STORED / f"snapshot-{STATE_VERSION - 1}.json").read_text())[name]
    with pytest.raises(
        RunError, match=rf"of format {STATE_VERSION - 1}.* let the older version read its input"
    ):
        check_going_on(evaluator_plan(name), stored)


class Evil:
    """Its pickle runs a command when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


def evil_snapshot(plan: QueryPlan) -> bytes:
    head = (STATE_VERSION, plan.signature.fingerprint)
    return pickle.dumps(head) + pickle.dumps((Evil(),))


@pytest.mark.parametrize("name", EVALUATORS)
def test_a_stored_pickle_that_runs_a_command_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = evaluator_plan(name)
    (entry,) = entries(plan, [4])
    evil = pickle.dumps(((1,), ((0, Evil()),), ""), 5)
    for kind, data in ((0, evil_snapshot(plan)), (0, pickle.dumps(Evil())), (1, evil)):
        for whole in (data, sealed(data)):
            meta, chunks = FakeValue(), FakeMap()
            first, count = (2, 1) if kind == 0 else (1, 0)
            meta.value = (STATE_FORMAT, 1, first, count, len(whole), 0, [0] * len(entry.times))
            chunks.values[kind, 1 - count] = (whole,)
            state = replace(bucket(plan, meta, chunks), directory="/the/checkpoint")
            with pytest.raises(RunError, match=r"checkpoint /the/checkpoint .* posix\.system"):
                state.load(None)
    assert not Path("ran").exists()


@pytest.mark.parametrize("name", EVALUATORS)
def test_damaged_state_is_refused_and_never_used(name: str) -> None:
    """Damaged bytes and cuts of the parts of a snapshot and of a log."""
    plan = evaluator_plan(name)
    stored = written(plan, [8] * 5)
    for place, (kind, number, data) in enumerate(stored["chunks"]):
        good = base64.b64decode(data)
        step = max(1, len(good) // 10)
        flips = (good[:i] + bytes([good[i] ^ 4]) + good[i + 1 :] for i in range(0, len(good), step))
        for bad in (*flips, good[:-1], good[: len(good) // 2], b""):
            meta, chunks = FakeValue(), FakeMap()
            meta.value = tuple(stored["meta"])
            for k, n, other in stored["chunks"]:
                chunks.values[k, n] = (base64.b64decode(other),)
            chunks.values[kind, number] = (bad,)
            with pytest.raises(RunError, match=r"is damaged|format 3 or older|another query"):
                bucket(plan, meta, chunks).load(None)
        if place > 1:
            break
