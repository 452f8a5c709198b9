"""Queries that come to an `Engine`, change and go while events are pushed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from spaseq import Engine, Event, function
from spaseq.errors import QueryError, RunError, UsageError
from spaseq.expr.extension import unregister
from tests.api.test_engine_queries import EX, HOT, PLAIN, TWICE, reading
from tests.sizes import sizes

PAIR = f"""PREFIX : <{EX}>
SELECT ?x ?t ?u WITHIN {{window}} FROM STREAM S <{EX}s>
WHERE {{{{ SEQ(A{{op}} B) DEFINE GPM A ON S {{{{ ?x :temperature ?t }}}}
  DEFINE GPM B ON S {{{{ ?x :temperature ?u FILTER (?u > ?t + {{rise}}) }}}} }}}}"""

FAILING = f"""PREFIX : <{EX}>
SELECT ?x WITHIN 1 MINUTES FROM STREAM S <{EX}s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :temperature ?t FILTER (<{EX}fragile>(?t) = 1) }} }}"""


def pair(op: str = ";", window: str = "1 MINUTES", rise: int = 0) -> str:
    return PAIR.format(op=op, window=window, rise=rise)


@pytest.fixture
def fragile() -> Iterator[None]:
    """A function that fails from 50 on."""

    @function(f"{EX}fragile")
    def fails(value: int) -> int:
        if value >= 50:
            raise OSError("no such device")
        return 1

    yield
    unregister(f"{EX}fragile")


def pushed(engine: Engine, *values: int, at: int = 0) -> list[str]:
    """The names of the queries of the answers to readings, one a second."""
    found = [m for i, v in enumerate(values) for m in engine.push("S", reading(v), at + 1000 * i)]
    return [m.query for m in found + engine.advance(at + 1000 * len(values) - 1)]


def test_an_engine_begins_without_queries() -> None:
    engine = Engine([])
    assert engine.queries == ()
    with pytest.raises(UsageError, match="no stream S"):
        engine.push("S", reading(1), 0)
    assert engine.add(PLAIN, name="plain") == "plain"
    assert pushed(engine, 1, 2) == ["plain", "plain"]


def test_a_query_gets_the_events_from_when_it_was_added() -> None:
    engine = Engine(PLAIN, name="first")
    engine.push("S", reading(1), 0)
    assert engine.add(pair(), name="pair") == "pair"
    engine.push("S", reading(2), 1000)
    assert [m.query for m in engine.push("S", reading(3), 2000)] == ["first"]
    last = engine.advance(2000)
    assert [m.query for m in last] == ["first", "pair"]
    assert [v.to_python() for v in last[1].bindings.values()] == [f"{EX}pan", 2, 3]


def test_instants_are_not_counted_anew() -> None:
    engine = Engine(PLAIN, name="first")
    engine.push("S", reading(1), 0)
    engine.add(PLAIN.replace("?x ?t WITHIN", "?t WITHIN"), name="second")
    engine.push("S", reading(2), 0)
    items = {m.query: [item.k for item in m.answer.trace] for m in engine.advance(0)[1:]}
    assert items == {"first": [1], "second": [1]}


def test_names() -> None:
    engine = Engine([])
    assert [engine.add(pair(rise=i)) for i in range(3)] == ["query", "query2", "query3"]
    engine.remove("query2")
    assert engine.add(pair(rise=5)) == "query2"
    assert engine.queries == ("query", "query3", "query2")
    with pytest.raises(UsageError, match=r"no query is called quarry2, did you mean query2\?"):
        engine.remove("quarry2")


def test_a_file_gives_its_stem(tmp_path: Path) -> None:
    (tmp_path / "warm.rq").write_text(PLAIN)
    engine = Engine([])
    assert engine.add(tmp_path / "warm.rq") == "warm"


def test_the_same_text_changes_nothing() -> None:
    engine = Engine([pair()])
    name = engine.queries[0]
    engine.push("S", reading(1), 0)
    engine.add(pair().replace("SELECT", "\n# the same\nSELECT"), name=name)
    assert pushed(engine, 2, at=1000) == [name]


def test_another_text_begins_anew() -> None:
    engine = Engine(pair(), name="pair")
    engine.push("S", reading(1), 0)
    engine.add(pair(rise=1), name="pair")
    assert engine.queries == ("pair",)
    assert pushed(engine, 5, at=1000) == []
    assert pushed(engine, 9, at=2000) == ["pair"]


def test_a_wrong_query_changes_nothing() -> None:
    engine = Engine(pair(), name="pair")
    engine.push("S", reading(1), 0)
    with pytest.raises(QueryError):
        engine.add("SELECT ?x", name="pair")
    assert pushed(engine, 2, at=1000) == ["pair"]


def test_a_query_that_went_has_no_answers() -> None:
    engine = Engine([PLAIN, pair()])
    engine.push("S", reading(1), 0)
    engine.remove("query1")
    assert pushed(engine, 2, at=1000) == ["query2"]
    engine.remove("query2")
    assert engine.queries == ()
    assert pushed(engine, 3, at=3000) == []


@pytest.mark.parametrize("maker_first", [True, False])
def test_makers_and_readers_of_streams_come_in_any_order(maker_first: bool) -> None:
    engine, texts = Engine([]), {"maker": HOT, "reader": TWICE}
    for name in sorted(texts, reverse=not maker_first):
        engine.add(texts[name], name=name)
    hot = f"{EX}hot"
    assert pushed(engine, 60, 70) == [hot, hot, "reader"]
    engine.remove("maker")
    assert pushed(engine, 80, at=2000) == []
    engine.add(HOT.replace("50", "60"), name="another")
    assert pushed(engine, 60, 90, at=3000) == [hot, "reader"]  # 70, and after it 90


def test_a_stream_has_one_maker_and_there_is_no_circle() -> None:
    engine = Engine(HOT, name="maker")
    other = HOT.replace("50", "60")
    with pytest.raises(UsageError, match="two queries register"):
        engine.add(other, name="another")
    engine.add(other, name="maker")
    circle = HOT.replace(f"<{EX}s>", f"<{EX}warm>")
    engine.add(HOT.replace(f"<{EX}hot>", f"<{EX}warm>").replace(f"<{EX}s>", f"<{EX}hot>"), name="b")
    with pytest.raises(UsageError, match="circle"):
        engine.add(circle, name="maker")
    assert pushed(engine, 70) == [f"{EX}hot"]


@pytest.mark.parametrize("many", [False, True])
def test_a_query_that_fails_stops_no_other(fragile: None, many: bool) -> None:
    engine = Engine([FAILING, PLAIN])
    pairs = [("S", Event(reading(v), 1000 * i)) for i, v in enumerate([1, 60, 2])]
    if many:
        found = engine.push_many(pairs)
    else:
        found = [m for stream, e in pairs for m in engine.push(stream, e.graph, e.time)]
    found += engine.close()
    assert [m.query for m in found].count("query2") == 3
    assert [*engine.failed] == ["query1"]
    assert "no such device" in engine.failed["query1"]


def test_a_query_that_failed_begins_anew_when_it_is_added(fragile: None) -> None:
    engine = Engine([FAILING, PLAIN])
    pushed(engine, 60)
    engine.add(FAILING, name="query1")
    assert engine.failed == {}
    assert sorted(pushed(engine, 1, at=1000)) == ["query1", "query2"]
    engine.remove("query2")
    with pytest.raises(RunError, match="no such device"):
        engine.push("S", reading(60), 5000)


TEXTS = [
    pair(op, window, rise)
    for op in (";", ",", ":")
    for window in ("2 SECONDS", "3 EVENTS", "1 MINUTES")
    for rise in (0, 3)
] + [PLAIN]


@sizes(20, 40, 1000)
def test_answers_are_those_over_the_events_from_when_a_query_came(examples: int) -> None:
    """Each query by itself over the events between its coming and its going."""
    for seed in range(examples):
        random = Random(seed)
        engine = Engine([])
        alone: dict[str, tuple[Engine, str]] = {}
        found: list[tuple[str, object]] = []
        wanted: list[tuple[str, object]] = []
        time = 0
        for _ in range(random.randint(5, 30)):
            act = random.random()
            name = random.choice("abc")
            if act < 0.2:
                text = random.choice(TEXTS)
                engine.add(text, name=name)
                if name not in alone or alone[name][1] != text:
                    alone[name] = Engine(text, name=name), text
            elif act < 0.3 and name in alone:
                engine.remove(name)
                del alone[name]
            elif "a" in alone or "b" in alone or "c" in alone:
                time += random.choice([0, 500, 1000])
                graph = reading(random.randrange(10))
                found += [(m.query, content(m)) for m in engine.push("S", graph, time)]
                for own, _ in alone.values():
                    wanted += [(m.query, content(m)) for m in own.push("S", graph, time)]
        found += [(m.query, content(m)) for m in engine.close()]
        for own, _ in alone.values():
            wanted += [(m.query, content(m)) for m in own.close()]
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), seed


def content(match: object) -> object:
    """An answer without the numbers of its events, which the engine counts from its start."""
    answer = match.answer  # type: ignore[attr-defined]
    return answer.first[0], answer.end[0], answer.bindings


def test_a_query_that_is_added_sees_what_no_other_looks_at() -> None:
    """Batches of text keep only the triples that some query reads, also of one that came later."""
    engine = Engine(PLAIN)
    batch = [("S", Event(reading(80), 1000 + n)) for n in range(40)]
    assert len([*engine.push_many(batch), *engine.advance(8000)]) == 40
    engine.add(PLAIN.replace("temperature", "humidity"), name="humid")
    text = reading(80).replace("temperature", "humidity")
    found = engine.push_many([("S", Event(text, 9000 + n)) for n in range(40)])
    assert {match.query for match in [*found, *engine.advance(9999)]} == {"humid"}
    other = PLAIN.replace(f"S <{EX}s>", f"T <{EX}other>").replace("ON S", "ON T")
    engine.add(other, name="t")
    assert [m.query for m in [*engine.push("T", reading(80), 20_000), *engine.close()]] == ["t"]
