"""Runs over generators: answers come when they are certain, and are those of a sorted run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

import spaseq
from spaseq import Event
from spaseq.errors import InputError, QueryError, UsageError
from spaseq.rdf.inputs.stream_options import BadInput
from tests.api.test_push import KB, KNOWLEDGE, QUERIES, STREAMS, events
from tests.sizes import sizes

EX = "http://example/"
FALLING = f"""PREFIX : <{EX}>
SELECT ?v1 ?v2 WITHIN 1 MINUTES FROM STREAM S <{EX}s>
WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?x :v ?v1 }}
  DEFINE GPM B ON S {{ ?x :v ?v2 FILTER (?v2 < ?v1) }} }}"""
JOINED = f"""PREFIX : <{EX}>
SELECT ?v1 ?v2 WITHIN 1 MINUTES FROM STREAM S <{EX}s> FROM STREAM T <{EX}t>
WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?x :v ?v1 }} DEFINE GPM B ON T {{ ?x :v ?v2 }} }}"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def event(value: int, time: int) -> Event:
    return Event(f'<{EX}x> <{EX}v> "{value}"^^<{INTEGER}> .', time)


class Tape:
    """A generator's events, and how many of them have been taken."""

    def __init__(self, given: list[Event]) -> None:
        self.given, self.taken = given, 0

    def events(self) -> Iterator[Event]:
        for each in self.given:
            self.taken += 1
            yield each

    async def awaited(self) -> AsyncIterator[Event]:
        for each in self.events():
            await asyncio.sleep(0)
            yield each


def values(match: spaseq.Match) -> tuple[int, int]:
    return match.bindings["v1"].to_python(), match.bindings["v2"].to_python()


READINGS = [event(9, 0), event(8, 1000), event(8, 1000), event(7, 2000), event(6, 3000)]


@pytest.mark.parametrize("runtime", [None, "local"])
def test_an_answer_comes_when_it_is_certain(runtime: str | None) -> None:
    tape = Tape(READINGS)
    answers = spaseq.run(FALLING, {"S": tape.events()}, runtime=runtime)
    assert tape.taken == 0
    assert values(next(answers)) == (9, 8)
    assert tape.taken == 4  # the event at 2 s says that no other event of 1 s follows
    assert (answers.stats.events, answers.stats.matches) == (4, 1)
    rest = [values(match) for match in answers]
    assert rest == [values(m) for m in spaseq.run(FALLING, {"S": READINGS}, runtime="local")][1:]
    assert (answers.stats.events, answers.stats.triples) == (5, 5)
    assert answers.stats.matches == len(rest) + 1


def test_an_endless_generator() -> None:
    def endless() -> Iterator[Event]:
        number = 0
        while True:
            number += 1
            yield event(-number, 1000 * number)

    answers = spaseq.run(FALLING, {"S": endless()})
    assert [values(next(answers)) for _ in range(3)] == [(-1, -2), (-2, -3), (-3, -4)]
    answers.close()
    assert list(answers) == []


def test_the_stream_that_is_behind_is_asked_first() -> None:
    s = Tape([event(1, 0), event(2, 10_000)])
    t = Tape([event(3, 1000), event(4, 2000), event(5, 50_000)])
    answers = spaseq.run(JOINED, {"S": s.events(), "T": t.events()})
    assert values(next(answers)) == (1, 3)
    assert (s.taken, t.taken) == (2, 2)
    assert [values(m) for m in answers] == [(2, 5)]


def test_a_generator_beside_a_file_and_a_list(tmp_path: Path) -> None:
    other = [event(5, 50_000), event(4, 2000), event(3, 1000)]  # a list is sorted
    answers = spaseq.run(JOINED, {"S": iter([event(1, 0), event(2, 10_000)]), "T": other})
    assert [values(m) for m in answers] == [(1, 3), (2, 5)]
    lines = [
        f'<{EX}x> <{EX}v> "{v}"^^<{INTEGER}> <{EX}e{v}> .\n'
        f'<{EX}e{v}> <http://www.w3.org/ns/prov#generatedAtTime> "{t}"^^<{INTEGER}> .\n'
        for v, t in ((5, 50_000), (3, 1000))
    ]
    (tmp_path / "t.nq").write_text("".join(lines))
    streams = {"S": iter([event(1, 0), event(2, 10_000)]), "T": tmp_path / "t.nq"}
    assert [values(m) for m in spaseq.run(JOINED, streams)] == [(1, 3), (2, 5)]
    assert list(spaseq.run(JOINED, {"S": iter([event(1, 0)]), "T": []})) == []


def test_a_generator_of_paths(tmp_path: Path) -> None:
    (tmp_path / "empty.nq").write_text("")
    paths = (path for path in [tmp_path / "empty.nq"])
    assert list(spaseq.run(FALLING, {"S": paths}, runtime="local")) == []


