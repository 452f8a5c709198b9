"""Small streams for docs/meaning.md#partial-matches, on both runtimes, derived by hand.

On Spark, one run contains all rows, each on a separate stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import spaseq
from spaseq.algebra.answers import PartialAnswer
from spaseq.compile import compile_query
from spaseq.errors import UsageError
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FollowOptions
from spaseq.plan.query_plan import CompileOptions
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark import bounded as bounded
from spaseq.runtime.spark.following.follow import follow
from spaseq.sources.files import FileSource
from spaseq.stages.sequence import SequenceStage
from tests.language import tables
from tests.language.tables import Row
from tests.runtime.machines import put

LONG_AFTER = 10**6
"""Seconds; an event at this time closes all windows of time."""

SIX = "a b1 b2 x b3 c"

ROWS = [
    Row(SIX, "A; C; B", "a c C>B@3600"),
    Row(SIX, "A; B; C", ""),
    Row("a x", "A, B", "a A>B@3600"),
    Row("a b1 b2", "A; B{3}; C", "a A>B@3600"),
    Row("a b1 b2", "A; B+; C", "a b1 b2 B>C@3600"),
    Row("a b1 b2 x", "A; B++; C", "a b1 b2 B>C@3600"),
    Row("a b1 b2 x b3", "A; B+ UNTIL U; C", "a b1 b2 B>C@3600"),
    Row("a b x", "A; B; U!", ""),
    Row("a x b", "A; U!; B; C", "a A>B@3600"),
    Row("a x", "A; B; U!", "a A>B@3600"),
    Row("a", "A; B?; C", "a A>C@3600"),
    Row("b c", "A?; B; C; A", "b c C>A@3600"),
    Row("a1 a2 b", "A: B; C", "a1 b B>C@3600 · a2 b B>C@3601"),
    Row("a1 a2 x", "A; B", "a1 A>B@3600 · a2 A>B@3601", select="LAST", after_match="CONSUME"),
    Row("a x c", "A: (B | U | C): B", "a x U>B@3600 · a c C>B@3600"),
    Row("c a x", "(A AND C); B", "c a A>B@3600"),
    Row("a", "A; (B | (C?; U))+; A", "a A>B,C,U@3600"),
    Row("a x x b", "A; B; C", "a A>B@2", within="2 SECONDS"),
    Row("x a x b", "A; B; C", "a A>B@2", within="2 SECONDS TUMBLING"),
    Row("a1 a2 x x", "A; B", "a1 A>B@2 · a2 A>B@3", within="3 EVENTS"),
    Row("a1 x a2", "A; B", "a1 A>B@2 · a2 A>B", within="3 EVENTS"),
    Row("a1 b1 b2 x", "A; B++; C", "a1 b1 b2 B>C", within="9 EVENTS"),
]  # fmt: skip
"""The partial matches: their trace, what they reached, what they wait for, and their close (s)."""


def told(row: Row, found: Iterable[PartialAnswer]) -> list[str]:
    """Partial matches as a row writes them."""
    values = row.values.split()
    return [_told(values, partial) for partial in found]


def _told(values: list[str], partial: PartialAnswer) -> str:
    trace = " ".join(values[t.time // 1000] for t in partial.answer.trace)
    closed = "" if partial.closed is None else f"@{partial.closed[0] // 1000}"
    return f"{trace} {partial.reached}>{','.join(partial.waiting)}{closed}"


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_in_process(row: Row, tmp_path: Path) -> None:
    path, found = tmp_path / "stream.nq", list[spaseq.PartialMatch]()
    path.write_text(tables.nquads(row.values))
    with_them = list(
        spaseq.run(tables.row_query(row), {"S": path}, runtime="local", on_partial=found.append)
    )
    assert told(row, [m.partial for m in found]) == row.expected
    assert with_them == list(spaseq.run(tables.row_query(row), {"S": path}, runtime="local"))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_pushed_one_by_one(row: Row) -> None:
    engine, found = spaseq.Engine(tables.row_query(row), partial=True), list[PartialAnswer]()
    for second, value in enumerate(row.values.split()):
        engine.push("S", tables.triples(value, second), 1000 * second)
        closed = [m.partial for m in engine.partials()]
        assert all(p.closed is not None and p.closed[0] < 1000 * second for p in closed)
        found += closed
    engine.close()
    assert told(row, [*found, *(m.partial for m in engine.partials())]) == row.expected
    assert engine.partials() == []


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_restored_after_every_event(row: Row) -> None:
    plan = compile_query(tables.row_query(row), options=CompileOptions(partial=True))
    matcher, found = PatternStage(plan, KnowledgeBase.empty()), list[PartialAnswer]()
    stage = SequenceStage(plan)
    for rows in _solutions(matcher, row):
        stage.push(rows)
        stage.advance(int(rows.time.max(initial=0)))
        found += stage.partials()
        other = SequenceStage(plan)
        other.restore(stage.snapshot())
        stage = other
    stage.close()
    assert told(row, [*found, *stage.partials()]) == row.expected


def test_a_variable_keeps_the_kind_that_it_has_in_the_whole_query() -> None:
    """?k is single, as B binds it too: the first step alone must not repeat over several keys."""
    engine = spaseq.Engine(
        """
        PREFIX : <http://example/>
        SELECT ?k (LIST(?v) AS ?vs) WITHIN 9 SECONDS FROM STREAM S <http://example/S>
        WHERE { SEQ(A+ : B)
          DEFINE GPM A ON S { [] :a ?v ; :key ?k }
          DEFINE GPM B ON S { [] :b ?w ; :key ?k }
        }""",
        partial=True,
    )
    for second, key in enumerate("xyx"):
        graph = f'_:e <http://example/a> "{second}" .\n_:e <http://example/key> "{key}" .'
        engine.push("S", graph, 1000 * second)
    engine.close()
    found = [m.partial.answer for m in engine.partials()]
    traces = [[item.time // 1000 for item in answer.trace] for answer in found]
    assert traces == [[0, 2], [1]]
    assert [dict(answer.bindings)["k"] for answer in found] == ['"x"', '"y"']


@pytest.mark.parametrize(
    "bind", ["?v - ?u AS ?d", "SUM(?u) + 0 * ?v AS ?d", "TIMESTAMP(A) AS ?d", "?v - ?n AS ?d"]
)
def test_values_that_are_computed_of_a_loop_tell_matches_apart(bind: str) -> None:
    """Without the first repetition the value is the same only if it reads no loop."""
    query = f"""PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>
        SEQ (N; A+ : B; C) {{
            DEFINE GPM N ON S {{ ?o :n ?n }} DEFINE GPM A ON S {{ ?o :u ?u }}
            DEFINE GPM B ON S {{ ?o :v ?v BIND({bind}) }} DEFINE GPM C ON S {{ ?o :c ?c }} }}"""
    texts = ['n "1"', 'u "1"', 'u "2"', 'v "5"']
    events = [
        spaseq.Event(f"<http://e/o> <http://e/{text.replace(' ', '> ', 1)}"
                     "^^<http://www.w3.org/2001/XMLSchema#integer> .", 1000 * second)
        for second, text in enumerate(texts)
    ]  # fmt: skip
    found = list[spaseq.PartialMatch]()
    assert not list(spaseq.run(query, {"S": events}, runtime="local", on_partial=found.append))
    traces = [tuple(item.time // 1000 for item in partial.answer.trace) for partial in found]
    assert traces == ([(0, 1, 2, 3)] if "?n" in bind else [(0, 1, 2, 3), (0, 1, 3)])


def test_events_of_each_partition_are_counted() -> None:
    """Also those that a FILTER keeps from each GPM, pushed one by one."""
    query = """PREFIX : <http://e/> SELECT * WITHIN 3 EVENTS PARTITION BY (?k)
        FROM STREAM S <http://e/s> SEQ (A; B) { DEFINE GPM A ON S { ?o :a ?x ; :k ?k }
            DEFINE GPM B ON S { ?o :k ?k ; :b ?a FILTER(?a != "0") } }"""
    engine, ends = spaseq.Engine(query, partial=True), list[int]()
    given = ["a x 1", "a y 1", "b x 0", "b x 0", "b x 1", "b y 0", "b y 1", "b y 0"]
    for ms, (name, key, value) in enumerate(map(str.split, given)):
        graph = f'<http://e/o> <http://e/{name}> "{value}" .\n<http://e/o> <http://e/k> "{key}" .'
        ends += [match.answer.end[0] for match in engine.push("S", graph, ms)]
    ends += [match.answer.end[0] for match in engine.close()]
    (partial,) = engine.partials()
    assert ends == [6]
    assert (partial.bindings["k"].n3(), partial.partial.closed) == ('"x"', (3, 0))


def test_first_steps_that_end_in_a_negated_step_are_refused_under_a_window_of_events() -> None:
    row = Row("", "A; U!; B?; C", "", within="3 EVENTS")
    with pytest.raises(UsageError, match="may end in a negated step"):
        spaseq.Engine(tables.row_query(row), partial=True)
    spaseq.Engine(tables.row_query(row))


REFUSED = tables.row_query(Row("", "A; U!; B?; C", "", within="3 EVENTS"))
OTHER = Row("a1 a2 x x", "A; B", "a1 A>B@2 · a2 A>B@3", within="3 EVENTS")


def test_beside_others_such_a_query_runs_without_its_partial_matches(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, found = tmp_path / "stream.nq", list[spaseq.PartialMatch]()
    path.write_text(tables.nquads("a1 a2 x x c"))
    queries = [REFUSED, tables.row_query(OTHER)]
    answers = spaseq.run(queries, {"S": path}, runtime="local", on_partial=found.append)
    assert [match.query for match in answers] == []  # x takes the answer away
    assert told(OTHER, [m.partial for m in found]) == OTHER.expected
    assert {m.query for m in found} == {"query2"}
    (record,) = caplog.records
    assert "query query1: no partial matches" in record.getMessage()


def test_such_a_query_joins_an_engine_with_partial_matches(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine, found = spaseq.Engine(tables.row_query(OTHER), partial=True), list[PartialAnswer]()
    engine.add(REFUSED, name="further")
    assert "query further: no partial matches" in caplog.text
    for second, value in enumerate(OTHER.values.split()):
        engine.push("S", tables.triples(value, second), 1000 * second)
    engine.close()
    found += (m.partial for m in engine.partials())
    assert told(OTHER, found) == OTHER.expected


def _solutions(matcher: PatternStage, row: Row) -> Iterator[SolutionBatch]:
    counter = InstantCounter()
    for second, value in enumerate(row.values.split()):
        graph = triples_of(tables.triples(value, second))
        yield matcher.match(batch_from_events(tables.S, [(1000 * second, None, graph)], counter))


def stream_of(row: Row) -> str:
    return f"{tables.S}{ROWS.index(row)}"


def job(directory: Path, found: list[tuple[str, PartialAnswer]]) -> Job:
    """All rows; each row's stream is a directory."""
    plans = [
        compile_query(tables.row_query(row, stream_of(row)), row.id, CompileOptions(partial=True))
        for row in ROWS
    ]
    paths = [directory / str(number) for number in range(len(ROWS))]
    for path in paths:
        path.mkdir(parents=True, exist_ok=True)
    pairs = zip(ROWS, paths, strict=True)
    streams = [FileSource(StreamOptions(stream_of(row), (str(path),))) for row, path in pairs]
    made = Job(tuple(plans), tuple(streams), KnowledgeBase.empty())
    made.on_partial = lambda query, partial: found.append((query, partial))
    return made


