"""What sources and sinks at Kafka share: a consumer of one topic, the login, quiet logging, and
messages without secrets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from spaseq.connectors.address import Address
from spaseq.connectors.base import library
from spaseq.errors import InputError, RunError, UsageError

silent = logging.getLogger("spaseq.kafka")
"""A logger for librdkafka, whose messages may have secrets."""
silent.addHandler(logging.NullHandler())
silent.propagate = False


_OWN = ("group", "start")
"""The parameters of a source that are no settings of librdkafka."""
_STARTS = ("earliest", "latest")
_KEPT = frozenset(
    {"group.id", "enable.auto.commit", "auto.offset.reset", "bootstrap.servers", "isolation.level"}
)
"""The settings that the URL of a source may not change: the promises of a run rest on them."""


def check_address(address: Address, ours: Collection[str], own: Collection[str] = ()) -> None:
    """UsageError unless there is a topic, and settings of librdkafka that are not `ours`.

    `own` are parameters that are no such settings.
    """
    if not address.path or "/" in address.path:
        raise UsageError(f"{address}: give a topic, kafka://HOST/TOPIC")
    for name in address.parameters:
        if name in own:
            continue
        if "." not in name:
            known = ", ".join([*own, "settings of librdkafka"])
            raise UsageError(f"{address}: unknown parameter {name} ({known})")
        if name in ours:
            raise UsageError(f"{address}: {name} cannot be set; a run keeps its place itself")


def check_source(address: Address) -> None:
    """UsageError unless the address is one of a topic to read."""
    check_address(address, _KEPT, _OWN)
    start = address.parameters.get("start", "earliest")
    if start not in _STARTS:
        raise UsageError(f"{address}: start is {' or '.join(_STARTS)}, not {start}")


def starts_late(address: Address) -> bool:
    """Whether a run that has read nothing yet leaves out the messages that are there."""
    return address.parameters.get("start") == "latest"


def reading_settings(address: Address) -> dict[str, Any]:
    """The settings of a consumer that is told where to read, and commits nothing."""
    return {
        "bootstrap.servers": address.host,
        "group.id": address.parameters.get("group", "spaseq"),  # no consumer joins it
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "queued.max.messages.kbytes": 16_384,
        **login(address),
        **{name: value for name, value in address.parameters.items() if name not in _OWN},
    }


def login(address: Address) -> dict[str, Any]:
    """The settings of a user and a password."""
    if not address.user:
        return {}
    return {
        "sasl.username": address.user,
        "sasl.password": address.password,
        "sasl.mechanisms": "PLAIN",
        "security.protocol": "sasl_ssl",
    }


def without_secrets(text: str, address: Address) -> str:
    """A message of the library without the password, and the values of settings."""
    for secret in (address.password, *address.parameters.values()):
        text = text.replace(secret, "***") if len(secret) > 3 else text
    return text


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
