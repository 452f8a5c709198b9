"""Events pushed one by one, in small batches and in large ones, give the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random

import pytest
from rdflib import Graph, Literal, URIRef

from spaseq import Engine, Event, Match
from spaseq.algebra.answers import Instant
from spaseq.plan.rules import NAMES
from spaseq.rdf.terms.term import XSD
from tests.sizes import sizes

NS = "http://e/ns#"
STREAMS = {"S": "http://e/s", "T": "http://e/t"}
KB = "http://e/kb"
KNOWLEDGE = Graph()
for number in (0, 1):
    KNOWLEDGE.add((URIRef(f"http://e/k{number}"), URIRef(f"{NS}name"), Literal(f"key {number}")))

HEAD = f"PREFIX : <{NS}> SELECT"
FROM = " ".join(f"FROM STREAM {name} <{iri}>" for name, iri in STREAMS.items())
GPMS = """
    DEFINE GPM A ON S, T { ?a a :A ; :key ?key ; :v ?va }
    DEFINE GPM B ON S { ?b a :B ; :key ?key ; :v ?vb }
    DEFINE GPM C ON S, T { ?c a :C ; :key ?key ; :v ?vc FILTER (?vc < 4) }
    DEFINE GPM M ON S, T { ?m a :B ; :key ?key ; :v ?vm FILTER (?vm >= ?va) }
    DEFINE GPM K ON S, T { ?n a :A ; :key ?key GRAPH <http://e/kb> { ?key :name ?name } }
    DEFINE GPM O ON T { ?o a :C OPTIONAL { ?o :v ?vo FILTER (?vo > 2) } }
"""


def query(sequence: str, head: str = "*", rest: str = "", within: str = "6 SECONDS") -> str:
    used = "\n".join(
        line
        for line in GPMS.splitlines()
        if line.strip() and line.split()[2] in sequence.replace("(", " ").replace(")", " ")
    )
    graph = f"FROM NAMED <{KB}>" if "K" in sequence else ""
    return f"{HEAD} {head} WITHIN {within} {rest} {FROM} {graph} SEQ({sequence}) {{ {used} }}"


QUERIES = {
    "one step": query("C"),
    "chain": query("A; B: C"),
    "chain by key": query("A, B; C", rest="PARTITION BY (?key)"),
    "compact": query("A: (B | C)+: C"),
    "registers": query("A; M; C"),
    "registers by key": query("A: M: C", rest="PARTITION BY (?key)"),
    "absence": query("A; M!; C"),
    "absence at the end": query("A; M!", within="2 SECONDS"),
    "registers in any order": query("A: M: B"),
    "strict": query("A, B?, C"),
    "counted": query("A; M; C", within="7 EVENTS"),
    "counted by key": query("A; M", within="4 EVENTS", rest="PARTITION BY (?key)"),
    "conjunction": query("(A & C); B"),
    "any order": query("(A AND B); C"),
    "knowledge": query("K; C"),
    "optional": query("A; O"),
    "SELECT NEXT": query("A: B: C", "NEXT *"),
    "SELECT STRICT": query("A: B", "STRICT *"),
    "DISTINCT": query("A: B", "DISTINCT ?key"),
    "after match": query("A: B: C", rest="AFTER MATCH SKIP PAST LAST EVENT"),
    "expressions": query("A; M", "?key (?vm - ?va AS ?more)"),
}


def events(random: Random, size: int) -> Iterator[tuple[str, Event]]:
    """Events of both streams in order of time; some have equal times, and some are unusual."""
    time = 1000
    for i in range(size):
        time += random.choice([0, 0, 500, 1000])
        value = random.choice([*map(str, range(8)), "1.5", "x"])
        kind = "decimal" if "." in value else "string" if value == "x" else "integer"
        subject = random.choice([f"<http://e/e{i}>", "_:e", "<http://e/same>"])
        lines = [
            f"{subject} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{k}> ."
            for k in random.choice(["A", "B", "C", "B", "AC", ""])
        ]
        lines.append(f"{subject} <{NS}key> <http://e/k{random.randrange(3)}> .")
        lines.append(f'{subject} <{NS}v> "{value}"^^<{XSD}{kind}> .')
        lines += random.choice([[], [], [f'{subject} <{NS}v> "7"^^<{XSD}integer> .'], lines[:1]])
        yield random.choice([*STREAMS]), Event("\n".join(lines), time)


Pusher = Callable[[Engine, list[tuple[str, Event]]], list[Match]]


def one_by_one(engine: Engine, given: list[tuple[str, Event]]) -> list[Match]:
    return [match for s, e in given for match in engine.push(s, e.graph, e.time)]


def at_once(engine: Engine, given: list[tuple[str, Event]]) -> list[Match]:
    return engine.push_many(given)


def all_ways(random: Random) -> Pusher:
    """Single pushes, batches, and promises about time, at random."""

    def push(engine: Engine, given: list[tuple[str, Event]]) -> list[Match]:
        found, at = [], 0
        while at < len(given):
            size = random.choice([1, 1, 1, 5, 60])
            part = given[at : at + size]
            found += one_by_one(engine, part) if size == 1 else engine.push_many(part)
            at += size
            following = given[at][1].time if at < len(given) else 10**6
            if random.random() < 0.2:
                found += engine.advance(random.randint(part[-1][1].time - 1, following - 1))
        return found

    return push


def answers(
    query: str, given: list[tuple[str, Event]], push: Pusher, disable: Iterable[str] = ()
) -> list[tuple[Instant, Instant, object, object]]:
    """The public attributes of the answers."""
    engine = Engine(query, {KB: KNOWLEDGE} if KB in query else None, disable=disable)
    found = push(engine, given)
    given_out = [match.answer for match in [*found, *engine.close()]]
    return [(a.first, a.end, a.trace, a.bindings) for a in given_out]


def of_one_stream(text: str) -> str:
    """The query with all GPMs on the first stream."""
    return (
        text.replace(f" FROM STREAM T <{STREAMS['T']}>", "")
        .replace("S, T {", "S {")
        .replace("ON T", "ON S")
    )


@pytest.mark.each_once
@sizes(1, 4, 8)
@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_however_events_are_pushed(name: str, streams: int, examples: int) -> None:
    for seed in range(examples):
        check_pushed(name, streams, Random(f"{name}:{streams}:{seed}"))


def check_pushed(name: str, streams: int, random: Random) -> None:
    """Check that events give the same answers at once, one by one, and in batches of any size."""
    text, given = QUERIES[name], [*events(random, 90)]
    if streams == 1:
        text, given = of_one_stream(text), [("S", event) for _, event in given]
    expected = answers(text, given, at_once)
    assert answers(text, given, one_by_one) == expected
    disable = random.sample(NAMES, random.randint(0, 2))
    assert answers(text, given, all_ways(random), disable) == expected


@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize("name", ["chain", "registers", "absence at the end", "SELECT NEXT"])
def test_answers_come_once_they_are_certain(name: str, streams: int) -> None:
    """Answers that end before the time of the latest event, or by the time of a promise."""
    text, given = QUERIES[name], [*events(Random(3), 300)]
    if streams == 1:
        text, given = of_one_stream(text), [("S", event) for _, event in given]
    engine, found = Engine(text), list[int]()
    ends = [end[0] for _, end, _, _ in answers(text, given, at_once)]
    for stream, event in given:
        found += [m.answer.end[0] for m in engine.push(stream, event.graph, event.time)]
        assert found == [end for end in ends if end < event.time]
    found += [m.answer.end[0] for m in engine.advance(given[-1][1].time)]
    assert found == [end for end in ends if end <= given[-1][1].time]
    assert len(found) > 10


def test_the_queries_have_answers() -> None:
    given = [*events(Random(1), 200)]
    assert all(answers(text, given, one_by_one) for text in QUERIES.values())
    alone = [("S", event) for _, event in given]
    assert all(answers(of_one_stream(text), alone, one_by_one) for text in QUERIES.values())


@pytest.mark.parametrize("sequence", ["A; B; C", "A; M; C"])
def test_more_than_is_kept_as_rows(sequence: str) -> None:
    text, given = query(sequence, within="4000 SECONDS"), [*events(Random(2), 3000)]
    assert answers(text, given, one_by_one) == answers(text, given, at_once)
