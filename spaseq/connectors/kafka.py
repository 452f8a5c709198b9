"""Kafka as a source: `kafka://[user:password@]host[:port][,host...]/topic[?start=latest&...]`.

The position of a message is its offset. A source assigns itself all partitions of the topic: it
joins no consumer group, and commits no offsets. The parameter `group` is the group that it names to
the server, and with `start=latest` a new run leaves out the present messages of the topic. A
parameter with a dot is a setting of librdkafka.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spaseq.connectors.address import Address
from spaseq.connectors.base import BACK, HEADER, LOST, Intake, MessageSource, media_of
from spaseq.connectors.reconnecting import offer
from spaseq.errors import InputError, RunError, UsageError
from spaseq.logs.messages import NO_TIME, JoinedTexts, MessageColumns
from spaseq.rdf.inputs.formats import with_headers

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
    """The settings of a consumer with explicit offsets, which commits nothing."""
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
        settings: of librdkafka, in addition to the settings of all readers.

    Attributes:
        kafka: the library.
        consumer: its consumer.
        failure: the exception of its calls.

    Raises:
        UsageError: a setting has no such value.
    """

    def __init__(self, address: Address, on_away: Callable[[], None], **settings: Any) -> None:
        import confluent_kafka

        self.kafka: Any = confluent_kafka
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

    def partitions(self, timeout_s: float = _TIMEOUT_S) -> int:
        """Number of partitions of the topic.

        Args:
            timeout_s: maximum time of a server.

        Raises:
            InputError: there is no such topic.
        """
        topic = self._address.path
        metadata = self.consumer.list_topics(topic, timeout=timeout_s).topics[topic]
        if metadata.error is not None:
            raise InputError(f"{self._address}: topic {topic}: {metadata.error.str()}")
        return len(metadata.partitions)

    def place(self, partition: int, offset: int) -> Any:
        """An offset of the topic for the library."""
        return self.kafka.TopicPartition(self._address.path, partition, offset)

    def extent(self, partition: int) -> Extent:
        """The end of a partition, without uncommitted transactions."""
        topic_partition = self.kafka.TopicPartition(self._address.path, partition)
        return Extent(*self.consumer.get_watermark_offsets(topic_partition, timeout=_TIMEOUT_S))

    def is_message(self, message: Any, dropped: str) -> bool:
        """Whether the library brought a message and no error.

        Args:
            message: the library's message.
            dropped: the error text if the server does not have the next message.

        Raises:
            RunError: it cannot continue.
        """
        error = message.error()
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


_TOGETHER = 1000  # messages that are asked for at once
_WAIT_S = 0.05
_MORE_S = 0.002  # for messages that come together
_LOOK_S = 30.0  # how often a source looks for new partitions
_AWAY_S = 1.0  # how often it asks a server that was away, and how long the server may take
_DROPPED = (
    "the server has no longer, or not yet, the message that follows the last one read: the topic "
    "has been recreated, or messages were dropped unread. Start again"
)


