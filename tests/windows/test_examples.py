"""The examples of windows in the language's description, in every way to run a query."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

import pytest

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.api.match import Match
from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.program_events import batch_of_event, triples_of
from spaseq.windows.window_events import WindowGraphs
from tests.stages.single_query import SingleQuery
from tests.thresholds import forced

PREFIXES = "PREFIX : <http://e/>\n"
WINDOWS = {
    "W1": "RANGE 2 SECONDS SLIDE 1 SECONDS",
    "W2": "RANGE 2 EVENTS EACH EVENT",
    "W3": "SESSION 3 SECONDS",
}
EVENTS = [(0, 10), (1, 20), (2, 60), (3, 70), (9, 10)]

A = "{ { SELECT (AVG(?v) AS ?a) { EVENT { ?o :v ?v } } } }"
HIGH = "{ { SELECT (AVG(?v) AS ?a) { EVENT { ?o :v ?v } } HAVING (AVG(?v) >= 40) } }"
UP = '{ FILTER EXISTS { EVENT { ?o :v ?v FILTER(?v >= 60) } } BIND("high" AS ?a) }'

CASES = [
    ("SEQ(A)", f"A ON W1 {A}", "1→10 2→15 3→40 4→65 5→70 6→0 10→10 11→10 12→0"),
    ("SEQ(A)", f"A ON W2 {A}", "0→10 1→15 2→40 3→65 9→40"),
    ("SEQ(A)", f"A ON W3 {A}", "6→40 12→10"),
    ("SEQ(H)", f"H ON NEW W1 {HIGH}", "3→40 4→65 5→70"),
    ("SEQ(H)", f"H ON GONE W1 {HIGH}", "4→40 5→65 6→70"),
    ("SEQ(U)", f"U ON NEW W1 {UP}", "3→high"),
    ("SEQ(U)", f"U ON GONE W1 {UP}", "6→high"),
]
PAIRS = [
    ("SEQ(H, B)", "3-3 40 70"),
    ("SEQ(B, H)", "2-3 40 60 · 3-4 65 70"),
]

Run = Callable[[str], list[Match]]


def events() -> Iterator[spaseq.Event]:
    for time, value in EVENTS:
        yield spaseq.Event(f'<http://e/o> <http://e/v> "{value}"^^<{XSD}integer> .', time * 1000)


XSD = "http://www.w3.org/2001/XMLSchema#"


def bounded(query: str) -> list[Match]:
    return list(spaseq.run(query, {"S": list(events())}, runtime="local"))


def streamed(query: str) -> list[Match]:
    return list(spaseq.run(query, {"S": events()}, runtime="local"))


def pushed(query: str) -> list[Match]:
    found: list[Match] = []
    with spaseq.Engine(query) as engine:
        for event in events():
            found += engine.push("S", event.graph, event.time)
        found += engine.close()
    return found


def restarted(query: str) -> list[Match]:
    """With a new engine after each event, which goes on from the state of the one before."""
    plan = compile_query(query)
    patterns, stage = PatternStage(plan, KnowledgeBase.empty()), SingleQuery(plan)
    found: list[Answer] = []
    for event, (second, _) in zip(events(), EVENTS, strict=True):
        batch = batch_of_event("http://e/s", second * 1000, 0, None, triples_of(event.graph))
        stage.push(patterns.match(batch))
        found += stage.advance(second * 1000 - 1, ahead=True)
        other = SingleQuery(plan)
        other.restore(stage.snapshot())
        stage = other
    return [Match("query", answer) for answer in (*found, *stage.close())]


def on_spark(query: str) -> list[Match]:
    return list(spaseq.run(query, {"S": list(events())}, runtime="spark"))


RUNS = [bounded, streamed, pushed, restarted, pytest.param(on_spark, marks=pytest.mark.spark)]


def query_of(sequence: str, gpms: str, within: str = "") -> str:
    used = [name for name in WINDOWS if f"{name} " in gpms]
    windows = "\n".join(f"FROM WINDOW {name} ON S {WINDOWS[name]}" for name in used)
    return f"""{PREFIXES}SELECT * {within} FROM STREAM S <http://e/s> {windows}
        WHERE {{ {sequence} {gpms} }}"""


def seconds(match: Match) -> list[int]:
    return [round(item.time.timestamp()) for item in match.trace]


def value(match: Match, name: str) -> object:
    return match.bindings[name].to_python()


@pytest.mark.parametrize("run", RUNS)
def test_levels(run: Run) -> None:
    for sequence, gpm, expected in CASES:
        found = run(query_of(sequence, f"DEFINE GPM {gpm}"))
        shown = [f"{seconds(m)[0]}→{value(m, 'a')}" for m in found]
        assert " ".join(shown) == expected, (sequence, gpm)


@pytest.mark.parametrize("run", RUNS)
def test_a_level_is_a_step_of_a_sequence(run: Run) -> None:
    gpms = f"DEFINE GPM H ON W1 {HIGH} DEFINE GPM B ON S {{ ?o :v ?v }}"
    for sequence, expected in PAIRS:
        found = run(query_of(sequence, gpms, "WITHIN 1 MINUTES"))
        shown = []
        for match in found:
            first, last = seconds(match)
            shown.append(f"{first}-{last} {value(match, 'a')} {value(match, 'v')}")
        assert " · ".join(shown) == expected, sequence


def test_a_window_event_in_an_answer() -> None:
    (match, *_) = bounded(query_of("SEQ(A)", f"DEFINE GPM A ON W1 {A}"))
    (item,) = json.loads(json.dumps(match.to_json()))["trace"]
    assert item == {
        "gpm": "A",
        "stream": "W1",
        "event": None,
        "time": "1970-01-01T00:00:01Z",
        "k": -1,
        "from": "1969-12-31T23:59:59Z",
        "events": 1,
    }
    assert (match.trace[0].event, match.trace[0].events) == (None, 1)


@pytest.mark.parametrize("source", ["W1", "NEW W1"])
def test_a_filter_inside_event_sees_the_time_of_the_window(source: str) -> None:
    """EVENT AT ?t with NOW(): the younger half of a window's events."""
    second = f'"PT1S"^^<{XSD}dayTimeDuration>'
    young = f"{{ EVENT AT ?t {{ ?o :v ?a FILTER(?t >= NOW() - {second}) }} }}"
    found = bounded(query_of("SEQ(A)", f"DEFINE GPM A ON {source} {young}"))
    shown = " ".join(f"{seconds(m)[0]}→{value(m, 'a')}" for m in found)
    assert shown == "1→10 2→20 3→60 4→70 10→10"


