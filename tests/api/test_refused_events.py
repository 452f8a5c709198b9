"""An event that is refused leaves an engine as it was, and the good events around it count."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import numpy as np
import pytest

from spaseq import Engine, Event, Match, function, run
from spaseq.errors import BadEvents, InputError, RunError, SpaseqError, UsageError
from spaseq.expr.extension import unregister
from tests.api.test_push import KB, KNOWLEDGE, QUERIES, events
from tests.sizes import sizes

GOOD = '<http://e/a> <http://e/ns#v> "1" .'
BAD_TIMES: list[Any] = [
    2**70, -(2**70), 2**62, 10**5000, math.nan, math.inf, 1.5, True, None, "12", "2020-01-41",
    np.float64(1), np.bool_(True), np.datetime64("NaT"),
]  # fmt: skip
BAD_GRAPHS: list[Any] = [
    "<http://e/a> <bad", GOOD + "\n" + "x", None, 5, [1], [("a", "b")], [("<a", "<b>", "<c>")],
    b"<http://e/a>", object(), "\ud800",
]  # fmt: skip


def engine(query: str) -> Engine:
    return Engine(query, {KB: KNOWLEDGE} if KB in query else None)


def bad_event(random: Random, now: int) -> tuple[str, Any, Any]:
    """A stream, a graph and a time that cannot be pushed when the engine stands at `now`."""
    match random.randrange(4):
        case 0:
            return "S", GOOD, random.choice(BAD_TIMES)
        case 1:  # a bad graph far ahead must not move the clock
            return "S", random.choice(BAD_GRAPHS), now + random.choice([0, 10**9])
        case 2:
            return "S", GOOD, now - 1
        case _:
            return "unknown", GOOD, now


def plain(matches: list[Match]) -> list[object]:
    return [(a.first, a.end, a.trace, a.bindings) for a in (m.answer for m in matches)]


@sizes(1, 4, 8)
@pytest.mark.parametrize("name", QUERIES)
def test_refused_events_change_no_answer(name: str, examples: int) -> None:
    for seed in range(examples):
        random = Random(f"{name}:{seed}")
        given = [*events(random, 60)]
        clean, tried, batched = (engine(QUERIES[name]) for _ in range(3))
        expected: list[Match] = []
        found: list[Match] = []
        batch: list[tuple[str, Any]] = []
        now = 0
        for stream, event in given:
            if batch and random.random() < 0.3:  # no time goes back before the first event
                wrong, graph, time = bad_event(random, now)
                with pytest.raises(SpaseqError):
                    tried.push(wrong, graph, time)
                batch.append((wrong, Event(graph, time)))
            expected += clean.push(stream, event.graph, event.time)
            found += tried.push(stream, event.graph, event.time)
            batch.append((stream, event))
            now = int(event.time)
        assert plain(found) == plain(expected)
        expected += clean.close()
        assert plain(found + tried.close()) == plain(expected)
        assert plain(in_batches(random, batched, batch)) == plain(expected)


def in_batches(random: Random, batched: Engine, batch: list[tuple[str, Any]]) -> list[Match]:
    found: list[Match] = []
    while batch:
        size = random.choice([1, 5, 100])
        part, batch = batch[:size], batch[size:]
        try:
            found += batched.push_many(part)
        except BadEvents as error:
            found += error.matches
    return found + batched.close()


ONE = """SELECT ?v WITHIN 1 MINUTES FROM STREAM S <http://e/s>
SEQ(A) { DEFINE GPM A ON S { ?x <http://e/ns#v> ?v } }"""


@pytest.mark.parametrize("time", BAD_TIMES, ids=range(len(BAD_TIMES)))
def test_what_is_no_time(time: Any) -> None:
    one = Engine(ONE)
    with pytest.raises(UsageError, match="time"):
        one.push("S", GOOD, time)
    with pytest.raises(UsageError, match="time"):
        one.advance(time)
    one.push("S", GOOD, 1)
    assert [m.end.second for m in one.close()] == [0]


def test_times_of_other_types() -> None:
    one, east = Engine(ONE), timezone(timedelta(hours=2))
    times = [np.int64(0), datetime(1970, 1, 1), datetime(1970, 1, 1, 2, 0, 1, tzinfo=east)]
    found = [m for time in times for m in one.push("S", GOOD, time)] + one.close()
    assert [m.end for m in found] == [datetime(1970, 1, 1, 0, 0, s, tzinfo=UTC) for s in (0, 0, 1)]


@pytest.mark.parametrize("count", [3, 60])
def test_a_batch_takes_its_good_events_and_names_the_bad_ones(count: int) -> None:
    one = Engine(ONE)
    batch: list[Any] = [("S", Event(GOOD, 1000 * i)) for i in range(count)]
    batch[1:1] = [("S", Event("<http://e/a> <bad", 10**9)), ("T", Event(GOOD, 0)), "S", ("S", 5)]
    with pytest.raises(BadEvents) as caught:
        one.push_many(batch)
    error = caught.value
    assert [place for place, _ in error.bad] == [1, 2, 3, 4]
    assert [type(e) for _, e in error.bad] == [InputError, UsageError, UsageError, UsageError]
    assert str(error).startswith("event 1: not a graph: ")
    assert str(error).endswith("; and 1 more")
    assert len(error.matches) == count - 1  # the last one is not certain yet
    assert len(one.close()) == 1
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)


def test_a_batch_without_good_events() -> None:
    one = Engine(ONE)
    with pytest.raises(BadEvents) as caught:
        one.push_many([("S", Event("<", 0))])
    assert caught.value.matches == []
    one.push("S", GOOD, 0)
    assert len(one.close()) == 1


def test_a_function_that_fails_for_an_event_leaves_the_engine_as_it_was() -> None:
    @function("http://e/careful")
    def careful(value: str) -> str:
        if value == "boom":
            raise OSError("no such device")
        return value

    text = ONE.replace("?v }", "?v FILTER(<http://e/careful>(?v) != '0') }")
    boom = '<http://e/a> <http://e/ns#v> "boom" .'
    try:
        one = Engine(text)
        found = one.push("S", GOOD, 1000)
        with pytest.raises(RunError, match="no such device"):
            one.push("S", boom, 5000)
        with pytest.raises(RunError, match="no such device"):
            one.push_many([("S", Event(GOOD, 1000)), ("S", Event(boom, 5000))])
        found += one.push("S", GOOD, 1000) + one.close()
        assert [item.k for m in found for item in m.trace] == [0, 1]
    finally:
        unregister("http://e/careful")


def test_a_failure_in_the_midst_of_the_sequence_ends_the_engine() -> None:
    """Partial matches have been lost by then, so further answers would be wrong."""

    @function("http://e/careful")
    def careful(value: str, other: str) -> str:
        raise OSError("no such device")

    text = """SELECT ?v ?w WITHIN 1 MINUTES FROM STREAM S <http://e/s> SEQ(A; B) {
        DEFINE GPM A ON S { ?x <http://e/ns#v> ?v }
        DEFINE GPM B ON S { ?y <http://e/ns#v> ?w FILTER(<http://e/careful>(?v, ?w) = '0') } }"""
    try:
        one = Engine(text)
        one.push("S", GOOD, 0)
        with pytest.raises(RunError, match="no such device"):
            one.push("S", GOOD, 1000)
        for call in (lambda: one.push("S", GOOD, 2000), lambda: one.advance(3000), one.close):
            with pytest.raises(RunError, match=r"cannot go on .* no such device"):
                call()
    finally:
        unregister("http://e/careful")


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (None, "NoneType is neither N-Triples text, nor an rdflib graph, nor triples"),
        (b"<http://e/a>", "bytes is neither"),
        ({"a": 1}, "a dict is a row"),
        (Event(GOOD, 1), "push_many takes"),
    ],
    ids=["nothing", "bytes", "row", "event"],
)
def test_the_reason_for_what_is_no_graph(graph: Any, reason: str) -> None:
    with pytest.raises(SpaseqError, match=reason):
        Engine(ONE).push("S", graph, 1)


