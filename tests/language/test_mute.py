"""MUTE on every road: bounded on both runtimes, pushed, in families, and live over a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime import local
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following.follow import follow
from spaseq.sources.files import FileSource
from tests.language.test_original import RUNTIMES
from tests.runtime.machines import put
from tests.serve.servers import served, wait

XSD = "http://www.w3.org/2001/XMLSchema#"

QUERY = """PREFIX : <http://example/>
SELECT ?x ?v WITHIN 1 SECONDS PARTITION BY (?x) AFTER MATCH MUTE {mute} SECONDS
FROM STREAM S <http://example/s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :price ?v FILTER(?v > {least}) }} }}"""

TIMES = (0, 4, 10, 13)
THINGS = ("x", "y", "z")


def reports(second: int) -> str:
    """N-Quads of an event of each thing at a time."""
    time = f'<http://www.w3.org/ns/prov#generatedAtTime> "{second}000"^^<{XSD}long> .\n'
    return "".join(
        f"{priced(1)[:-1].replace('/x>', f'/{thing}>', 1)}<http://e/{second}{thing}> .\n"
        f"<http://e/{second}{thing}> {time}"
        for thing in THINGS
    )


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


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("buckets", [3, 1])
def test_a_run_on_spark_that_follows_files_mutes_over_restarts(
    spark: Any, tmp_path: Path, buckets: int
) -> None:
    """Each run reads one more file, and goes on from the state of the run before."""
    incoming = tmp_path / "in"
    incoming.mkdir()
    plan = compile_query(QUERY.format(mute=10, least=0), "jam")

    def job() -> Job:
        source = FileSource(StreamOptions("http://example/s", (str(incoming),)))
        return Job((plan,), (source,), KnowledgeBase.empty())

    found, muted = [], Counter[str]()
    for number, seconds in enumerate([(0, 4, 10), (13, 19), (20, 31, 900)]):
        put(incoming / f"{number}.nq", "".join(map(reports, seconds)))
        followed = job()
        options = FollowOptions(tmp_path / "c", buckets=buckets, until_done=True)
        found += [*follow(followed, options, spark=spark)]
        muted.update(followed.stats.muted)
    bounded = job()
    expected = [(query, answer) for query, answer in local.run(bounded) if answer.end[0] < 900_000]
    assert len(expected) == 4 * len(THINGS) and sorted(found) == sorted(expected)
    assert muted == bounded.stats.muted == {"jam": 3 * len(THINGS)}


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
