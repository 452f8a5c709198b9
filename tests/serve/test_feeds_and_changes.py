"""Observations, LDES feeds and changes of a database, from a message to an alert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.feed_server import FeedServer, members, root
from tests.connectors.kafka_mock import KafkaMock
from tests.serve.servers import Served, served, wait

MESSAGES = Path(__file__).parents[3] / "shared" / "messages"
SAMPLES = pytest.mark.skipif(not MESSAGES.exists(), reason="there are no shared samples")
FLOWS = """PREFIX sosa: <http://www.w3.org/ns/sosa/> PREFIX qudt: <http://qudt.org/schema/qudt/>
SELECT ?tank ?heat ?flow WITHIN 1 MINUTES FROM STREAM S <http://e/s> WHERE { SEQ (A; B)
DEFINE GPM A ON S { ?a sosa:hasFeatureOfInterest ?tank ; sosa:hasSimpleResult ?heat }
DEFINE GPM B ON S { ?b sosa:hasFeatureOfInterest ?tank ;
  sosa:hasResult/qudt:numericValue ?flow } }"""
STEPS = """PREFIX : <http://e/> SELECT ?n FROM STREAM S <http://e/s> WHERE { SEQ (A)
DEFINE GPM A ON S { ?m :n ?n } }"""
LIFT = """PREFIX y: <http://yard/> PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { GRAPH ?change { ?change y:op ?op ; y:slot ?slot .
  ?slot y:zone ?after_zone ; y:occupied ?after_occupied }
  ?change prov:generatedAtTime ?source_ts_ms }
WHERE { BIND (IRI(CONCAT("http://yard/change/", STR(?source_lsn))) AS ?change)
  BIND (IRI(CONCAT("http://yard/slot/", STR(COALESCE(?after_id, ?before_id)))) AS ?slot) }"""
LEAVES = """PREFIX y: <http://yard/>
SELECT ?slot ?zone WITHIN 10 MINUTES FROM STREAM S <http://e/s> WHERE { SEQ (A; B)
DEFINE GPM A ON S { ?a y:op "c" . ?slot y:occupied true }
DEFINE GPM B ON S { ?b y:op "u" . ?slot y:occupied false ; y:zone ?zone } }"""


def answers(server: Served, query: str) -> list[dict[str, Any]]:
    text = server.http.get(f"/queries/{query}/answers").text
    return [json.loads(line)["bindings"] for line in text.splitlines()]


def put(server: Served, name: str, query: str) -> None:
    assert server.http.put(f"/queries/{name}", content=query).status_code == 201


@SAMPLES
@pytest.mark.parametrize("name", ["observation.ttl", "observation.jsonld"])
def test_observations_that_are_posted(tmp_path: Path, name: str) -> None:
    body = (MESSAGES / "sosa" / name).read_bytes()
    with served(tmp_path, stream='format = "sosa"\nidle = "1 SECONDS"') as server:
        put(server, "flows", FLOWS)
        reply = server.http.post("/streams/S", content=body).json()
        assert (reply["accepted"], reply["bad"]) == (2, [])
        reply = server.http.post("/streams/S", content=b"<http://e/a> a <http://e/b> .").json()
        assert reply["accepted"] == 0
        assert "no sosa:Observation" in reply["bad"][0]["reason"]
        wait(lambda: answers(server, "flows"))
        (found,) = answers(server, "flows")
    assert found["tank"]["value"] == "http://example.org/brew/tank/3"
    assert (found["heat"]["value"], float(found["flow"]["value"])) == ("66.40", 12.5)


def test_a_feed_and_a_server_that_is_started_again(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries/steps.rq").write_text(STEPS)
    feed = FeedServer()
    try:
        feed.put("/feed", root(f"{feed.url}/feed") + members(*range(1, 30)))
        stream = f'source = "ldes+{feed.url}/feed?poll=0.1"'
        with served(tmp_path, stream=stream) as server:
            wait(lambda: len(answers(server, "steps")) >= 28)
        feed.put("/feed", root(f"{feed.url}/feed") + members(*range(1, 60)))
        with served(tmp_path, stream=stream) as server:
            wait(lambda: len(answers(server, "steps")) >= 58)
            feed.close()
            feed.put("/feed", root(f"{feed.url}/feed") + members(*range(1, 90)))
            feed.start()
            wait(lambda: len(answers(server, "steps")) >= 88)
            found = [int(each["n"]["value"]) for each in answers(server, "steps")]
            status = server.http.get("/streams").json()[0]
        assert found == [*range(1, len(found) + 1)]
        assert (status["accepted"], status["bad"]) == (89, 0)
    finally:
        feed.close()


@SAMPLES
def test_changes_of_a_database_by_kafka(tmp_path: Path) -> None:
    (tmp_path / "slots.lift.rq").write_text(LIFT)
    enveloped = (MESSAGES / "debezium/update-with-schema.json").read_bytes()
    lines = (MESSAGES / "debezium/topic.jsonl").read_text().splitlines()
    kafka = KafkaMock()
    try:
        stream = (
            f'source = "kafka://{kafka.host}/slots"\nlift = "slots.lift.rq"\nidle = "1 SECONDS"'
        )
        with served(tmp_path, stream=stream) as server:
            put(server, "leaves", LEAVES)
            for record in map(json.loads, lines):
                value = record["value"]
                text = b"" if value is None else value.encode()
                kafka.publish(
                    "slots",
                    [enveloped if '"op":"u"' in (value or "") else text],
                    0,
                    key=record["key"],
                    timestamp=record["timestamp"],
                )
            kafka.publish("slots", [b'{"op": "c"}'], 0)
            wait(lambda: server.http.get("/streams").json()[0]["bad"] == 1)
            wait(lambda: answers(server, "leaves"))
            (found,) = answers(server, "leaves")
            status = server.http.get("/streams").json()[0]
    finally:
        kafka.close()
    assert found["slot"]["value"] == "http://yard/slot/12"
    assert found["zone"]["value"] == "B"
    assert status["bad"] == 1
