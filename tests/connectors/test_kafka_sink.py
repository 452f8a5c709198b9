"""Kafka as an output, against librdkafka's mock cluster.

The mock hides no aborted messages, fences nobody and keeps no offsets of transactions. So the tests
see every message that was ever sent: even these must come once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from spaseq.connectors import kafka_sink, sink_at
from spaseq.connectors.base import NotTaken, Parcel
from spaseq.errors import RunError, UsageError
from tests.connectors.kafka_mock import KafkaMock
from tests.connectors.nats_server import free_port


@pytest.fixture
def kafka() -> Iterator[KafkaMock]:
    kafka = KafkaMock()
    yield kafka
    kafka.close()


def parcels(first: int, after: int, query: str = "jams") -> list[Parcel]:
    return [Parcel(f"id{n}", f'{{"n": {n}}}', query, n) for n in range(first, after)]


def test_answers_of_a_query_come_in_order_with_their_ids(kafka: KafkaMock) -> None:
    sink = sink_at(f"kafka://{kafka.host}/alerts?linger.ms=1&transactional.id=mine")
    sink.resume("spaseq-1", {})
    assert sink.send(parcels(0, 300)) == []
    assert sink.send(parcels(300, 600)) == []
    sink.close()
    found = kafka.messages("alerts")
    assert [json.loads(m.value())["n"] for m in found] == [*range(600)]
    assert {m.key() for m in found} == {b"jams"}
    headers = dict(found[7].headers())
    assert headers["id"] == b"id7"
    assert headers["content-type"] == b"application/json"


def test_an_answer_that_the_topic_has_is_not_sent_again(kafka: KafkaMock) -> None:
    """As after a kill between a transaction and the note of it."""
    first = sink_at(f"kafka://{kafka.host}/alerts")
    first.resume("spaseq-1", {})
    note = dict(first.note)
    first.send(parcels(0, 10))
    first.send(parcels(10, 20, "other"))
    kafka.publish("alerts", [b"of somebody else"])
    second = sink_at(f"kafka://{kafka.host}/alerts")
    second.resume("spaseq-1", note)
    second.send(parcels(0, 10))
    second.send([*parcels(10, 20, "other"), *parcels(20, 25)])
    found = [m.value() for m in kafka.messages("alerts")]
    found.remove(b"of somebody else")
    assert sorted(json.loads(value)["n"] for value in found) == [*range(25)]
    assert second.note != note
    third = sink_at(f"kafka://{kafka.host}/alerts")
    third.resume("spaseq-2", {})  # another run's answers have the same numbers
    third.send(parcels(0, 3))
    assert len(kafka.messages("alerts")) == 29


def test_an_answer_that_is_too_large_is_refused_alone(kafka: KafkaMock) -> None:
    sink = sink_at(f"kafka://{kafka.host}/alerts?message.max.bytes=10000")
    sink.resume("spaseq-1", {})
    large = Parcel("large", json.dumps("x" * 20_000), "jams", 1)
    (refusal,) = sink.send([*parcels(0, 1), large, *parcels(2, 4)])
    assert refusal.parcel is large
    assert "too large" in refusal.reason.lower()
    assert [json.loads(m.value())["n"] for m in kafka.messages("alerts")] == [0, 2, 3]


def test_a_large_answer(kafka: KafkaMock) -> None:
    sink = sink_at(f"kafka://{kafka.host}/alerts")
    sink.resume("spaseq-1", {})
    text = json.dumps("x" * 4_500_000)  # the mock keeps 5 MB of a partition
    assert sink.send([Parcel("large", text, "jams", 1)]) == []
    assert [m.value() for m in kafka.messages("alerts")] == [text.encode()]


def test_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_sink, "_TIMEOUT_S", 2.0)
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is missing")
    port = free_port()
    url = f"kafka://me:secret@127.0.0.1:{port}/alerts?security.protocol=sasl_plaintext"
    with pytest.raises(NotTaken, match=r"Connection refused|Connect to") as caught:
        sink_at(url).resume("spaseq-1", {})
    assert "secret" not in str(caught.value)


def test_a_server_that_goes_away(kafka: KafkaMock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock cluster cannot come back."""
    monkeypatch.setattr(kafka_sink, "_COMMIT_S", 2.0)
    sink = sink_at(f"kafka://{kafka.host}/alerts")
    sink.resume("spaseq-1", {})
    sink.send(parcels(0, 5))
    kafka.close()
    start = time.monotonic()
    with pytest.raises(NotTaken, match="Kafka does not take answers"):
        sink.send(parcels(5, 8))
    sink.close()
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("kafka://me:secret@h", "give a topic"),
        ("kafka://h/a?acks=1", "unknown parameter acks"),
        ("kafka://h/a?enable.idempotence=false", "enable.idempotence cannot be set"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        sink_at(url)


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(UsageError, match=r"sasl\.nonsense") as caught:
        sink_at("kafka://127.0.0.1:1/a?sasl.nonsense=hidden1").resume("spaseq-1", {})
    assert "hidden1" not in str(caught.value)


def test_a_server_without_transactions_is_named(kafka: KafkaMock) -> None:
    """The library is told that the server is Kafka 0.9."""
    old = "api.version.request=false&broker.version.fallback=0.9.0.1"
    with pytest.raises(RunError, match="the server has no transactions") as caught:
        sink_at(f"kafka://{kafka.host}/alerts?{old}").resume("spaseq-1", {})
    assert not isinstance(caught.value, NotTaken)