def check(found: list[tuple[str, PartialAnswer]]) -> None:
    """Check that every row has its partial matches."""
    for row in ROWS:
        own = [partial for query, partial in found if query == row.id]
        assert told(row, own) == row.expected, row.id


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_on_spark(spark: Any, tmp_path: Path, partitions: int) -> None:
    found: list[tuple[str, PartialAnswer]] = []
    work = job(tmp_path, found)
    for number, row in enumerate(ROWS):
        put(tmp_path / str(number) / "1.nq", tables.nquads(row.values))
    assert len(list(bounded.run(work, spark=spark, partitions=partitions)))
    check(found)


@pytest.mark.thorough
@pytest.mark.spark
def test_followed_on_spark(spark: Any, tmp_path: Path) -> None:
    """Events arrive in files cut at random, over several runs, each resuming the one before.

    Rows with a window of events are left out, because another event ends each stream.
    """
    random, found = Random("partial"), list[tuple[str, PartialAnswer]]()
    timed = [row for row in ROWS if "EVENTS" not in row.within]
    waiting = {
        ROWS.index(row): [
            *(tables.event(v, i) for i, v in enumerate(row.values.split())),
            tables.event("end", LONG_AFTER),
        ]
        for row in timed
    }
    for turn in range(3):
        work = job(tmp_path / "files", found)
        for number, events in waiting.items():
            size = len(events) if turn == 2 else random.randint(0, len(events))
            if size:
                put(tmp_path / "files" / str(number) / f"{turn}.nq", "".join(events[:size]))
            del events[:size]
        list(follow(work, FollowOptions(tmp_path / "state", until_done=True), spark=spark))
    for row in timed:
        own = [partial for query, partial in found if query == row.id]
        assert told(row, own) == row.expected, row.id
