"""A soak of the server: four sources, ten queries, a sink of each kind, and SIGKILLs at random.

One stream comes from NATS, one from MQTT, one is posted, and one is a file that grows. The server,
the NATS server and the database are killed at moments drawn from a seed, and started again; so is
the MQTT broker, by SIGTERM, because it keeps its sessions only then. In the end the answers of the
log and of each sink must be those of a bounded run over all events.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.connectors.hook import Hook
from tests.connectors.kafka_mock import PARTITIONS, KafkaMock
from tests.connectors.mosquitto import Mosquitto
from tests.connectors.mqtt_subscriber import Subscriber
from tests.connectors.nats_server import NatsServer
from tests.connectors.postgresql_server import PostgresqlServer
from tests.runtime.machines import Row, nquads
from tests.serve.processes import Command, spaseq

STREAMS = "ABCD"
HEAD = "PREFIX : <http://m.example/>\nSELECT * WITHIN 8 SECONDS\n" + "".join(
    f"FROM STREAM {name} <http://m.example/{name}>\n" for name in STREAMS
)
SHAPES = (
    """SEQ (A; B) {{
  DEFINE GPM A ON A, B {{ ?machine :starts ?load FILTER (STR(?load) > "{0}") }}
  DEFINE GPM B ON C, D {{ ?machine :stops ?code }}
}}""",
    """SEQ (A, B) {{
  DEFINE GPM A ON A, B, C, D {{ ?machine :starts ?load FILTER (STR(?load) > "{0}") }}
  DEFINE GPM B ON A, B, C, D {{ ?other :stops ?code }}
}}""",
    """SEQ (A; B; C!) {{
  DEFINE GPM A ON A {{ ?machine :starts ?load FILTER (STR(?load) > "{0}") }}
  DEFINE GPM B ON B, C {{ ?machine :starts ?more }}
  DEFINE GPM C ON D {{ ?machine :stops ?code }}
}}""",
)
QUERIES = {
    f"q{number}": HEAD + SHAPES[number % 3].format((10, 30, 50, 70)[number // 3])
    for number in range(10)
}
STEP_MS, DISORDER_MS, WATERMARK_MS = 100, 500, 1000
TURN_S = 0.05
_IDLE_S, _PATIENCE_S = 0.2, 120.0


@dataclass
class Soaked:
    """What a soak has found.

    Attributes:
        expected: the answers of a bounded run, by query.
        logged: the answers that the server gives at the end, by query.
        sinks: the ids that each sink has, in its order.
        kills: how often each process was killed.
    """

    expected: dict[str, list[Any]] = field(default_factory=dict)
    logged: dict[str, list[Any]] = field(default_factory=dict)
    sinks: dict[str, list[str]] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)


def rows(chance: Random, begin: int) -> dict[str, list[Row]]:
    """The events of one turn, which may be out of order by less than the watermark."""
    found: dict[str, list[Row]] = {name: [] for name in STREAMS}
    for step in range(4):
        for name in STREAMS:
            at = begin + step * STEP_MS + chance.randrange(DISORDER_MS)
            what = chance.choice(("starts", "stops"))
            machine = f"m{chance.randrange(6)}"
            found[name].append((max(at, 0), machine, what, chance.randrange(10, 100)))
    return found


class TopicReader:
    """Reads a topic while it grows: the mock broker keeps only 5 MB of each partition."""

    def __init__(self, host: str, topic: str) -> None:
        import confluent_kafka as kafka

        settings = {"bootstrap.servers": host, "group.id": "soak", "log_level": 0}
        self._consumer: Any = kafka.Consumer({**settings, "enable.partition.eof": True})
        self._consumer.list_topics(topic, timeout=10)  # makes the topic
        places = [kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
        self._consumer.assign(places)
        self._found: list[str] = []

    def ids(self) -> list[str]:
        """The ids of all answers so far."""
        while (message := self._consumer.poll(0.5)) is not None:
            if message.error() is None:
                self._found.append(json.loads(message.value())["id"])
        return [*self._found]

    def close(self) -> None:
        self._consumer.close()


class Soak:
    """A server with all that is around it.

    Args:
        directory: an empty directory.
        seed: of the events and of the kills.
        runtime: in which the server evaluates the queries.
    """

    def __init__(self, directory: Path, seed: int, runtime: str) -> None:
        self._directory, self._chance, self._runtime = directory, Random(seed), runtime
        self._sent: dict[str, list[str]] = {name: [] for name in STREAMS}
        self._posts = 0
        self.kills = {"server": 0, "nats": 0, "database": 0, "mqtt": 0}
        with ExitStack() as stack:
            self._begin(directory, stack)
            self._stack = stack.pop_all()

    def _begin(self, directory: Path, stack: ExitStack) -> None:
        for name in ("nats", "mqtt"):
            (directory / name).mkdir()
        self._mqtt = Mosquitto(directory / "mqtt")
        stack.callback(lambda: self._mqtt.stop())
        self._subscriber = Subscriber(self._mqtt, "out")
        stack.callback(self._subscriber.close)
        self._nats = NatsServer(directory / "nats")
        stack.callback(lambda: self._nats.kill())
        self._nats.make_stream("IN", "in.>")
        self._nats.make_stream("OUT", "out")
        self._kafka, self._hook = KafkaMock(), Hook()
        stack.callback(self._kafka.close)
        stack.callback(self._hook.close)
        self._topic = TopicReader(self._kafka.host, "out")
        stack.callback(self._topic.close)
        self._database = PostgresqlServer()
        stack.callback(self._database.end)
        self._configure()
        self._server = self._start()
        stack.callback(lambda: self._server.kill())
        self._subscribed()

    def _start(self) -> Command:
        return Command(self._directory / "spaseq.toml", "--runtime", self._runtime)

    def _configure(self) -> None:
        directory = self._directory
        (directory / "queries").mkdir()
        for name, text in QUERIES.items():
            (directory / "queries" / f"{name}.rq").write_text(text)
        (directory / "grows.nq").touch()
        sources = {
            "A": f"nats://{self._nats.host}/in.a?stream=IN",
            "B": f"mqtt://{self._mqtt.host}/in/b?qos=1",
            "D": "grows.nq",
        }
        sinks = {
            "file": "answers.jsonl",
            "nats": f"nats://{self._nats.host}/out",
            "kafka": f"kafka://{self._kafka.host}/out",
            "mqtt": f"mqtt://{self._mqtt.host}/out",
            "hook": f"http://127.0.0.1:{self._hook.port}/hook",
            "table": self._database.url("road/answers?sslmode=disable"),
        }
        lines = [
            '[server]\ndata = "state"\nsync = "2 MILLISECONDS"',
            '[queries]\ndirectory = "queries"',
        ]
        for name in STREAMS:
            source = f'\nsource = "{sources[name]}"' if name in sources else ""
            lines.append(
                f'[streams.{name}]\niri = "http://m.example/{name}"{source}\n'
                f'watermark = "{WATERMARK_MS} MILLISECONDS"'
                + ('\ndedup = "1 HOURS"' if name == "B" else "")
            )
        lines += [f'[sinks.{name}]\nto = "{to}"' for name, to in sinks.items()]
        (directory / "spaseq.toml").write_text("\n".join(lines) + "\n")

    def _subscribed(self) -> None:
        """Wait until the server has its session at the broker of MQTT."""

        def is_there() -> bool:
            self._mqtt.publish("in/b", [b"no event"])
            with self._server.client() as client:
                return any(stream["bad"] for stream in client.get("/streams").json())

        self._until(is_there)

    # --- events -----------------------------------------------------------------------------------

    def turn(self, number: int) -> None:
        """Send the events of one turn."""
        found = rows(self._chance, number * 4 * STEP_MS)
        self.send({name: nquads(own, f"{name}{number}") for name, own in found.items()})

    def send(self, texts: dict[str, str]) -> None:
        """Send a text to each stream, whoever is away."""
        for name, text in texts.items():
            self._sent[name].append(text)
        self._nats.publish("in.a", [texts["A"].encode()])
        self._mqtt.publish("in/b", [texts["B"].encode()])
        with (self._directory / "grows.nq").open("a") as file:
            file.write(texts["D"])
        self._post(texts["C"])

    def _post(self, text: str) -> None:
        """Post events until the server has said that it has them; it takes them once."""
        self._posts += 1
        headers = {"Content-Type": "application/n-quads", "Idempotency-Key": f"post{self._posts}"}
        while True:
            try:
                url = f"{self._server.url}/streams/C"
                reply = httpx.post(url, content=text, headers=headers, timeout=30)
            except httpx.TransportError:
                time.sleep(_IDLE_S)
                continue
            if reply.status_code == 200:
                assert reply.json()["bad"] == []
                return
            assert reply.status_code == 503, reply.text
            time.sleep(_IDLE_S)

    # --- kills ------------------------------------------------------------------------------------

    def kill_somebody(self) -> None:
        """Kill one of the processes, and start it again."""
        self._topic.ids()
        who = self._chance.choices(("server", "nats", "database", "mqtt"), (6, 2, 2, 2))[0]
        self.kills[who] += 1
        if who == "server":
            self._server.kill()
            self._server = self._start()
            return
        other: Any = {"nats": self._nats, "database": self._database, "mqtt": self._mqtt}[who]
        if who == "mqtt":
            self._mqtt.stop()
        else:
            other.kill()
        time.sleep(self._chance.uniform(0, 0.5))
        other.start()

    # --- the end ----------------------------------------------------------------------------------

    def end(self) -> Soaked:
        """Wait until all is evaluated and sent; what was found."""
        last = 10_000_000
        self.send({n: nquads([(last, "none", "starts", 0)], f"{n}end") for n in STREAMS})
        found = Soaked(self._expected(), kills=self.kills)
        wanted = {name: len(own) for name, own in found.expected.items()}
        with self._server.client() as client:
            self._until(
                lambda: {q["name"]: q["answers"] for q in client.get("/queries").json()} == wanted
            )
            for name in QUERIES:
                text = client.get(f"/queries/{name}/answers?limit=10000000").text
                found.logged[name] = [json.loads(line) for line in text.splitlines()]
            total = sum(wanted.values())
            self._until(lambda: all(len(set(ids)) == total for ids in self._ids().values()))
        found.sinks = self._ids()
        self.close()
        return found

    def close(self) -> None:
        """End all processes."""
        self._stack.close()

    def _until(self, done: Any) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not done() and time.monotonic() < end:
            time.sleep(_IDLE_S)

    def _ids(self) -> dict[str, list[str]]:
        answers = self._directory / "answers.jsonl"
        lines = answers.read_text().splitlines() if answers.exists() else []
        return {
            "file": [f"{number} {line}" for number, line in enumerate(lines)],
            "nats": [name for name, _ in self._nats.messages("out")],
            "kafka": self._topic.ids(),
            "hook": self._hook.keys,
            "mqtt": self._subscriber.ids,
            "table": [row[0] for row in self._database.ask("select id from answers")],
        }

    def _expected(self) -> dict[str, list[Any]]:
        streams: list[str] = []
        for name, texts in self._sent.items():
            path = self._directory / f"all-{name}.nq"
            path.write_text("".join(texts))
            streams += ["--stream", f"http://m.example/{name}={path}"]
        run = spaseq(
            *("run", "--queries", str(self._directory / "queries"), "--runtime", "local"), *streams
        )
        assert run.returncode == 0, run.stderr
        found: dict[str, list[Any]] = {name: [] for name in QUERIES}
        for line in run.stdout.splitlines():
            answer = json.loads(line)
            found[answer["query"]].append(answer)
        return found


def soak(directory: Path, seconds: float, seed: int, runtime: str) -> Soaked:
    """Run a server for some seconds, with a kill every few seconds."""
    every_s = 4.0 if runtime == "local" else 20.0  # Spark takes longer to start
    run = Soak(directory, seed, runtime)
    try:
        end, next_kill = time.monotonic() + seconds, time.monotonic() + every_s
        for number in _turns(end):
            run.turn(number)
            if time.monotonic() > next_kill:
                run.kill_somebody()
                next_kill = time.monotonic() + every_s
        return run.end()
    except BaseException:
        run.close()
        raise


def _turns(end: float) -> Iterator[int]:
    number = 0
    while time.monotonic() < end:
        yield number
        number += 1
        time.sleep(TURN_S)


def without_ids(answers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers as a bounded run writes them."""
    return [{key: value for key, value in answer.items() if key != "id"} for answer in answers]
