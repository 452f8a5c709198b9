"""Several threads call one engine, and callbacks call the engine that calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from typing import Any

import pytest

import spaseq
from spaseq.api.match import Match
from spaseq.errors import UsageError
from spaseq.expr.extension import unregister

THREADS = 4
QUERY = """PREFIX : <http://example/>
SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ(A: B) DEFINE GPM A ON S { ?x :a 1 } DEFINE GPM B ON S { ?x :b 1 } }"""


def event(name: str, letter: str) -> str:
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://example/{name}> <http://example/{letter}> {one} ."


def in_threads(work: Callable[[int], list[Match]]) -> list[Match]:
    """The matches of all threads, which begin together."""
    together = Barrier(THREADS)

    def begin(number: int) -> list[Match]:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return [match for found in pool.map(begin, range(THREADS)) for match in found]


def names(matches: list[Match]) -> Counter[str]:
    return Counter(match.bindings["x"].n3() for match in matches)


def test_threads_push_single_events_and_batches() -> None:
    """Each thread has pairs of its own; no match is lost or comes twice."""
    engine = spaseq.Engine(QUERY)

    def push(number: int) -> list[Match]:
        found: list[Match] = []
        for i in range(60):
            name = f"{number}-{i}"
            if i % 3:
                found += engine.push("S", event(name, "a"), 1000)
                found += engine.push("S", event(name, "b"), 1000)
            else:
                pair = [("S", spaseq.Event(event(name, letter), 1000)) for letter in "ab"]
                found += engine.push_many(pair)
        return found

    found = in_threads(push) + engine.close()
    assert names(found) == Counter(
        f"<http://example/{n}-{i}>" for n in range(THREADS) for i in range(60)
    )


def test_threads_whose_times_go_back_are_told() -> None:
    """Each event is taken or refused; the engine has those that it took."""
    engine, clock = spaseq.Engine(QUERY.replace("A: B", "A")), count()

    def push(number: int) -> list[Match]:
        found: list[Match] = []
        for i in range(100):
            time = next(clock)
            try:
                found += engine.push("S", event(f"{number}-{i}", "a"), time)
            except UsageError:
                refused.append(time)
        return found

    refused: list[int] = []
    found = in_threads(push) + engine.close()
    assert len(found) + len(refused) == 100 * THREADS
    assert set(names(found).values()) == {1}


def test_queries_come_and_go_while_threads_push() -> None:
    engine = spaseq.Engine(QUERY, name="first")

    def work(number: int) -> list[Match]:
        found: list[Match] = []
        for i in range(20):
            if number == 0:
                engine.add(QUERY, name=f"other{i % 3}")
            elif number == 1:
                assert "first" in engine.queries
                assert engine.suppressed == 0
                assert engine.failed == {}
                engine.partials()
                found += engine.advance(0)
            else:
                found += engine.push("S", event(f"{number}-{i}", "a"), 1000)
                found += engine.push("S", event(f"{number}-{i}", "b"), 1000)
        return found

    found = in_threads(work) + engine.close()
    own = names([match for match in found if match.query == "first"])
    assert own == Counter(f"<http://example/{n}-{i}>" for n in (2, 3) for i in range(20))


def test_a_call_inside_a_call_is_refused() -> None:
    """The callback learns it; the call around it goes on."""
    refused: list[str] = []

    @spaseq.function("http://example/f#call")
    def call(value: int) -> int:
        for inside in (
            lambda: engine.push("S", event("y", "a"), 2000),
            lambda: engine.push_many([("S", spaseq.Event(event("y", "a"), 2000))]),
            lambda: engine.add(QUERY),
            engine.close,
        ):
            with pytest.raises(UsageError, match="inside another call") as error:
                inside()
            refused.append(str(error.value))
        return value

    query = QUERY.replace("?x :b 1", "?x :b 1 FILTER(<http://example/f#call>(1) = 1)")
    engine = spaseq.Engine(query)
    try:
        engine.push("S", event("x", "a"), 1000)
        engine.push("S", event("x", "b"), 1500)
        assert [match.bindings["x"].n3() for match in engine.close()] == ["<http://example/x>"]
    finally:
        unregister("http://example/f#call")
    assert refused[0].startswith("Engine.push was called inside another call")
    assert len(refused) % 4 == 0


def test_a_generator_may_push() -> None:
    """`push_many` reads its events before its turn."""
    engine = spaseq.Engine(QUERY.replace("A: B", "A"))

    def events() -> Any:
        engine.push("S", event("first", "a"), 0)
        yield "S", spaseq.Event(event("second", "a"), 1000)

    found = engine.push_many(events()) + engine.close()
    assert names(found)["<http://example/second>"] == 1
