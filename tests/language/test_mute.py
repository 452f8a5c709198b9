"""MUTE on every road: bounded on both runtimes, pushed, in families, and live over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq
from tests.language.test_original import RUNTIMES
from tests.serve.servers import served, wait

XSD = "http://www.w3.org/2001/XMLSchema#"

QUERY = """PREFIX : <http://example/>
SELECT ?x ?v WITHIN 1 SECONDS PARTITION BY (?x) AFTER MATCH MUTE {mute} SECONDS
FROM STREAM S <http://example/s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :price ?v FILTER(?v > {least}) }} }}"""

TIMES = (0, 4, 10, 13)


def priced(price: int) -> str:
    return f'<http://example/x> <http://example/price> "{price}"^^<{XSD}integer> .'


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_answers_shortly_after_a_kept_one_are_dropped(runtime: str) -> None:
    stream = [spaseq.Event(priced(1), second * 1000) for second in TIMES]
    for mute, kept in ((10, [0, 10]), (5, [0, 10]), (4, [0, 4, 10]), (11, [0, 13])):
        stats = spaseq.Stats()
        query = QUERY.format(mute=mute, least=0)
        found = spaseq.run(query, {"S": stream}, runtime=runtime, stats=stats)
        assert [round(m.end.timestamp()) for m in found] == kept
        assert sum(stats.muted.values()) == len(TIMES) - len(kept)


def test_members_of_a_family_mute_by_themselves() -> None:
    """The queries differ in a constant, so they run as one."""
    engine = spaseq.Engine([])
    for i in range(12):
        engine.add(QUERY.format(mute=5, least=i), name=f"q{i}")
    found = [
        (match.query, second)
        for second in range(12)
        for match in engine.push("http://example/s", priced(second), second * 1000)
    ]
    found += [(match.query, round(match.end.timestamp())) for match in engine.close()]
    expected = {f"q{i}": list(range(i + 1, 12, 5)) for i in range(12)}
    for name, ends in expected.items():
        assert len([q for q, _ in found if q == name]) == len(ends)
        assert engine.muted.get(name, 0) == max(0, 11 - int(name[1:]) - len(ends))


def test_a_restart_goes_on_muting(tmp_path: Path) -> None:
    query = (
        "SELECT ?v WITHIN 1 SECONDS AFTER MATCH MUTE 10 SECONDS FROM STREAM S <http://e/s> "
        "WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
    )

    def told() -> tuple[int, int]:
        found = server.http.get("/queries/jam").json()
        return found["answers"], found["muted"]

    with served(tmp_path) as server:
        assert server.http.put("/queries/jam", content=query).status_code == 201
        server.feed(0, 5)
        wait(lambda: told() == (1, 3))  # the last one is not final yet
    with served(tmp_path) as server:
        assert told() == (1, 3)
        server.feed(5, 22)
        wait(lambda: told() == (3, 18))
        assert 'spaseq_query_muted_total{query="jam"} 18' in server.http.get("/metrics").text
