"""Messages of context brokers and CloudEvents, from a request or a broker to an alert."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.processes import Command
from tests.serve.servers import Served, served, wait
from tests.serve.test_broker_heartbeats import Send, by_kafka, by_mqtt, by_nats

MESSAGES = Path(__file__).parents[3] / "shared" / "messages"
DOORS = """PREFIX c: <http://example.org/cold#> PREFIX n: <https://uri.etsi.org/ngsi-ld/>
SELECT ?store ?warm WITHIN 5 MINUTES FROM STREAM S <http://e/s> WHERE { SEQ(Shut; Open)
DEFINE GPM Shut ON S { ?store c:doorOpen [ n:hasValue false ] }
DEFINE GPM Open ON S { ?store c:doorOpen [ n:hasValue true ] ;
  c:temperature [ n:hasValue ?warm ] } }"""
JAMS = """PREFIX ce: <urn:spaseq:cloudevents:>
SELECT ?subject FROM STREAM S <http://e/s> WHERE { SEQ(A)
DEFINE GPM A ON S { ?e ce:type "line.jam" ; ce:subject ?subject } }"""
ENVELOPE = {"specversion": "1.0", "id": "1", "source": "/l", "type": "line.jam", "subject": "é 7"}


def answers(server: Served, query: str) -> list[dict[str, Any]]:
    text = server.http.get(f"/queries/{query}/answers").text
    return [json.loads(line)["bindings"] for line in text.splitlines()]


@pytest.mark.skipif(not MESSAGES.exists(), reason="there are no shared samples")
def test_notifications_of_a_context_broker(tmp_path: Path) -> None:
    (tmp_path / "cold.jsonld").write_text((MESSAGES / "ngsi-ld/cold.jsonld").read_text())
    named = 'context_map = { "http://context.example/cold.jsonld" = "cold.jsonld" }'
    link = '<http://context.example/cold.jsonld>; rel="http://www.w3.org/ns/json-ld#context"'
    sent = [
        ("notification-normalized", {"Content-Type": "application/ld+json"}),
        ("notification-concise", {"Content-Type": "application/json", "Link": link}),
        ("notification-deletes", {"Content-Type": "application/ld+json"}),
    ]
    with served(tmp_path, stream=f'format = "ngsild"\n{named}') as server:
        assert server.http.put("/queries/doors", content=DOORS).status_code == 201
        for name, headers in sent:
            body = (MESSAGES / f"ngsi-ld/{name}.json").read_bytes()
            reply = server.http.post("/streams/S", content=body, headers=headers).json()
            assert (reply["accepted"], reply["bad"]) == (2, [])
        wait(lambda: len(answers(server, "doors")) == 2)
        found = answers(server, "doors")
    assert {each["store"]["value"] for each in found} == {"urn:ngsi-ld:ColdStore:quay7"}
    assert {float(each["warm"]["value"]) for each in found} == {-17.1, -16.7}


def test_a_cloud_event_in_headers(tmp_path: Path) -> None:
    headers = {f"ce-{name}": value for name, value in ENVELOPE.items() if name != "subject"}
    headers |= {"ce-subject": "%C3%A9%207", "Content-Type": "image/png"}
    with served(tmp_path, stream='time = "arrival"\nidle = "1 SECONDS"') as server:
        assert server.http.put("/queries/jams", content=JAMS).status_code == 201
        reply = server.http.post("/streams/S", content=b"\xff", headers=headers).json()
        assert reply == {"accepted": 1, "bad": [], "late": 0}
        batch = {"Content-Type": "application/cloudevents-batch+json"}
        two = json.dumps([{**ENVELOPE, "id": "2"}, {**ENVELOPE, "id": "3", "type": 7}])
        reply = server.http.post("/streams/S", content=two, headers=batch).json()
        assert (reply["accepted"], len(reply["bad"])) == (1, 1)
        wait(lambda: len(answers(server, "jams")) == 2)
        assert {each["subject"]["value"] for each in answers(server, "jams")} == {"é 7"}


@pytest.mark.parametrize(("broker", "prefix"), [(by_nats, "ce-"), (by_mqtt, ""), (by_kafka, "ce_")])
def test_a_cloud_event_in_the_headers_of_a_broker(
    tmp_path: Path, broker: Callable[[Path], AbstractContextManager[tuple[str, Send]]], prefix: str
) -> None:
    (tmp_path / "broker").mkdir()
    (tmp_path / "server").mkdir()
    headers = {f"{prefix}{name}": value for name, value in ENVELOPE.items()}
    if prefix == "ce-":
        headers["ce-subject"] = "%C3%A9%207"
    with broker(tmp_path / "broker") as (address, send):
        stream = f'source = "{address}"\ntime = "arrival"\nidle = "1 SECONDS"'
        with served(tmp_path / "server", stream=stream) as server:
            assert server.http.put("/queries/jams", content=JAMS).status_code == 201
            send(b'{"station": 17}', headers)
            wait(lambda: answers(server, "jams"))  # by Kafka it comes to each partition
            assert {each["subject"]["value"] for each in answers(server, "jams")} == {"é 7"}


class KeepingBroker:
    """A context broker that keeps each notification until it is acknowledged with 2xx."""

    def __init__(self, notifications: list[dict[str, Any]]) -> None:
        self.kept = [json.dumps(each).encode() for each in notifications]
        self.repeats = 0

    def send(self, url: str, doubled: bool) -> None:
        """Send what is kept, in order; `doubled`: as if the first acknowledgement was lost."""
        headers = {"Content-Type": "application/json"}
        with httpx.Client(base_url=url, timeout=5) as http, suppress(httpx.HTTPError):
            while self.kept:
                reply = http.post("/streams/S", content=self.kept[0], headers=headers)
                if reply.is_success and doubled:
                    doubled, self.repeats = False, self.repeats + 1
                elif reply.is_success:
                    self.kept.pop(0)


@pytest.mark.thorough
def test_nothing_is_lost_or_doubled_when_server_and_broker_begin_again(tmp_path: Path) -> None:
    seen = [f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z" for n in range(400)]
    given = [
        {
            "id": f"urn:n:{n}",
            "type": "Notification",
            "notifiedAt": at,
            "data": [{"id": "urn:w", "type": "W", "level": {"value": n, "observedAt": at}}],
        }
        for n, at in enumerate(seen)
    ]
    (tmp_path / "queries").mkdir()
    level = "<https://uri.etsi.org/ngsi-ld/default-context/level>"
    (tmp_path / "queries/levels.rq").write_text(
        "SELECT ?v FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S "
        f"{{ ?w {level} [ <https://uri.etsi.org/ngsi-ld/hasValue> ?v ] }} }}"
    )
    configuration = tmp_path / "spaseq.toml"
    configuration.write_text(
        '[server]\ndata = "state"\n[queries]\ndirectory = "queries"\n'
        '[sinks.out]\nto = "out.jsonl"\n'
        '[streams.S]\niri = "http://e/s"\nformat = "ngsild"\ndedup = "1 HOURS"\n'
    )
    broker = KeepingBroker(given)
    for _ in range(3):  # the server is killed while the broker sends
        server = Command(configuration)
        sender = threading.Thread(target=broker.send, args=(server.url, True))
        least = len(broker.kept) - 40
        sender.start()
        wait(partial(lambda most: len(broker.kept) < most, least))
        server.kill()
        sender.join(20)
    server = Command(configuration)
    broker.send(server.url, True)
    out = tmp_path / "out.jsonl"
    wait(lambda: len(out.read_text().splitlines()) >= len(given) - 1, 60)
    assert server.end() == 0
    values = [json.loads(line)["bindings"]["v"]["value"] for line in out.read_text().splitlines()]
    assert values == [str(n) for n in range(len(values))]  # all but perhaps the last, in order
    assert (broker.kept, broker.repeats) == ([], 4)
