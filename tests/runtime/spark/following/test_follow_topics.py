"""Topics in followed runs on Spark: beside files, resumed, and as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spaseq.errors import UsageError
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following.follow import follow
from spaseq.sources.broker_stream import BrokerStream
from spaseq.spark import answers
from tests.connectors.kafka_mock import PARTITIONS, KafkaMock
from tests.runtime.machines import (
    IRIS,
    KEYED,
    NORTH,
    SOUTH,
    Row,
    answers_in_process,
    job_of,
    nquads,
    put,
)

pytestmark = pytest.mark.spark

AFTER: Row = (900_000, "m9", "starts", 0)


@pytest.fixture
def kafka() -> Iterator[KafkaMock]:
    mock = KafkaMock()
    yield mock
    mock.close()


def with_topic(place: Path, url: str) -> Job:
    """The job over files of the north and a topic of the south."""
    job = job_of((place / "north", place / "south"))
    south = BrokerStream(StreamOptions(IRIS[1], ()), url)
    return replace(job, streams=(job.streams[0], south))


def messages() -> list[list[bytes]]:
    """The events of the south by partition; the last ones are far behind the others."""
    found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for number, row in enumerate(SOUTH):
        found[number % PARTITIONS].append(nquads([row], f"s{number}").encode())
    for partition, own in enumerate(found):
        own.append(nquads([AFTER], f"after{partition}").encode())
    return found


@pytest.mark.thorough
def test_a_topic_beside_files_answers_as_two_files(
    spark: Any, tmp_path: Path, kafka: KafkaMock
) -> None:
    given, url = messages(), f"kafka://{kafka.host}/south"
    (tmp_path / "north").mkdir()
    got: list[Any] = []
    bad: list[BadInput] = []
    for number in range(2):
        rows = NORTH[:3] if number == 0 else [*NORTH[3:], AFTER]
        put(tmp_path / "north" / f"{number}.nq", nquads(rows, f"n{number}"))
        for partition, own in enumerate(given):
            kafka.publish("south", own[:1] if number == 0 else own[1:], partition)
        kafka.publish("south", [b"no quads"], 2)
        job = with_topic(tmp_path, url)
        job.on_bad = bad.append
        options = FollowOptions(tmp_path / "state", FileSourceSettings(), until_done=True)
        got += follow(job, options, spark=spark)
    (tmp_path / "south").write_bytes(b"".join(b"".join(own) for own in given))
    (tmp_path / "south").rename(tmp_path / "south.nq")
    whole = answers_in_process(job_of((tmp_path / "north", tmp_path / "south.nq")))
    assert sorted(got, key=lambda item: item[0]) == whole
    assert len(whole) == 9
    assert [b.file for b in bad] == [
        f"{url} message 1 of partition 2",
        f"{url} message 3 of partition 2",
    ]


LIFT = """PREFIX : <http://m.example/> PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { GRAPH ?e { ?machine :starts ?load ; :stops ?code } ?e prov:generatedAtTime ?at }
WHERE {
  BIND (IRI(CONCAT("http://m.example/", ?name)) AS ?machine)
  BIND (IRI(CONCAT("http://m.example/e/", STR(?id))) AS ?e)
  BIND (IF(?what = "starts", STR(?value), 1 / 0) AS ?load)
  BIND (IF(?what = "stops", STR(?value), 1 / 0) AS ?code)
}"""


@pytest.mark.thorough
def test_a_topic_of_json_with_a_lift(spark: Any, tmp_path: Path, kafka: KafkaMock) -> None:
    rows = [*SOUTH, *[AFTER] * PARTITIONS]
    fields = ("at", "name", "what", "value")
    for number, row in enumerate(rows):
        text = json.dumps(dict(zip(fields, row, strict=True), id=number))
        kafka.publish("south", [text.encode()], number % PARTITIONS)
    kafka.publish("south", [b'{"at": 1, "name": "m1"'], 0)
    for name, given in (("north", [*NORTH, AFTER]), ("south", rows)):
        (tmp_path / name).mkdir()
        put(tmp_path / name / "1.nq", nquads(given, "e"))
    whole = job_of((tmp_path / "north", tmp_path / "south"))
    url = f"kafka://{kafka.host}/south"
    south = LiftedBroker(StreamOptions(IRIS[1], ()), url, compiled_lift(LIFT), LIFT)
    bad: list[BadInput] = []
    job = replace(whole, streams=(whole.streams[0], south), on_bad=bad.append)
    got: list[Any] = []
    for _ in range(2):  # answers come one batch later than over files
        options = FollowOptions(tmp_path / "state", FileSourceSettings(), until_done=True)
        got += follow(job, options, spark=spark)
        kafka.publish("south", [text.encode()], 1)

    def plain(found: Any) -> list[Any]:
        return sorted((query, answer.end, str(answer.bindings)) for query, answer in found)

    assert plain(got) == plain(answers_in_process(whole))
    assert len(got) == 9
    assert [report.file for report in bad] == [f"{url} message 3"]


@pytest.mark.thorough
def test_a_dataframe_of_answers_from_topics(spark: Any, tmp_path: Path, kafka: KafkaMock) -> None:
    for partition, own in enumerate(messages()):
        kafka.publish("south", own, partition)
        kafka.publish("north", [nquads([AFTER], f"n{partition}").encode()], partition)
    streams = {
        IRIS[0]: f"kafka://{kafka.host}/north?client.id=hidden1",
        IRIS[1]: f"kafka://{kafka.host}/south?client.id=hidden1",
    }
    found = answers(spark, KEYED, streams, checkpoint=tmp_path / "state")
    plan = found._jdf.queryExecution().toString()
    got: list[Any] = []
    query = (
        found.writeStream.foreachBatch(lambda frame, _: got.extend(frame.collect()))
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len(got) == 1  # m4 starts and stops
    assert "hidden1" not in plan
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"hidden1" in path.read_bytes()]


def test_other_brokers_and_duplicates_are_refused() -> None:
    with pytest.raises(UsageError, match="reads files and Kafka"):
        BrokerStream(StreamOptions(IRIS[0], ()), "nats://127.0.0.1/a").followed()
