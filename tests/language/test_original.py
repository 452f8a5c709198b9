"""The documented cases of the original system, as (streams, query, matches)."""

from __future__ import annotations

import pytest

import spaseq
from spaseq import Event
from spaseq.lang.parser import parse
from tests.language.test_tables import RUNTIMES

P = "http://example/price"
_XSD = "http://www.w3.org/2001/XMLSchema#"


def event(price: int, second: int) -> Event:
    """An event with one price; its IRI contains its time."""
    triple = f'<http://example/o{second}> <{P}> "{price}"^^<{_XSD}integer> .'
    return Event(triple, second * 1000, f"http://example/e{second}")


def run(query: str, streams: dict[str, list[Event]], runtime: str) -> list[list[int]]:
    """The times, in seconds, of each match's events."""
    matches = spaseq.run(query, streams, runtime=runtime)
    return [[round(t.time.timestamp()) for t in m.trace] for m in matches]


def query(sequence: str, gpms: str, streams: int = 1) -> str:
    clauses = "\n".join(f"FROM STREAM S{i} <http://example/s{i}>" for i in range(1, streams + 1))
    return f"""PREFIX : <http://example/>
    SELECT * WITHIN 30 MINUTES {clauses} WHERE {{ SEQ({sequence}) {gpms} }}"""


def gpm(name: str, condition: str = "", stream: str = "S1") -> str:
    low = name.lower()
    return f"DEFINE GPM {name} ON {stream} {{ ?{low} :price ?p{low} . {condition} }}"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_stateful_filters(runtime: str) -> None:
    gpms = gpm("A") + gpm("B", "FILTER(?pb < ?pa)") + gpm("C", "FILTER(?pc = ?pa)")
    prices = [14, 16, 12, 14]
    stream = [event(p, i) for i, p in enumerate(prices)]
    found = run(query("A; B; C", gpms), {"S1": stream}, runtime)
    assert [[prices[i] for i in match] for match in found] == [[14, 12, 14]]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_conjunction_of_simultaneous_events(runtime: str) -> None:
    gpms = (
        gpm("A", "FILTER(?pa = 14)")
        + gpm("B", "FILTER(?pb = 12)", "S2")
        + gpm("C", "FILTER(?pc = 18)", "S3")
        + gpm("D", "FILTER(?pd = 16)")
    )
    streams = {
        "S1": [event(14, 10), event(16, 20)],
        "S2": [event(12, 15)],
        "S3": [event(18, 15)],
    }
    assert run(query("A, (B & C), D", gpms, 3), streams, runtime) == [[10, 15, 15, 20]]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_disjunction(runtime: str) -> None:
    gpms = (
        gpm("A", "FILTER(?pa = 14)")
        + gpm("B", "FILTER(?pb = 12)")
        + gpm("C", "FILTER(?pc = 99)")
        + gpm("D", "FILTER(?pd = 18)")
    )
    stream = [event(p, i) for i, p in enumerate([14, 12, 18])]
    assert run(query("A, (B | C), D", gpms), {"S1": stream}, runtime) == [[0, 1, 2]]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_three_streams_round_robin(runtime: str) -> None:
    gpms = gpm("A") + gpm("B", stream="S2") + gpm("C", stream="S3")
    streams = {f"S{s}": [event(s, 3 * i + s) for i in range(4)] for s in (1, 2, 3)}
    found = run(query("A, B, C", gpms, 3), streams, runtime)
    assert found == [[3 * i + 1, 3 * i + 2, 3 * i + 3] for i in range(4)]


AS_WRITTEN = """
prefix : <http://example/>
SELECT ?s ?p1 ?p2
WITHIN 30 MINUTES
Partition by (?s)
FROM STREAM S1 <http://example/s1>
WHERE {
  SEQ (A; B+, C)
  DEFINE GPM A ON S1 { ?s :price ?p1 . Filter(?p1 >= '16.0'^^<http://www.w3.org/2001/XMLSchema#double>). }
  DEFINE GPM B ON S1 { ?s :price ?p2 . Filter(?p2 < ?p1). }
  DEFINE GPM C ON S1 { ?s :price ?p3 . ?s rdf:type :Stock . Filter(?p3 > xsd:double("1")). }
}
"""  # noqa: E501


def test_the_original_systems_queries_parse_as_written() -> None:
    inside = parse(AS_WRITTEN)
    outside = parse(AS_WRITTEN.replace("WHERE {\n  SEQ (A; B+, C)", "SEQ (A; B+, C) {"))
    assert inside == outside
    assert [v.name for v in inside.partition] == ["s"]
