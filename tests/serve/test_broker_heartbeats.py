"""Heartbeats that brokers bring move the time of a server's silent streams, from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from spaseq.connectors.base import HEADER
from tests.connectors.kafka_mock import PARTITIONS, KafkaMock
from tests.connectors.mosquitto import Mosquitto
from tests.connectors.nats_server import NatsServer
from tests.serve.servers import Served, event, served, wait

SILENT = (
    "SELECT ?v WITHIN 10 SECONDS FROM STREAM S <http://e/s> WHERE { SEQ(H; N!) "
    "DEFINE GPM H ON S { ?x <http://e/p> ?v } DEFINE GPM N ON S { ?x <http://e/p> ?w } }"
)

Send: TypeAlias = Callable[[bytes, dict[str, str]], None]
"""Sends a message with headers."""


@contextmanager
def by_nats(directory: Path) -> Iterator[tuple[str, Send]]:
    broker = NatsServer(directory)
    broker.make_stream("ROAD", "road.>")

    def send(body: bytes, headers: dict[str, str]) -> None:
        broker.publish("road.loops", [body], headers or None)

    try:
        yield f"nats://{broker.host}/road.loops?stream=ROAD", send
    finally:
        broker.kill()


@contextmanager
def by_mqtt(directory: Path) -> Iterator[tuple[str, Send]]:
    broker = Mosquitto(directory)
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    def send(body: bytes, headers: dict[str, str]) -> None:
        given = Properties(PacketTypes.PUBLISH)
        given.UserProperty = [*headers.items()]
        broker.publish("road/a/loop", [body], properties=given)

    try:
        yield f"mqtt://{broker.host}/road/+/loop?qos=1&client=spaseq-test", send
    finally:
        broker.stop()


@contextmanager
def by_kafka(directory: Path) -> Iterator[tuple[str, Send]]:
    broker = KafkaMock()
    broker.make_topic("loops")

    def send(body: bytes, headers: dict[str, str]) -> None:
        for partition in range(PARTITIONS if headers else 1):  # it holds for its partition
            broker.publish("loops", [body], partition, headers)

    try:
        yield f"kafka://{broker.host}/loops", send
    finally:
        broker.close()


def silences(server: Served) -> list[str]:
    lines = server.http.get("/queries/silent/answers").text.splitlines()
    return [json.loads(line)["bindings"]["v"]["value"] for line in lines]


def watermark(server: Served) -> str | None:
    found: str | None = server.http.get("/streams").json()[0]["watermark"]
    return found


@pytest.mark.parametrize("broker", [by_nats, by_mqtt, by_kafka])
def test_a_message_says_that_no_event_follows(
    tmp_path: Path, broker: Callable[[Path], Iterator[tuple[str, Send]]]
) -> None:
    with broker(tmp_path) as (url, send):  # type: ignore[attr-defined]
        (tmp_path / "queries").mkdir()
        (tmp_path / "queries" / "silent.rq").write_text(SILENT)
        with served(tmp_path, stream=f'source = "{url}"\n') as server:
            wait(lambda: server.http.get("/health").status_code == 200)
            send(event(1).encode(), {})
            send(b"", {HEADER: "2026-01-01T00:00:05Z"})
            wait(lambda: watermark(server) == "2026-01-01T00:00:05.001Z")
            assert silences(server) == []  # the window closes at 11 s
            send(b"", {HEADER: "no time"})
            send(b"", {HEADER: "2026-01-01T00:00:11Z"})
            wait(lambda: silences(server) == ["1"])
            send(event(11, "late").encode(), {})
            wait(lambda: server.http.get("/streams").json()[0]["late"] == 1)
            stream = server.http.get("/streams").json()[0]
            assert stream["bad"] == (PARTITIONS if broker is by_kafka else 1)
        bad = [json.loads(line) for line in (tmp_path / "state/bad.jsonl").read_text().splitlines()]
        assert all("heartbeat" in line["reason"] for line in bad)
        with served(tmp_path, stream=f'source = "{url}"\n') as server:  # it is in the log
            wait(lambda: watermark(server) == "2026-01-01T00:00:11.001Z")
            assert silences(server) == ["1"]
