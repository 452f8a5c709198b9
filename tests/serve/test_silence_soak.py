"""Sources that fall silent, and a server that is killed: each silence is told once, and soon.

`SPASEQ_SILENCE_KILLS` says how often the server is killed, `SPASEQ_SILENCE_RUNTIME` where it
evaluates. How late answers were at a subscriber is printed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from spaseq.logs.messages import MessageColumns
from spaseq.logs.stream_log import Heartbeat, StreamLog
from spaseq.runtime.live.live_directory import LiveDirectory
from tests.serve.processes import Command
from tests.serve.servers import NQUADS

HEARTBEAT_MS = 250
QUERIES = {f"q{i:02}": (f"S{i % 4}", 300 + 100 * i) for i in range(20)}
"""The stream and the window (ms) of each query."""

QUERY = """PREFIX : <http://e/>
SELECT ?d WITHIN {window} MILLISECONDS PARTITION BY ?d FROM STREAM S <http://e/{stream}>
WHERE {{ SEQ(H; N!) DEFINE GPM H ON S {{ ?d :beat ?x }} DEFINE GPM N ON S {{ ?d :beat ?y }} }}"""

STREAM = """
[streams.{0}]
iri = "http://e/{0}"
time = "arrival"
heartbeat = "{1} MILLISECONDS"
"""


class Soak:
    """A server, four sources and a subscriber of each query."""

    def __init__(self, directory: Path, runtime: str) -> None:
        self.data, self.configuration = directory / "state", directory / "spaseq.toml"
        self._options = ("--runtime", runtime)
        (directory / "queries").mkdir()
        for name, (stream, window) in QUERIES.items():
            text = QUERY.format(stream=stream, window=window)
            (directory / "queries" / f"{name}.rq").write_text(text)
        streams = "".join(STREAM.format(f"S{n}", HEARTBEAT_MS) for n in range(4))
        self.configuration.write_text(f'[queries]\ndirectory = "queries"\n{streams}')
        self.stop, self.url = threading.Event(), ""
        self.told: dict[str, list[tuple[str, float]]] = {name: [] for name in QUERIES}
        self.ends: dict[str, int] = {}  # ms, by the id of an answer
        self.up: list[tuple[float, float]] = []  # from when to when the server ran

    def start(self) -> None:
        self.server = Command(self.configuration, *self._options)
        self.url = self.server.url
        self.up.append((time.time() + 1, float("inf")))

    def kill(self) -> None:
        self.up[-1] = (self.up[-1][0], time.time())
        self.server.kill()

    def send(self, number: int) -> None:
        """A source: now and then it stops for some seconds."""
        chance, count = random.Random(number), 0
        with httpx.Client(timeout=5) as http:
            while not self.stop.is_set():
                for _ in range(chance.randrange(1, 12)):
                    device, count = chance.randrange(3), count + 1
                    event = (
                        f'<http://e/d{device}> <http://e/beat> "1" <http://e/{number}-{count}> .'
                    )
                    with suppress(httpx.HTTPError):
                        url = f"{self.url}/streams/S{number}"
                        http.post(url, content=f"{event}\n", headers=NQUADS)
                    self.stop.wait(chance.random() * 0.3)
                self.stop.wait(chance.random() * 4)

    def subscribe(self, query: str) -> None:
        """A subscriber, which goes on after the last answer that it has seen."""
        with httpx.Client(timeout=5) as http:  # to make one takes more time than a request
            while not self.stop.is_set():
                with suppress(httpx.HTTPError):
                    self._listen(query, http)
                self.stop.wait(0.1)

    def _listen(self, query: str, http: httpx.Client) -> None:
        last = self.told[query][-1][0] if self.told[query] else None
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        url = f"{self.url}/queries/{query}/answers"
        with http.stream("GET", url, headers=headers) as response:
            for line in response.iter_lines():
                self._take(query, line)

    def _take(self, query: str, line: str) -> None:
        if line.startswith("data: "):
            answer = json.loads(line[6:])
            self.told[query].append((answer["id"], time.time()))
            self.ends[answer["id"]] = _ms(answer["end"])

    def late(self) -> list[float]:
        """How many ms after its end each answer came whose silence was over while a server ran."""
        found = []
        for told in self.told.values():
            for name, at in told:
                end = self.ends[name] / 1000
                if any(since < end and at < until for since, until in self.up):
                    found.append((at - end) * 1000)
        return sorted(found)


def _ms(text: str) -> int:
    from spaseq.rdf.terms.times import parse_datetime

    found = parse_datetime(text)
    assert found is not None
    return found


def expected(data: Path) -> dict[str, list[tuple[str, int]]]:
    """By query the (device, ms) of each silence in the logs: a loop over what was accepted."""
    directory, found = LiveDirectory(data, True), dict[str, list[tuple[str, int]]]()
    for name, (stream, window) in QUERIES.items():
        log = StreamLog(directory.stream(f"http://e/{stream}"))
        beats, mark = list[tuple[str, int]](), 0
        for entry in _entries(log):
            if isinstance(entry, Heartbeat):
                mark = max(mark, entry.time)
            elif isinstance(entry, MessageColumns):
                for message in entry:
                    at = max(message.arrival, mark)
                    mark = max(mark, at)
                    beats.append((message.payload.split(b">")[0].decode()[1:], at))
        log.close()
        silent = []
        for place, (device, at) in enumerate(beats):
            later = (t for other, t in beats[place + 1 :] if other == device)
            if next(later, mark * 2) - at > window and at + window < mark:
                silent.append((device, at + window))
        found[name] = sorted(silent)
    return found


def _entries(log: StreamLog) -> Iterator[Any]:
    reader = log.reader(0)
    while some := reader.read():
        yield from some
    reader.close()


def run_soak(directory: Path, kills: int, runtime: str) -> None:
    """Kill a server some times, and look at what it has told."""
    soak, chance = Soak(directory, runtime), random.Random(7)
    pace = 1 if runtime == "local" else 5  # a first batch on Spark takes seconds
    soak.start()
    threads = [threading.Thread(target=soak.send, args=(n,), daemon=True) for n in range(4)]
    threads += [threading.Thread(target=soak.subscribe, args=(q,), daemon=True) for q in QUERIES]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(pace * (3 + chance.random() * 4))
        soak.kill()
        soak.start()
    time.sleep(8 * pace)
    soak.stop.set()
    time.sleep(5 * pace)
    with soak.server.client() as client:
        given = {
            name: [*map(json.loads, client.get(f"/queries/{name}/answers").text.splitlines())]
            for name in QUERIES
        }
    assert soak.server.end() == 0
    for thread in threads:
        thread.join(10)
    wanted = expected(soak.data)
    for name, answers in given.items():
        silent = sorted((a["bindings"]["d"]["value"], _ms(a["end"])) for a in answers)
        assert silent == [each for each in wanted[name] if each in silent], name  # none doubled
        missing = [each for each in wanted[name] if each not in silent]
        assert all(end > max(e for _, e in silent) for _, end in missing), name
        ids = [one for one, _ in soak.told[name]]
        assert len(ids) == len({*ids}), name  # no subscriber was told twice
    replayed = _replay(directory, runtime)
    assert {name: len(own) for name, own in replayed.items()} == {
        name: len(own) for name, own in wanted.items()
    }
    for name, answers in given.items():
        own = [{k: v for k, v in answer.items() if k != "id"} for answer in answers]
        assert replayed[name][: len(own)] == own, name
    late = soak.late()
    assert late, "no answer came while a server ran"
    print(f"{runtime}: {sum(map(len, given.values()))} silences, {kills} kills; ms late at a")
    print(f"subscriber: median {late[len(late) // 2]:.0f}, p99 {late[len(late) * 99 // 100]:.0f}")


def _replay(directory: Path, runtime: str) -> dict[str, list[Any]]:
    late = directory / "late.jsonl"
    command = [sys.executable, "-m", "spaseq", "run", "--logs", str(directory / "state")]
    command += ["--runtime", runtime, "--late", str(late)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert late.read_text() == (directory / "state" / "late.jsonl").read_text() == ""
    found: dict[str, list[Any]] = {name: [] for name in QUERIES}
    for line in result.stdout.splitlines():
        answer = json.loads(line)
        found[answer["query"]].append(answer)
    return found


@pytest.mark.thorough
def test_silences_are_told_once_though_the_server_is_killed(tmp_path: Path) -> None:
    kills = int(os.environ.get("SPASEQ_SILENCE_KILLS", "2"))
    run_soak(tmp_path, kills, os.environ.get("SPASEQ_SILENCE_RUNTIME", "local"))


@pytest.mark.slow
@pytest.mark.spark
def test_the_same_on_spark(tmp_path: Path) -> None:
    run_soak(tmp_path, int(os.environ.get("SPASEQ_SILENCE_KILLS", "5")), "spark")
