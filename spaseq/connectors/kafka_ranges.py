"""Ranges of a topic's partitions at Kafka: how far they go, and the messages of one range."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import ClassVar

from spaseq.connectors.address import Address
from spaseq.connectors.base import AWAY, BACK
from spaseq.connectors.kafka import block_of
from spaseq.connectors.kafka_consumer import Extent, TopicConsumer, check_source, starts_late
from spaseq.errors import InputError
from spaseq.logs.messages import MessageColumns

_TOGETHER = 2000  # messages that are asked for at once
_WAIT_S = 0.2
_DROPPED = (
    "the server no longer has all messages of partition {} that a batch is to read: messages were "
    "dropped, or the topic has been made anew. Begin with an empty checkpoint"
)


class TopicAway(InputError):
    """The servers of a topic do not answer now."""


class TopicRanges:
    """A topic whose partitions are read in parts.

    A process keeps its connections: see `at`.
    """

    known: ClassVar[dict[str, TopicRanges]] = {}

    def __init__(self, address: Address) -> None:
        check_source(address)
        self._address, self._is_away = address, False
        self._topic = TopicConsumer(
            address, lambda: self._tell(is_away=True), **{"enable.partition.eof": True}
        )

    @classmethod
    def at(cls, url: str) -> TopicRanges:
        """The topic at a URL; the same object for the same URL."""
        if url not in cls.known:
            cls.known[url] = cls(Address.of(url))
        return cls.known[url]

    @property
    def starts_late(self) -> bool:
        """Whether a new run leaves out the messages that are there."""
        return starts_late(self._address)

    def extents(self) -> list[Extent]:
        """How far each partition goes, without messages of transactions that are not committed.

        Raises:
            TopicAway: no server answers.
            InputError: there is no such topic.
        """
        try:
            return [self._topic.extent(number) for number in range(self._topic.partitions())]
        except self._topic.failure as error:
            raise TopicAway(self._topic.unreachable(error)) from None

    def messages(self, partition: int, begin: int, end: int) -> Iterator[MessageColumns]:
        """The messages of a partition from the offset `begin` to before `end`, in order.

        Waits as long as no server answers.

        Raises:
            RunError: the server has dropped some, or refuses to give them.
        """
        consumer, dropped = self._topic.consumer, _DROPPED.format(partition)
        end_of_partition = self._topic.kafka.KafkaError._PARTITION_EOF
        consumer.assign([self._topic.place(partition, begin)])
        try:
            while begin < end:
                found = []
                for message in consumer.consume(min(end - begin, _TOGETHER), _WAIT_S):
                    if self._topic.is_message(message, dropped):
                        found.append(message)
                        begin = message.offset() + 1
                    elif message.error().code() == end_of_partition:
                        begin = max(begin, message.offset())  # behind the marks of transactions
                if found:
                    self._tell(is_away=False)
                    yield block_of([message for message in found if message.offset() < end])
        finally:
            consumer.unassign()

    def _tell(self, *, is_away: bool) -> None:
        if is_away != self._is_away:
            self._is_away = is_away
            said = f"connection lost; {AWAY}" if is_away else BACK
            logging.getLogger("spaseq").warning("%s: %s", self._address, said)
