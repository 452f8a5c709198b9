"""Kafka as a source: `kafka://[user:password@]host[:port][,host...]/topic[?start=latest&...]`.

The place of a message is its offset. A source assigns itself all partitions of the topic: it joins
no consumer group, and commits no offsets. The parameter `group` is the group that it names to the
server, and with `start=latest` a new run leaves out what the topic has. A parameter with a dot is a
setting of librdkafka.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSource
from spaseq.connectors.heartbeat_messages import HEADER, media_of
from spaseq.connectors.kafka_consumer import TopicConsumer, check_source, starts_late
from spaseq.errors import InputError
from spaseq.logs.messages import NO_TIME, JoinedTexts, MessageColumns

_TOGETHER = 1000  # messages that are asked for at once
_WAIT_S = 0.05
_MORE_S = 0.002  # for messages that come together
_ROOM_S = 0.01  # before messages are offered again
_LOOK_S = 30.0  # how often a source looks for new partitions
_DROPPED = (
    "the server has no longer, or not yet, the message that follows the last one read: the topic "
    "has been made anew, or messages were dropped unread. Start again"
)


class KafkaSource(MessageSource):
    """The messages of a topic."""

    has_times = True

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        check_source(address)

    def read(self, intake: Intake) -> None:
        reading = _KafkaReading(self.address, intake)
        try:
            reading.run()
        finally:
            reading.close()


class _KafkaReading:
    """A source while it reads."""

    def __init__(self, address: Address, intake: Intake) -> None:
        self._address, self._intake = address, intake
        self._away = False
        self._topic = TopicConsumer(address, self._note_away)
        self._consumer = self._topic.consumer

    def _note_away(self) -> None:
        self._away = True

    def run(self) -> None:
        """Read until the intake stops; the library itself connects again."""
        self._consumer.assign(self._start())
        told, looked = False, time.monotonic()
        while not self._intake.stopped:
            found = [
                message for message in self._polled() if self._topic.is_message(message, _DROPPED)
            ]
            if self._away and not told:
                self._intake.note(f"{self._address}: connection lost; connecting again")
                told = True
            if found and told:
                self._intake.note(f"{self._address}: connected again")
                told = False
            if found:
                self._away = False
                self._offer(block_of(found))
            if time.monotonic() - looked > _LOOK_S:
                looked = time.monotonic()
                self._look()

    def _polled(self) -> list[Any]:
        """What has come, or comes soon. The library waits the whole time unless all have come."""
        found: list[Any] = self._consumer.consume(1, _WAIT_S)
        return found + self._consumer.consume(_TOGETHER, _MORE_S) if found else found

    def _offer(self, messages: MessageColumns) -> None:
        while not self._intake.offer(messages) and not self._intake.stopped:
            time.sleep(_ROOM_S)

    def _start(self) -> list[Any]:
        """The places to read from, by partition.

        Raises:
            InputError: the topic cannot be read, or has been made anew.
        """
        try:
            self._count = self._topic.partitions()
            self._intake.has_partitions(self._count)
            self._is_late = starts_late(self._address)
            return [self._place(partition) for partition in range(self._count)]
        except self._topic.failure as error:
            raise InputError(self._topic.unreachable(error)) from None

    def _place(self, partition: int) -> Any:
        """Where to go on in a partition."""
        offset = self._checked(partition, *self._topic.extent(partition))
        return self._topic.place(partition, offset)

    def _checked(self, partition: int, low: int, high: int) -> int:
        last = self._intake.places.get(partition)
        if last is None:
            return high if self._is_late else low
        if last >= high:
            raise InputError(
                f"{self._address}: partition {partition} ends before offset {high}, but the "
                f"message at offset {last} has been read: the topic has been made anew. Begin with "
                "an empty checkpoint"
            )
        if last + 1 < low:
            self._intake.note(
                f"{self._address}: the server has dropped the messages at offsets {last + 1} to "
                f"{low - 1} of partition {partition}, which had not been read"
            )
        return max(last + 1, low)

    def _look(self) -> None:
        """Read new partitions, too. While the server is away, there is nothing to see."""
        try:
            count = self._topic.partitions()
            if count > self._count:
                self._intake.has_partitions(count)
                self._is_late = False  # a new partition is read from its first message on
                added = [self._place(partition) for partition in range(self._count, count)]
                self._consumer.incremental_assign(added)
                self._count = count
        except (self._topic.failure, InputError):
            return

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()


def block_of(found: Sequence[Any]) -> MessageColumns:
    """What the library brought, as a block."""
    count, topics = len(found), [message.topic() for message in found]
    times = [time if kind else NO_TIME for kind, time in (m.timestamp() for m in found)]
    return MessageColumns(
        JoinedTexts.of([message.value() or b"" for message in found]),
        np.fromiter((message.partition() for message in found), np.int64, count),
        np.fromiter((message.offset() for message in found), np.int64, count),
        np.zeros(count, np.int64),
        np.array(times, np.int64),
        [_media_type(message) for message in found],
        [message.key() for message in found],
        topics,
        [()] * count,
    )


def _media_type(message: Any) -> str:
    headers = message.headers()
    if not headers:
        return ""
    given = {name.lower(): (value or b"").decode("latin-1") for name, value in reversed(headers)}
    media = given.get("content-type", "")
    return media_of(given.get(HEADER), message.value() or b"", media)
