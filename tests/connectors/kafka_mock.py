"""librdkafka's mock cluster: brokers on loopback that live as long as their client."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

PARTITIONS = 4


class KafkaMock:
    """A mock broker; a topic that is named for the first time has `PARTITIONS`."""

    def __init__(self) -> None:
        kafka = pytest.importorskip(
            "confluent_kafka", reason="confluent-kafka is missing: pip install '.[kafka]'"
        )
        settings = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0}
        self._owner: Any = kafka.Producer(settings)
        brokers = self._owner.list_topics(timeout=10).brokers.values()
        self.host = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self._kafka = kafka

    def publish(
        self,
        topic: str,
        payloads: Sequence[bytes | None],
        partition: int = 0,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Write messages; `more` has their key and timestamp (ms)."""
        settings = {"bootstrap.servers": self.host, "log_level": 0, "message.max.bytes": 20_000_000}
        producer: Any = self._kafka.Producer(settings)
        for payload in payloads:
            given = {"partition": partition, "headers": dict(headers or {}), **more}
            producer.produce(topic, payload, **given)
            producer.poll(0)
        assert producer.flush(30) == 0

    def make_topic(self, name: str) -> None:
        """Make a topic, unless it is there."""
        self._owner.list_topics(name, timeout=10)

    def messages(self, topic: str) -> list[Any]:
        """All messages of a topic, partition by partition."""
        settings = {
            "bootstrap.servers": self.host,
            "group.id": "test",
            "log_level": 0,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
        self.make_topic(topic)
        reader: Any = self._kafka.Consumer(settings)
        places = [self._kafka.TopicPartition(topic, n, 0) for n in range(PARTITIONS)]
        reader.assign(places)
        found, ends = [], 0
        while ends < PARTITIONS:
            for message in reader.consume(1000, 0.1):
                ends += message.error() is not None
                found += [message] if message.error() is None else []
        reader.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def close(self) -> None:
        """End the cluster."""
        self._owner = None


class SeparateKafka(KafkaMock):
    """A mock broker in a process of its own, which can be away for a time."""

    def __init__(self) -> None:
        self._kafka = pytest.importorskip(
            "confluent_kafka", reason="confluent-kafka is missing: pip install '.[kafka]'"
        )
        command = [sys.executable, "-m", "tests.connectors.kafka_mock"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.host = self._process.stdout.readline().strip()
        self._owner = self._kafka.Producer({"bootstrap.servers": self.host, "log_level": 0})

    def leave(self) -> None:
        """Answer nobody from now on."""
        self._process.send_signal(signal.SIGSTOP)

    def come_back(self) -> None:
        """Answer again."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    served = KafkaMock()
    print(served.host, flush=True)
    while True:
        time.sleep(60)
