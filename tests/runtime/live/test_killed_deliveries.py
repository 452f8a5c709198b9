"""Outputs of each kind, while the process that delivers is killed at random moments."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.connectors.hook import Hook
from tests.connectors.kafka_mock import KafkaMock
from tests.connectors.mosquitto import Mosquitto
from tests.connectors.mosquitto import serving as serving_mosquitto
from tests.connectors.mqtt_subscriber import Subscriber
from tests.connectors.nats_server import NatsServer
from tests.connectors.nats_server import serving as serving_nats
from tests.connectors.postgresql_server import PostgresqlServer
from tests.connectors.postgresql_server import serving as serving_postgresql
from tests.runtime.live.live_jobs import lines

COUNT = 1500


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    for server in serving_nats(tmp_path):
        server.make_stream("ALERTS", "alerts")
        yield server


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    yield from serving_mosquitto(tmp_path)


@pytest.fixture
def database() -> Iterator[PostgresqlServer]:
    yield from serving_postgresql()


class Deliverer:
    """Runs the process, and kills it."""

    def __init__(self, directory: Path, sinks: dict[str, str]) -> None:
        module = "tests.runtime.live.killed_deliveries"
        given = [f"{name}={to}" for name, to in sinks.items()]
        self._command = [sys.executable, "-m", module, str(directory), str(COUNT), *given]
        directory.mkdir()

    def run_for(self, seconds: float) -> bool:
        """Run, and kill after a while; whether it was still running."""
        process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        try:
            assert process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return True
        return False


def in_order(numbers: Sequence[int]) -> bool:
    """Whether each query's answers come in order, but for what is repeated after a kill."""
    first = list(dict.fromkeys(numbers))
    return all([n for n in first if n % 3 == q] == [*range(q, COUNT, 3)] for q in range(3))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_lose_nothing_and_repeat_only_what_may_be(
    tmp_path: Path,
    nats: NatsServer,
    mosquitto: Mosquitto,
    database: PostgresqlServer,
    seed: int,
) -> None:
    chance, kafka, hook = random.Random(seed), KafkaMock(), Hook()
    subscriber = Subscriber(mosquitto, "alerts")
    jsonl, quads = tmp_path / "out.jsonl", tmp_path / "out.nq"
    deliverer = Deliverer(
        tmp_path / "data",
        {
            "jsonl": str(jsonl),
            "nq": str(quads),
            "hook": f"http://127.0.0.1:{hook.port}/",
            "kafka": f"kafka://{kafka.host}/alerts",
            "mqtt": f"mqtt://{mosquitto.host}/alerts",
            "nats": f"nats://{nats.host}/alerts",
            "database": database.url("road/alerts"),
        },
    )
    kills = 0
    while deliverer.run_for(chance.uniform(0.7, 2.5)):
        kills += 1
        if chance.random() < 0.2:
            hook.statuses = [503, 503]
        if chance.random() < 0.3:
            database.kill()
            database.start()
        if chance.random() < 0.3:
            mosquitto.stop()
            mosquitto.start()
        if chance.random() < 0.3:
            nats.kill()
            nats.start()
    assert kills > 2
    assert not (tmp_path / "data" / "failed").exists()
    everything = [*range(COUNT)]
    assert [int(json.loads(line)["event"][10:]) for line in lines(jsonl)] == everything
    assert [int(n) for n in re.findall(r'<http://e/p> "(\d+)"', quads.read_text())] == everything
    assert sorted(int(row[0]) for row in database.ask("select id from alerts")) == everything
    sent = [int(dict(m.headers())["id"]) for m in kafka.messages("alerts")]
    assert sorted(sent) == everything
    assert in_order(sent)
    assert in_order([int(key) for key in hook.keys])
    assert in_order([int(name) for name, _ in nats.messages("alerts")])
    end = time.monotonic() + 30
    while len(set(subscriber.ids)) < COUNT and time.monotonic() < end:
        time.sleep(0.1)
    assert in_order([int(name) for name in subscriber.ids])
    subscriber.close()
    hook.close()
    kafka.close()
