"""A consumer of one topic, for sources in this process and for tasks on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from spaseq.connectors.address import Address
from spaseq.connectors.base import library
from spaseq.connectors.kafka_connection import reading_settings, silent, without_secrets
from spaseq.errors import InputError, RunError, UsageError

_TIMEOUT_S = 5.0


class Extent(NamedTuple):
    """The messages of a partition: from the offset `low` to before `high`."""

    low: int
    high: int


class TopicConsumer:
    """A connection that reads a topic. It joins no consumer group.

    Args:
        address: the topic's, checked.
        on_away: called when no server answers any more.
        settings: of librdkafka, besides those of all readers.

    Attributes:
        kafka: the library.
        consumer: its consumer.
        failure: the exception of its calls.

    Raises:
        UsageError: a setting has no such value.
    """

    def __init__(self, address: Address, on_away: Callable[[], None], **settings: Any) -> None:
        self.kafka = library("confluent_kafka", "kafka", address)
        self.failure: type[Exception] = self.kafka.KafkaException
        self._address, self._on_away = address, on_away
        self._fault = ""  # the last error of the connection
        given = {**reading_settings(address), **settings, "error_cb": self._on_error}
        try:
            self.consumer = self.kafka.Consumer(given, logger=silent)
        except self.failure as error:
            said = str(error.args[0].str()) if error.args else type(error).__name__
            raise UsageError(f"{address}: {without_secrets(said, address)}") from None

    def _on_error(self, error: Any) -> None:
        self._fault = error.str()
        if error.code() == self.kafka.KafkaError._ALL_BROKERS_DOWN:
            self._on_away()

    def partitions(self) -> int:
        """How many partitions the topic has.

        Raises:
            InputError: there is no such topic.
        """
        topic = self._address.path
        metadata = self.consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if metadata.error is not None:
            raise InputError(f"{self._address}: topic {topic}: {metadata.error.str()}")
        return len(metadata.partitions)

    def place(self, partition: int, offset: int) -> Any:
        """A place in the topic, as the library wants it."""
        return self.kafka.TopicPartition(self._address.path, partition, offset)

    def extent(self, partition: int) -> Extent:
        """How far a partition goes, without transactions that are not committed."""
        place = self.kafka.TopicPartition(self._address.path, partition)
        return Extent(*self.consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S))

    def is_message(self, found: Any, dropped: str) -> bool:
        """Whether the library brought a message and no error.

        Args:
            found: what it brought.
            dropped: what to say if the server does not have the message that is to be read.

        Raises:
            RunError: it cannot go on.
        """
        error = found.error()
        if error is None:
            return True
        codes = self.kafka.KafkaError
        if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            raise RunError(f"{self._address}: {dropped}")
        if error.code() == codes.TOPIC_AUTHORIZATION_FAILED or error.fatal():
            raise RunError(f"{self._address}: {without_secrets(error.str(), self._address)}")
        return False

    def unreachable(self, error: Exception) -> str:
        """Why no server answers, after a call that has failed."""
        reason = without_secrets(self._fault or error.args[0].str(), self._address)
        return (
            f"{self._address}: no Kafka server answers at {self._address.host} ({reason}): check "
            "the host and the port, the user and the password, and that the server runs"
        )