@pytest.mark.parametrize("iri", ["<http://e/1>", "an event", 5])
def test_an_event_whose_iri_is_none_is_bad(iri: Any) -> None:
    event = Event(GOOD, 1, iri)
    with pytest.raises(SpaseqError):
        Engine(ONE).push_many([("S", event)])
    bad: list[Any] = []
    assert not [*run(ONE, {"S": [event]}, runtime="local", on_bad=bad.append)]
    assert len(bad) == 1


def test_bad_events_without_on_bad_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """An empty result would look as if the events had been read."""
    events: list[Any] = [("S", GOOD, 1), None, *[Event("junk", n) for n in range(5)]]
    with run(ONE, {"S": events}, runtime="local") as answers:
        assert [*answers] == []
        assert answers.stats.bad == 7
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 4
    assert "not tuple" in told[0]
    assert "not NoneType" in told[1]
    assert "Stats.bad counts it" in told[3]


def test_a_decorator_without_its_iri() -> None:
    with pytest.raises(UsageError, match="a function needs an IRI"):
        function(len)  # type: ignore[arg-type]


def test_a_graph_of_kb_that_is_none() -> None:
    query = ONE.replace("FROM", "FROM NAMED <http://e/kb> FROM")
    with pytest.raises(UsageError, match="a graph of kb is a path, a URL or an rdflib graph"):
        Engine(query, {"http://e/kb": 5})  # type: ignore[dict-item]


def test_an_asynchronous_stream_is_for_run_async() -> None:
    async def events() -> Any:
        yield Event(GOOD, 1)

    with pytest.raises(UsageError, match="run_async takes it"):
        [*run(ONE, {"S": events()}, runtime="local")]  # type: ignore[dict-item]