@pytest.mark.parametrize("source", ["W2", "NEW W2"])
def test_aggregates_and_orders_see_the_time_of_the_window(source: str) -> None:
    """The age of the oldest event, and the value of the latest one."""
    events_of = "{ EVENT AT ?t { ?o :v ?v } }"
    oldest = f"{{ {{ SELECT (MAX(NOW() - ?t) AS ?a) {events_of} }} }}"
    latest = f"{{ {{ SELECT (?v AS ?a) {events_of} ORDER BY DESC(?t = NOW()) LIMIT 1 }} }}"
    found = bounded(query_of("SEQ(A)", f"DEFINE GPM A ON {source} {oldest}"))
    ages = [0, 1, 1, 1, 6] if source == "W2" else [0, 1, 6]
    assert [value(m, "a") for m in found] == [f"PT{age}S" for age in ages]
    found = bounded(query_of("SEQ(A)", f"DEFINE GPM A ON {source} {latest}"))
    assert [value(m, "a") for m in found] == [10, 20, 60, 70, 10]


ROADS = [(0, "o1", "r1", 10), (1, "o2", "r2", 20), (2, "o1", "r1", 60), (3, "o3", "r1", 70)]


def test_a_pattern_over_the_partition_and_the_time_waits_for_no_step() -> None:
    """When the thing was on the road before; a window event is evaluated once, in stage 1."""
    query = f"""{PREFIXES} SELECT ?a ?t WITHIN 1 MINUTES PARTITION BY (?road) FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 2 EVENTS EACH EVENT KEY {{ ?o :road ?road }}
        WHERE {{ SEQ(A) DEFINE GPM A ON W {{
        EVENT {{ ?o :v ?a }}
        OPTIONAL {{ EVENT AT ?t {{ ?o :road ?road }} FILTER (?t < NOW()) }} }} }}"""
    (gpm,) = compile_query(query).patterns.gpms
    assert (gpm.correlation, len(gpm.needed)) == (None, 2)
    lines = (
        "<http://e/{0}> <http://e/road> <http://e/{1}> .\n"
        f'<http://e/{{0}}> <http://e/v> "{{2}}"^^<{XSD}integer> .'
    )
    sent = [spaseq.Event(lines.format(*each), time * 1000) for time, *each in ROADS]
    found = list(spaseq.run(query, {"S": sent}, runtime="local"))
    with spaseq.Engine(query) as engine:
        pushed_one_by_one = [m for e in sent for m in engine.push("S", e.graph, e.time)]
        assert [*pushed_one_by_one, *engine.close()] == found
    shown = [(seconds(m)[0], value(m, "a"), str(m.bindings.get("t"))[:20]) for m in found]
    first, third = '"1970-01-01T00:00:00', '"1970-01-01T00:00:02'
    assert shown == [
        (0, 10, "None"), (1, 20, "None"),
        (2, 10, first), (2, 60, first), (3, 60, third), (3, 70, "None"),
    ]  # fmt: skip


