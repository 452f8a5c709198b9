"""Ranges of partitions, against librdkafka's mock cluster, whose topics have four partitions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from spaseq.connectors.address import Address
from spaseq.connectors.kafka import Extent, TopicAway, TopicRanges
from spaseq.errors import UsageError
from tests.connectors.kafka_mock import KafkaMock, SeparateKafka
from tests.connectors.nats_server import free_port


@pytest.fixture
def kafka() -> Iterator[KafkaMock]:
    mock = KafkaMock()
    yield mock
    mock.close()


@pytest.fixture
def separate() -> Iterator[SeparateKafka]:
    kafka = SeparateKafka()
    yield kafka
    kafka.close()


def test_a_range_has_its_messages_and_no_others(kafka: KafkaMock) -> None:
    kafka.publish("road", [f"{n}".encode() for n in range(50)], partition=2, key=b"k")
    topic = TopicRanges(Address.of(f"kafka://{kafka.host}/road?group=mine"))
    assert topic.extents() == [Extent(0, 0), Extent(0, 0), Extent(0, 50), Extent(0, 0)]
    found = [message for some in topic.messages(2, 7, 12) for message in some]
    assert [message.payload for message in found] == [b"7", b"8", b"9", b"10", b"11"]
    assert [message.offset for message in found] == [7, 8, 9, 10, 11]
    assert {(message.key, message.topic, message.partition) for message in found} == {
        (b"k", "road", 2)
    }
    again = [message.offset for some in topic.messages(2, 0, 3) for message in some]
    assert again == [0, 1, 2]


@pytest.mark.thorough
def test_an_unreachable_server_is_named_without_secrets() -> None:
    url = f"kafka://me:hidden1@127.0.0.1:{free_port()}/road?ssl.key.password=hidden2"
    topic = TopicRanges(Address.of(url + "&security.protocol=plaintext"))
    with pytest.raises(TopicAway, match="no Kafka server answers at 127") as raised:
        topic.extents()
    assert "hidden" not in str(raised.value)


def test_parameters_are_checked() -> None:
    with pytest.raises(UsageError, match="start is earliest or latest, not now"):
        TopicRanges(Address.of("kafka://127.0.0.1/road?start=now"))


@pytest.mark.thorough
def test_a_server_that_is_away_for_a_time_is_waited_for(separate: SeparateKafka) -> None:
    kafka = separate
    kafka.publish("road", [b"%d" % n for n in range(3000)], partition=1)
    topic = TopicRanges(Address.of(f"kafka://{kafka.host}/road"))
    assert topic.extents()[1] == Extent(0, 3000)
    kafka.leave()
    threading.Timer(7, kafka.come_back).start()
    begun = time.monotonic()
    with pytest.raises(TopicAway):
        TopicRanges(Address.of(f"kafka://{kafka.host}/road")).extents()
    offsets = [message.offset for some in topic.messages(1, 0, 3000) for message in some]
    assert offsets == [*range(3000)]
    assert time.monotonic() - begun > 6
    assert topic.extents()[1] == Extent(0, 3000)