class KafkaSource(MessageSource):
    """The messages of a topic."""

    has_times, extra = True, "kafka"

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
        self._behind = set[int]()  # the partitions whose end has not been reached yet
        self._topic = TopicConsumer(address, self._note_away, **{"enable.partition.eof": True})
        self._consumer = self._topic.consumer

    def _note_away(self) -> None:
        self._away = True

    def run(self) -> None:
        """Read until the intake stops; the library itself connects again."""
        self._consumer.assign(self._start())
        self._intake.connected(is_behind=True)
        told, looked = False, time.monotonic()
        while not self._intake.stopped:
            polled = self._polled()
            messages = [each for each in polled if self._topic.is_message(each, _DROPPED)]
            if self._away and not told:
                self._intake.lost()
                told = True
            is_there = bool(messages)
            if is_there:
                self._intake.connected(bool(self._behind))
                offer(self._intake, block_of(messages))
            if self._behind and self._have_ended(polled):
                self._intake.connected()
            if time.monotonic() - looked > (_AWAY_S if told else _LOOK_S):
                is_there = self._look(_AWAY_S if told else _TIMEOUT_S) or is_there
                looked = time.monotonic()
            if is_there:
                self._away = told = False
                self._intake.connected(bool(self._behind))

    def _have_ended(self, polled: Sequence[Any]) -> bool:
        """Whether all partitions have been read to their ends, the last ones now."""
        end = self._topic.kafka.KafkaError._PARTITION_EOF
        errors = [each for each in polled if each.error() is not None]
        self._behind -= {each.partition() for each in errors if each.error().code() == end}
        return not self._behind

    def _polled(self) -> list[Any]:
        """The messages available now or soon. The library waits the whole time unless all have
        come.
        """
        messages: list[Any] = self._consumer.consume(1, _WAIT_S)
        return messages + self._consumer.consume(_TOGETHER, _MORE_S) if messages else messages

    def _start(self) -> list[Any]:
        """The places to read from, by partition.

        Raises:
            InputError: the topic cannot be read, or has been recreated.
        """
        try:
            self._count = self._topic.partitions()
            self._behind.update(range(self._count))
            self._intake.has_partitions(self._count)
            self._is_late = starts_late(self._address)
            return [self._place(partition) for partition in range(self._count)]
        except self._topic.failure as error:
            raise InputError(self._topic.unreachable(error)) from None

    def _place(self, partition: int) -> Any:
        """The offset from which to continue in a partition."""
        offset = self._checked(partition, *self._topic.extent(partition))
        return self._topic.place(partition, offset)

    def _checked(self, partition: int, low: int, high: int) -> int:
        last = self._intake.places.get(partition)
        if last is None:
            return high if self._is_late else low
        if last >= high:
            raise InputError(
                f"{self._address}: partition {partition} ends before offset {high}, but the "
                f"message at offset {last} has been read: the topic has been recreated. Begin with "
                "an empty checkpoint"
            )
        if last + 1 < low:
            self._intake.note(
                f"{self._address}: the server has dropped the messages at offsets {last + 1} to "
                f"{low - 1} of partition {partition}, which had not been read"
            )
        return max(last + 1, low)

    def _look(self, timeout_s: float) -> bool:
        """Read new partitions, too; False if no server answers, so that there is nothing to see."""
        try:
            count = self._topic.partitions(timeout_s)
            if count > self._count:
                self._intake.has_partitions(count)
                self._is_late = False  # a new partition is read from its first message on
                added = [self._place(partition) for partition in range(self._count, count)]
                self._consumer.incremental_assign(added)
                self._count = count
        except (self._topic.failure, InputError):
            return False
        return True

    def close(self) -> None:
        """Release the connection."""
        self._consumer.close()


def block_of(messages: Sequence[Any]) -> MessageColumns:
    """The library's messages as a block."""
    count, topics = len(messages), [message.topic() for message in messages]
    read = [_with_headers(message) for message in messages]
    times = [time if kind else NO_TIME for kind, time in (m.timestamp() for m in messages)]
    return MessageColumns(
        JoinedTexts.of([payload for _, payload in read]),
        np.fromiter((message.partition() for message in messages), np.int64, count),
        np.fromiter((message.offset() for message in messages), np.int64, count),
        np.zeros(count, np.int64),
        np.array(times, np.int64),
        [media for media, _ in read],
        [message.key() for message in messages],
        topics,
        [()] * count,
    )


def _with_headers(message: Any) -> tuple[str, bytes]:
    """The media type and the payload of a record; see `with_headers`."""
    payload, headers = message.value() or b"", message.headers()
    if not headers:
        return "", payload
    given = {name.lower(): (value or b"").decode(errors="replace") for name, value in headers[::-1]}
    media, payload = with_headers(given, given.get("content-type", ""), payload, encoded=False)
    return media_of(given.get(HEADER), payload, media), payload


_RANGE_TOGETHER = 2000  # messages that are asked for at once
_RANGE_WAIT_S = 0.2
_RANGE_DROPPED = (
    "the server no longer has all messages of partition {} that a batch is to read: messages were "
    "dropped, or the topic has been recreated. Begin with an empty checkpoint"
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
        """The end of each partition, without uncommitted transactions.

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

        Waits while no server answers.

        Raises:
            RunError: the server has dropped some, or refuses access.
        """
        consumer, dropped = self._topic.consumer, _RANGE_DROPPED.format(partition)
        end_of_partition = self._topic.kafka.KafkaError._PARTITION_EOF
        consumer.assign([self._topic.place(partition, begin)])
        try:
            while begin < end:
                collected = []
                for message in consumer.consume(min(end - begin, _RANGE_TOGETHER), _RANGE_WAIT_S):
                    if self._topic.is_message(message, dropped):
                        collected.append(message)
                        begin = message.offset() + 1
                    elif message.error().code() == end_of_partition:
                        begin = max(begin, message.offset())  # behind the marks of transactions
                if collected:
                    self._tell(is_away=False)
                    yield block_of([message for message in collected if message.offset() < end])
        finally:
            consumer.unassign()

    def _tell(self, *, is_away: bool) -> None:
        if is_away != self._is_away:
            self._is_away = is_away
            said = LOST if is_away else BACK
            logging.getLogger("spaseq").warning("%s: %s", self._address, said)
