"""Ranges of a topic's partitions at Kafka: how far they go, and the messages of one range."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from spaseq.connectors.address import Address
from spaseq.connectors.base import AWAY, BACK, library
from spaseq.connectors.kafka import block_of
from spaseq.connectors.kafka_connection import (
    check_source,
    reading_settings,
    silent,
    starts_late,
    without_secrets,
)
from spaseq.errors import InputError, RunError, UsageError
from spaseq.logs.messages import MessageColumns

_TOGETHER = 2000  # messages that are asked for at once
_WAIT_S = 0.2
_TIMEOUT_S = 5.0


class Extent(NamedTuple):
    """The messages of a partition: from the offset `low` to before `high`."""

    low: int
    high: int


class TopicAway(InputError):
    """The servers of a topic do not answer now."""


class TopicRanges:
    """A topic whose partitions are read in parts.

    A process keeps its connections: see `at`.
    """

    known: ClassVar[dict[str, TopicRanges]] = {}

    def __init__(self, address: Address) -> None:
        check_source(address)
        self._kafka = library("confluent_kafka", "kafka", address)
        self._address = address
        self._fault = ""  # the last error of the connection
        self._is_away = False
        settings = {
            **reading_settings(address),
            "enable.partition.eof": True,
            "error_cb": self._on_error,
        }
        try:
            self._consumer = self._kafka.Consumer(settings, logger=silent)
        except self._kafka.KafkaException as error:
            said = str(error.args[0].str()) if error.args else type(error).__name__
            raise UsageError(f"{address}: {without_secrets(said, address)}") from None

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
        topic = self._address.path
        try:
            metadata = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
            if metadata.error is not None:
                raise InputError(f"{self._address}: topic {topic}: {metadata.error.str()}")
            return [self._extent(number) for number in range(len(metadata.partitions))]
        except self._kafka.KafkaException as error:
            reason = without_secrets(self._fault or error.args[0].str(), self._address)
            raise TopicAway(
                f"{self._address}: no Kafka server answers at {self._address.host} ({reason}): "
                "check the host and the port, the user and the password, and that the server runs"
            ) from None

    def _extent(self, partition: int) -> Extent:
        place = self._kafka.TopicPartition(self._address.path, partition)
        return Extent(*self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S))

    def messages(self, partition: int, begin: int, end: int) -> Iterator[MessageColumns]:
        """The messages of a partition from the offset `begin` to before `end`, in order.

        Waits as long as no server answers.

        Raises:
            RunError: the server has dropped some, or refuses to give them.
        """
        place = self._kafka.TopicPartition(self._address.path, partition, begin)
        self._consumer.assign([place])
        try:
            while begin < end:
                found = []
                for message in self._consumer.consume(min(end - begin, _TOGETHER), _WAIT_S):
                    if self._is_message(message, partition):
                        found.append(message)
                        begin = message.offset() + 1
                    elif message.error().code() == self._kafka.KafkaError._PARTITION_EOF:
                        begin = max(begin, message.offset())  # behind the marks of transactions
                if found:
                    self._tell(is_away=False)
                    yield block_of([message for message in found if message.offset() < end])
        finally:
            self._consumer.unassign()

    def _is_message(self, found: Any, partition: int) -> bool:
        error = found.error()
        if error is None:
            return True
        codes = self._kafka.KafkaError
        if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            raise RunError(
                f"{self._address}: the server no longer has all messages of partition {partition} "
                "that a batch is to read: messages were dropped, or the topic has been made anew. "
                "Begin with an empty checkpoint"
            )
        if error.code() == codes.TOPIC_AUTHORIZATION_FAILED or error.fatal():
            raise RunError(f"{self._address}: {without_secrets(error.str(), self._address)}")
        return False

    def _on_error(self, error: Any) -> None:
        self._fault = error.str()
        if error.code() == self._kafka.KafkaError._ALL_BROKERS_DOWN:
            self._tell(is_away=True)

    def _tell(self, *, is_away: bool) -> None:
        if is_away != self._is_away:
            self._is_away = is_away
            said = f"connection lost; {AWAY}" if is_away else BACK
            logging.getLogger("spaseq").warning("%s: %s", self._address, said)
