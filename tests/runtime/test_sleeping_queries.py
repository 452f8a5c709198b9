"""Queries whose windows close later are not asked when time passes; those that are due are.

The drawn runs are compared with each query by itself, which is asked each time.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import warn
from spaseq.rdf.program_events import batch_from_events
from spaseq.runtime.pushed import PushedQueries, Tolerated
from spaseq.runtime.pushed_units import PushedUnit
from spaseq.runtime.running_units import RunningUnits
from spaseq.stages.unit_sequence import UnitSequence
from spaseq.stages.unit_stages import StageFactory

SILENT = """PREFIX : <http://e/>
{head} WITHIN {seconds} SECONDS FROM STREAM S <http://e/{stream}>
WHERE {{ SEQ(H; N!) DEFINE GPM H ON S {{ ?d :beat ?x }} DEFINE GPM N ON S {{ ?d :beat ?y }} }}"""

READER = """PREFIX : <http://e/>
SELECT ?d WITHIN 1 HOURS FROM STREAM Q <http://e/quiet>
WHERE { SEQ(A) DEFINE GPM A ON Q { ?d :is :quiet } }"""

NEVER, EVER = -(2**63), 2**63 - 1


class Unit:
    """A unit that is told when it is due; `read` is the stream that it reads."""

    is_family, feed, holding = True, None, frozenset[int]()

    def __init__(self, read: str) -> None:
        self.plan = SimpleNamespace(inputs=SimpleNamespace(streams=(read,)), levels=())
        self.sequence = SimpleNamespace(next_due=NEVER, on_wake=None)

    def wake(self) -> None:
        """As if rows came."""
        self.sequence.next_due = NEVER
        self.sequence.on_wake()


def running(units: list[Unit]) -> RunningUnits:
    return RunningUnits(cast("list[PushedUnit]", units))


def queries(*texts: str) -> PushedQueries:
    how = StageFactory(KnowledgeBase.empty(), StageOptions(), warn)
    return PushedQueries([compile_query(text) for text in texts], how)


def silent(seconds: int, head: str = "SELECT ?d", stream: str = "s") -> str:
    return SILENT.format(head=head, seconds=seconds, stream=stream)


def beat(run: PushedQueries, ms: int, stream: str = "s") -> None:
    """Push an event of a stream."""
    triple = ("<http://e/d>", "<http://e/beat>", '"1"')
    batch = batch_from_events(f"http://e/{stream}", [(ms, None, [triple])], InstantCounter())
    run.push([(unit, rows.compact()) for unit, rows in run.match_batch(batch)])


def test_a_query_is_not_asked_while_its_window_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked = queries(silent(10), silent(3600)), Counter[str]()
    advance = UnitSequence.advance

    def counted(self: UnitSequence, watermark: int, *rest: Any) -> Any:
        asked[names[self]] += 1
        return advance(self, watermark, *rest)

    names = {run.unit(q).sequence: f"{n}" for n, q in enumerate(run.queries)}
    monkeypatch.setattr(UnitSequence, "advance", counted)
    beat(run, 1000)
    found = [run.advance_streams({"http://e/s": ms}) for ms in range(1000, 3_601_001, 1000)]
    ends = [(ms, n) for ms, own in enumerate(found, 1) for n, _ in own]
    assert ends == [(11, 0), (3601, 1)]
    assert max(asked.values()) < 10


def test_an_answer_wakes_the_queries_that_read_it() -> None:
    made = "REGISTER STREAM <http://e/quiet> AS CONSTRUCT { ?d :is :quiet }"
    run = queries(silent(10, made), READER)
    beat(run, 1000)
    found = {ms: run.advance_streams({"http://e/s": ms}) for ms in range(1000, 20_000, 1000)}
    assert {ms: [n for n, _ in own] for ms, own in found.items() if own} == {11_000: [0, 1]}


def test_a_query_that_fails_does_not_keep_later_ones_from_what_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans = [compile_query(text) for text in (silent(10), silent(20), silent(10))]
    how = StageFactory(KnowledgeBase.empty(), StageOptions(), warn)
    run = PushedQueries(plans, how, tolerated=Tolerated.OTHERS)
    beat(run, 1000)
    for ms in (1000, 2000):
        assert run.advance_streams({"http://e/s": ms}) == []
    first, advance = run.unit(run.queries[0]).sequence, UnitSequence.advance

    def failing(self: UnitSequence, watermark: int, *rest: Any) -> Any:
        if self is first:
            raise ValueError("it fails")
        return advance(self, watermark, *rest)

    monkeypatch.setattr(UnitSequence, "advance", failing)
    ends = {ms: run.advance_streams({"http://e/s": ms}) for ms in range(3000, 30_000, 1000)}
    assert {ms: [n for n, _ in own] for ms, own in ends.items() if own} == {
        11_000: [2],
        21_000: [1],
    }


@given(
    st.lists(st.tuples(st.integers(1, 12), st.sampled_from("st")), min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from("stst-"), st.integers(0, 4), st.booleans()), max_size=30),
    st.integers(0, 29),
)
@settings(deadline=None, max_examples=60)
def test_all_answers_come_when_a_query_by_itself_gives_them(
    windows: list[tuple[int, str]], steps: list[tuple[str, int, bool]], added: int
) -> None:
    """In each step an event comes, or none, and time passes, for both streams or for one."""
    texts = [silent(seconds, stream=stream) for seconds, stream in windows]
    run, alone = queries(*texts), [queries(text) for text in texts]
    marks = {"http://e/s": 0, "http://e/t": 0}
    for number, (stream, seconds, is_silent) in enumerate(steps):
        if number == added:  # a query that comes while others sleep
            run.add(compile_query(silent(3), name="last"))
            alone.append(queries(silent(3)))
        for each in [run, *alone] if stream != "-" else ():
            beat(each, marks[f"http://e/{stream}"] + 500, stream)
        for iri in marks:
            if not is_silent or iri == "http://e/t":
                marks[iri] += 1000 * seconds
        expected = []
        for n, each in enumerate(alone):
            for unit in each.running:  # as if it had never slept
                unit.sequence.next_due = 0
                unit.sequence.on_wake()
            expected += [(n, answer) for _, answer in each.advance_streams(marks)]
        assert run.advance_streams(marks) == expected


UNITS = 4


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, UNITS - 1), max_size=3),  # units that get rows
            st.lists(st.integers(1, 9), min_size=UNITS, max_size=UNITS),  # then sleep so long
            st.tuples(st.integers(0, 4), st.integers(0, 4)),  # how far the two streams go
        ),
        max_size=40,
    )
)
@settings(deadline=None)
def test_the_units_that_are_due_are_awake(
    steps: list[tuple[list[int], list[int], tuple[int, int]]],
) -> None:
    units = [Unit("st"[n % 2]) for n in range(UNITS)]
    graph, marks = running(units), {"s": 0, "t": 0}
    for rows, sleeps, (s, t) in steps:
        for number in rows:
            units[number].wake()
        marks = {"s": marks["s"] + s, "t": marks["t"] + t}
        mark_of = [marks["st"[n % 2]] for n in range(UNITS)]
        expected = [n for n in range(UNITS) if units[n].sequence.next_due <= mark_of[n]]
        found = []
        for unit, mark in graph.awake(graph.watermarks(marks).__getitem__):
            number = units.index(cast("Unit", unit))
            found.append((number, mark))
            due = mark + sleeps[number]
            unit.sequence.next_due = due if due % 5 else EVER  # some wait for rows only
        assert found == [(n, mark_of[n]) for n in expected]


def test_units_that_wake_while_others_are_advanced_come_in_turn() -> None:
    units = [Unit("s") for _ in range(5)]
    graph, turns = running(units), [[0, 1, 2, 3, 4], [2, 4]]
    for turn, expected in enumerate(turns):
        found = []
        for unit, _ in graph.awake(lambda _: 0):
            found.append(units.index(cast("Unit", unit)))
            unit.sequence.next_due = EVER
            if turn and len(found) == 1:
                units[4].wake()
                units[1].wake()  # its turn is over
        assert found == expected
        units[2].wake()


def test_what_another_graph_takes_over_is_still_due_in_this_one() -> None:
    units = [Unit("s") for _ in range(4)]
    graph = running(units)
    for _ in graph.awake(lambda _: 0):
        pass
    for unit in units[1:]:
        unit.sequence.next_due = EVER
    for unit, _ in graph.awake(lambda _: 0):
        unit.sequence.next_due = EVER
    units[0].wake()
    found = []
    for unit, _ in graph.awake(lambda _: 0):
        found.append(units.index(cast("Unit", unit)))
        unit.sequence.next_due = EVER
        if len(found) == 1:  # the first one fails, so the others run in a graph without it
            running(units[1:])
    assert found == [0, 1, 2, 3]