def test_a_filter_inside_event_sees_earlier_steps() -> None:
    high = "{ EVENT { ?o :v ?a FILTER(?a > ?first + 40) } }"
    gpms = f"DEFINE GPM B ON S {{ ?x :v ?first }} DEFINE GPM H ON W1 {high}"
    found = bounded(query_of("SEQ(B; H)", gpms, "WITHIN 1 MINUTES"))
    shown = [f"{value(m, 'first')}-{value(m, 'a')}@{seconds(m)[1]}" for m in found]
    assert shown == ["10-60@3", "20-70@4"]


@pytest.mark.parametrize("remembered", ["usual", "nothing"])
def test_a_window_event_is_read_once_for_all_partial_matches(
    monkeypatch: pytest.MonkeyPatch, remembered: str
) -> None:
    """Also if there is no room to remember the solutions of EVENT for each of them."""
    reads, read = list[str](), WindowGraphs.event_of

    def counted(graphs: WindowGraphs, text: str) -> object:
        reads.append(text)
        return read(graphs, text)

    monkeypatch.setattr(WindowGraphs, "event_of", counted)
    query = f"""{PREFIXES} SELECT ?c WITHIN 1 HOURS FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 9 SECONDS SLIDE 3 SECONDS
        WHERE {{ SEQ(C; N) DEFINE GPM C ON S {{ ?o :asks ?c }}
            DEFINE GPM N ON W {{ FILTER NOT EXISTS {{ EVENT {{ ?p :at ?c }} }} }} }}"""
    draw = Random(8)
    given = [(s, draw.choice(["asks", "at"]), draw.randrange(9)) for s in range(200)]
    sent = [spaseq.Event(f'<http://e/o> <http://e/{p}> "{c}" .', 1000 * s) for s, p, c in given]
    with forced("remembered_bytes=0" if remembered == "nothing" else ""):
        found = list(spaseq.run(query, {"S": sent}, runtime="local"))
    expected = []
    for second, name, place in given:
        if name == "asks":
            close = second // 3 * 3 + 3
            while ("at", place) in {(n, p) for s, n, p in given if close - 9 <= s < close}:
                close += 3
            expected.append((close, f'"{place}"'))
    assert sorted((seconds(m)[1], str(m.bindings["c"])) for m in found) == sorted(expected)
    assert len(reads) == len({*reads}) < len(found)


@pytest.mark.parametrize("gpm", [f"A ON W1 {A}", "A ON W1 { ?o :v ?a }"])
def test_window_events_in_tables(gpm: str) -> None:
    """`from` and `events` are columns of a trace, as they are members of it in JSON lines."""
    run = spaseq.run(
        query_of("SEQ(A)", f"DEFINE GPM {gpm}"), {"S": list(events())}, runtime="local"
    )
    table = run.to_arrow()
    (item,) = table.column("trace")[0].as_py()
    assert (item["event"], item["from"].second, item["events"]) == (None, 59, 1)
    assert item["time"].second == 1


def test_window_events_in_rows_of_spark() -> None:
    """A row of Spark's answers gives back the answer that it was made of."""
    from spaseq.runtime.spark.rows.answer_rows import answer_columns, answer_of_row

    for match in bounded(query_of("SEQ(A)", f"DEFINE GPM A ON W1 {A}")):
        (row,) = answer_columns("q", [match.answer]).to_pylist()
        assert answer_of_row(row).trace == match.answer.trace