def test_an_event_that_goes_back() -> None:
    given = [event(9, 0), event(5, 5000), event(7, 2000), event(4, 9000)]
    with pytest.raises(UsageError, match=r"comes after one at .*watermark_ms.*sorted"):
        list(spaseq.run(FALLING, {"S": iter(given)}))
    sorted_run = [values(m) for m in spaseq.run(FALLING, {"S": given}, runtime="local")]
    delayed = spaseq.run(FALLING, {"S": iter(given)}, watermark_ms=3000)
    assert [values(m) for m in delayed] == sorted_run
    with pytest.raises(UsageError, match="watermark_ms is -1"):
        spaseq.run(FALLING, {"S": []}, watermark_ms=-1)


def test_bad_events_lose_no_good_ones() -> None:
    bad: list[BadInput] = []
    given = [
        event(9, 0),
        Event("no graph", 500),
        event(8, 1000),
        Event(event(1, 0).graph, 1.5),  # type: ignore[arg-type]
        "no event",
        event(7, 900),
        event(6, 2000),
    ]
    answers = spaseq.run(FALLING, {"S": iter(given)}, on_bad=bad.append)  # type: ignore[list-item]
    assert [values(m) for m in answers] == [(9, 8), (8, 6)]
    assert (answers.stats.bad, answers.stats.late, answers.stats.events) == (4, 1, 3)
    reasons = ["not a graph", "float", "spaseq.Event", "comes after"]
    assert all(part in each.reason for part, each in zip(reasons, bad, strict=True))
    with pytest.raises(InputError, match="not a graph"):
        list(spaseq.run(FALLING, {"S": iter(given)}))  # type: ignore[list-item]


@sizes(1, 3, 6)
@pytest.mark.parametrize("name", QUERIES)
def test_a_streamed_run_is_like_a_sorted_one(name: str, examples: int) -> None:
    """One stream is a generator and the other a list, or both are generators."""
    kb = {KB: KNOWLEDGE} if KB in QUERIES[name] else None
    for seed in range(examples):
        given = [*events(Random(f"{name}:{seed}"), 50)]
        lists = {s: [e for stream, e in given if stream == s] for s in STREAMS}
        lists = {s: own for s, own in lists.items() if f"FROM STREAM {s} " in QUERIES[name]}
        expected = [m.answer for m in spaseq.run(QUERIES[name], lists, kb, "local")]
        both = {s: iter(own) for s, own in lists.items()}
        assert [m.answer for m in spaseq.run(QUERIES[name], both, kb)] == expected
        one = {s: iter(own) if s == "S" else own for s, own in lists.items()}
        assert [m.answer for m in spaseq.run(QUERIES[name], one, kb)] == expected


def test_partial_matches_and_limits_of_a_streamed_run() -> None:
    parts: list[spaseq.PartialMatch] = []
    given = [event(9, 0), event(10, 1000), event(1, 200_000)]
    answers = spaseq.run(FALLING, {"S": iter(given)}, on_partial=parts.append)
    assert list(answers) == []
    assert [(p.start.second, p.reached) for p in parts] == [(0, "A"), (1, "A"), (20, "A")]


# --- asynchronous -----------------------------------------------------------------------------


def test_awaited_events() -> None:
    async def program() -> tuple[int, list[tuple[int, int]]]:
        tape = Tape(READINGS)
        answers = spaseq.run_async(FALLING, {"S": tape.awaited()})
        first = await anext(answers)
        taken = tape.taken
        return taken, [values(first), *[values(match) async for match in answers]]

    expected = [values(m) for m in spaseq.run(FALLING, {"S": READINGS}, runtime="local")]
    assert asyncio.run(program()) == (4, expected)


def test_awaited_events_beside_other_streams() -> None:
    async def program() -> list[tuple[int, int]]:
        s, t = Tape([event(1, 0), event(2, 10_000)]), [event(3, 1000), event(5, 50_000)]
        found = []
        for other in (t, iter(t), Tape(t).awaited()):
            answers = spaseq.run_async(JOINED, {"S": s.awaited(), "T": other})
            found += [values(match) async for match in answers]
        return found

    assert asyncio.run(program()) == [(1, 3), (2, 5)] * 3


def test_the_event_loop_goes_on() -> None:
    async def program() -> tuple[int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(tick())
        answers = spaseq.run_async(FALLING, {"S": READINGS}, runtime="local")
        found = [match async for match in answers]
        task.cancel()
        return ticks, len(found)

    ticks, found = asyncio.run(program())
    assert ticks > 3 and found > 3


def test_errors_of_an_asynchronous_run() -> None:
    async def first(*arguments: object, **options: object) -> None:
        answers = spaseq.run_async(*arguments, **options)  # type: ignore[arg-type]
        await anext(answers)

    with pytest.raises(QueryError):
        asyncio.run(first("SELECT", {"S": Tape([]).awaited()}))
    with pytest.raises(UsageError, match="runtime local"):
        asyncio.run(first(FALLING, {"S": Tape([]).awaited()}, runtime="spark"))
    with pytest.raises(StopAsyncIteration):
        asyncio.run(first(FALLING, {"S": Tape([]).awaited()}))


def test_an_asynchronous_run_that_is_left() -> None:
    async def program() -> bool:
        answers = spaseq.run_async(FALLING, {"S": Tape(READINGS).awaited()})
        async for _ in answers:
            break
        await answers.aclose()
        return [m async for m in answers] == []

    assert asyncio.run(program())
