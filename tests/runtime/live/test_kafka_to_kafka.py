"""`spaseq run` from a topic to a topic: killed at any moment, the output has each answer once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.connectors.kafka_mock import PARTITIONS, KafkaMock
from tests.runtime.live.live_jobs import QUERY, event, events, expected_lines, without_ids

COUNT = 1000


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1])
def test_kills_lose_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    chance, kafka = random.Random(seed), KafkaMock()
    given = events(COUNT, seed)[:-1]
    end_ms = COUNT * 40 + 60_000
    ends = [event(COUNT + n, end_ms + n, "end", "none") for n in range(PARTITIONS)]
    expected = expected_lines(tmp_path, [*given, *ends])
    (tmp_path / "q.rq").write_text(QUERY)
    command = [
        *(sys.executable, "-m", "spaseq", "run", str(tmp_path / "q.rq")),
        *("--runtime", "local", "--follow", "--checkpoint", str(tmp_path / "state")),
        *("--stream", f"S=kafka://{kafka.host}/road", "--out", f"kafka://{kafka.host}/alerts"),
        *("--max-ahead", "99999 DAYS"),
    ]

    def sent() -> int:
        return len(kafka.messages("alerts"))

    for part in (given[n : n + 250] for n in range(0, len(given), 250)):
        for partition in range(PARTITIONS):
            kafka.publish("road", part[partition::PARTITIONS], partition)
        before, patience = sent(), time.monotonic() + chance.uniform(5, 20)
        run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while time.monotonic() < patience and sent() == before:
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 0.3))
        assert run.poll() is None
        run.kill()
        run.wait()
    for partition in range(PARTITIONS):
        kafka.publish("road", [ends[partition]], partition)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
        patience = time.monotonic() + 60
        while sent() < len(expected) and time.monotonic() < patience:
            time.sleep(0.2)
        run.terminate()
    found = kafka.messages("alerts")
    ids = [dict(message.headers())["id"] for message in found]
    assert len(set(ids)) == len(ids)
    assert without_ids([message.value() for message in found]) == [*map(json.loads, expected)]
    kafka.close()
