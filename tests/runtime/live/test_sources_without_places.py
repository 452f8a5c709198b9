"""Live runs over MQTT, WebSocket and server-sent events: what a crash leaves."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.connectors.mosquitto import Mosquitto, serving
from tests.connectors.pushing_servers import EventServer, WebSocketServer
from tests.runtime.live.live_jobs import QUERY, events, expected_lines, lines
from tests.runtime.live.test_live_run import until


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    yield from serving(tmp_path)


class Command:
    """`spaseq run --follow` over a URL, in a process that can be killed."""

    def __init__(self, directory: Path, url: str, *more: str) -> None:
        self._directory, self.out = directory, directory / "out.jsonl"
        self.bad, self._errors = directory / "bad.jsonl", directory / "errors.txt"
        (directory / "q.rq").write_text(QUERY)
        self._arguments = [
            *(sys.executable, "-m", "spaseq", "run", str(directory / "q.rq")),
            *("--runtime", "local", "--follow", "--checkpoint", str(directory / "state")),
            *("--stream", f"S={url}", "--out", str(self.out), "--bad", str(self.bad)),
            *("--watermark", "500 MILLISECONDS", "--max-ahead", "99999 DAYS", *more),
        ]

    def start(self) -> None:
        with self._errors.open("a") as errors:
            self._process = subprocess.Popen(
                self._arguments, stderr=errors, env={**os.environ, "SPASEQ_KERNELS": "interpreted"}
            )

    def kill(self) -> None:
        assert self._process.poll() is None, self._errors.read_text()
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process.poll() is None, self._errors.read_text()
        self._process.terminate()
        self._process.wait(30)

    def until(self, done: Callable[[], bool]) -> None:
        until(lambda: done() or self._process.poll() is not None)
        assert self._process.poll() is None, self._errors.read_text()


def subscribed(broker: Mosquitto, run: Command) -> None:
    """Wait until the run has its session at the broker."""

    def is_there() -> bool:
        broker.publish("road/probe", [b"no event"])
        return bool(lines(run.bad))

    run.until(is_there)


@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=pytest.mark.thorough)])
def test_mqtt_and_kills_lose_nothing_and_dedup_repeats_nothing(
    tmp_path: Path, broker: Mosquitto, kills: int
) -> None:
    """The run is killed at random moments, and the broker is restarted now and then."""
    chance, given = random.Random(kills), events(120 * (kills + 1))
    expected = expected_lines(tmp_path, given)
    run = Command(tmp_path, f"mqtt://{broker.host}/road/+", "--dedup", "1 HOURS")
    run.start()
    subscribed(broker, run)
    for number in range(kills):
        part = given[number * 120 : (number + 1) * 120]
        broker.publish("road/loops", part[:60])
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0, 0.4))
        broker.publish("road/loops", part[60:])
        time.sleep(chance.uniform(0, 0.5))
        run.kill()
        if chance.random() < 0.3:
            broker.stop()
            broker.start()
        run.start()
    broker.publish("road/loops", given[kills * 120 :])
    run.until(lambda: len(lines(run.out)) >= len(expected))
    time.sleep(0.5)
    run.stop()
    assert lines(run.out) == expected
    assert len(expected) > 20


def test_server_sent_events_go_on_behind_the_last_one(tmp_path: Path) -> None:
    given = events(200)
    expected = expected_lines(tmp_path, given)
    server = EventServer()
    chunks = [
        b"id: %d\n%b\n\n" % (n, b"\n".join(b"data: " + line for line in text.splitlines()))
        for n, text in enumerate(given, 1)
    ]
    run = Command(tmp_path, f"sse+http://127.0.0.1:{server.port}/loops")
    try:
        server.chunks = chunks[:100]
        run.start()
        run.until(lambda: len(lines(run.out)) > 5)
        run.kill()
        server.chunks = chunks
        run.start()
        run.until(lambda: len(lines(run.out)) >= len(expected))
        run.stop()
    finally:
        server.stop()
    assert lines(run.out) == expected
    assert server.asked[0] is None
    assert int(server.asked[1] or 0) > 5


def test_a_websocket_gives_answers(tmp_path: Path) -> None:
    given = events(100)
    expected = expected_lines(tmp_path, given)
    server = WebSocketServer()
    run = Command(tmp_path, f"ws://127.0.0.1:{server.port}/loops")
    try:
        server.messages = [*given[:50], b"no event", *(text.decode() for text in given[50:])]
        run.start()
        run.until(lambda: len(lines(run.out)) >= len(expected))
        run.stop()
    finally:
        server.stop()
    assert lines(run.out) == expected
    assert len(lines(run.bad)) == 1
    assert f"ws://127.0.0.1:{server.port}/loops message 51" in lines(run.bad)[0]
