"""Kafka as an output: `kafka://[user:password@]host[:port][,host...]/topic[?linger.ms=...]`.

Answers are sent in transactions, with a transactional id that all runs over one answer log share.
So a topic has each answer once for consumers that read committed messages. After a crash the server
first ends the transaction of the killed run. Then the sink reads the messages of the topic after
the last noted offsets, and skips the answers in them. Each message has the number of its answer in
a header.

The key of a message is the name of the query, so the answers of a query stay in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from spaseq.connectors.address import Address
from spaseq.connectors.base import MessageSink, NotTaken, Parcel, Refusal
from spaseq.connectors.kafka import check_address, login, silent, without_secrets
from spaseq.errors import RunError, UsageError

ID, PLACE = "id", "spaseq"
"""The headers with the id of an answer, and with the name of its log and its number there."""

_TIMEOUT_S = 10.0
_COMMIT_S = 15.0
_AT_ONCE = 1000
_MOST_BYTES = 1_000_000_000
_OURS = frozenset(
    {"bootstrap.servers", "enable.idempotence", "acks", "group.id", "isolation.level"}
)


class KafkaSink(MessageSink):
    """A topic that gets each answer once.

    `note` has the offset, for each partition, before which no answer needs to be looked for.
    """

    extra = "kafka"

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        check_address(address, _OURS)
        self._producer: Any = None
        self._offsets: dict[int, int] = {}
        self._there: set[int] = set()  # numbers of answers that the topic has behind the offsets
        self._fault = ""  # the last error of the connection
        self._identity = ""

    def resume(self, identity: str, note: Mapping[str, Any]) -> None:
        import confluent_kafka

        self.close()
        self._kafka: Any = confluent_kafka
        self._identity, self._fault = identity, ""
        try:
            self._producer = self._made(
                self._kafka.Producer,
                {
                    "transactional.id": identity,
                    "message.max.bytes": _MOST_BYTES,
                    **self.address.parameters,
                },
            )
            self._producer.init_transactions(_TIMEOUT_S)
            self._find_answers({int(n): offset for n, offset in note.items()})
        except self._kafka.KafkaException as error:
            raise self._failure(error.args[0]) from None

    def _made(self, kind: Callable[..., Any], more: Mapping[str, Any]) -> Any:
        """A client of the library; UsageError if it does not know a setting."""
        settings = {
            "bootstrap.servers": self.address.host,
            "error_cb": self._on_error,
            **login(self.address),
            **more,
        }
        try:
            return kind(settings, logger=silent)
        except self._kafka.KafkaException as error:
            said = without_secrets(str(error.args[0].str()), self.address)
            raise UsageError(f"{self.address}: {said}") from None

    def _on_error(self, error: Any) -> None:
        self._fault = error.str()

    def _failure(self, error: Any) -> RunError:
        """The error of the run for an error of the library."""
        with suppress(self._kafka.KafkaException):
            self._producer.poll(0)  # tells `_on_error`
        codes = self._kafka.KafkaError
        said = without_secrets(error.str(), self.address)
        if error.code() in (codes._UNSUPPORTED_FEATURE, codes.UNSUPPORTED_VERSION):
            return RunError(
                f"{self.address}: the server has no transactions ({said}), so a topic could get "
                "answers twice: use Kafka 0.11 or later"
            )
        if error.code() in (codes._FENCED, codes.INVALID_PRODUCER_EPOCH, codes.PRODUCER_FENCED):
            return RunError(
                f"{self.address}: another process sends with the same transactional.id; has the "
                "directory of the run been copied?"
            )
        if error.code() in (
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.CLUSTER_AUTHORIZATION_FAILED,
        ):
            return RunError(f"{self.address}: {said}")
        reason = without_secrets(self._fault, self.address) or said
        return NotTaken(
            f"{self.address}: Kafka does not take answers ({reason}): check the hosts and the "
            "ports, the user and the password, and that the servers run"
        )

    # --- what the topic has -----------------------------------------------------------------------

    def _find_answers(self, noted: dict[int, int]) -> None:
        """Find the answers that the topic has behind the noted offsets."""
        topic = self.address.path
        count = self._partitions()
        # Another writer's open transaction hides committed answers behind it from `reader`.
        looker, reader = (self._consumer(level) for level in ("read_uncommitted", "read_committed"))
        try:
            begins, ends = {}, {}
            for number in range(count):
                topic_partition = self._kafka.TopicPartition(topic, number)
                low, high = looker.get_watermark_offsets(topic_partition, timeout=_TIMEOUT_S)
                begin = noted.get(number, low if noted else high)
                begins[number] = begin if low <= begin <= high else low
                ends[number] = high
            self._offsets = begins
            self._there = self._numbers_between(reader, begins, ends)
        finally:
            looker.close()
            reader.close()
        self._note()

    def _partitions(self) -> int:
        """Number of partitions of the topic; the server may create it now."""
        end = time.monotonic() + _TIMEOUT_S
        while True:
            topic = self.address.path
            metadata = self._producer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
            if metadata.error is None and metadata.partitions:
                return len(metadata.partitions)
            if time.monotonic() > end:
                reason = metadata.error.str() if metadata.error else "it has no partitions"
                raise NotTaken(f"{self.address}: topic {topic}: {reason}")
            time.sleep(0.1)

    def _consumer(self, isolation: str) -> Any:
        settings = {
            "group.id": "spaseq",  # the library needs one; no consumer joins it
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
        return self._made(self._kafka.Consumer, {**self.address.parameters, **settings})

    def _numbers_between(
        self, reader: Any, begins: Mapping[int, int], ends: Mapping[int, int]
    ) -> set[int]:
        """The numbers of our answers in parts of the partitions."""
        codes, topic = self._kafka.KafkaError, self.address.path
        left = {n for n in begins if begins[n] < ends[n]}
        if not left:
            return set()
        reader.assign([self._kafka.TopicPartition(topic, n, begins[n]) for n in left])
        numbers, patience = set(), time.monotonic() + _TIMEOUT_S
        while left:
            for message in reader.consume(_AT_ONCE, 0.1):
                error, number, offset = message.error(), message.partition(), message.offset()
                if error is None:
                    patience = time.monotonic() + _TIMEOUT_S
                    numbers |= self._number_of(message)
                    offset += 1
                elif error.code() != codes._PARTITION_EOF:
                    raise self._kafka.KafkaException(error)
                if offset >= ends[number]:
                    left.discard(number)
            if time.monotonic() > patience:
                raise NotTaken(
                    f"{self.address}: the end of the topic cannot be read: perhaps another "
                    "writer's transaction is open"
                )
        return numbers

    def _number_of(self, message: Any) -> set[int]:
        """The number of an answer of this output; none for other messages."""
        value = dict(message.headers() or ()).get(PLACE) or b""
        identity, _, number = value.decode("utf-8", "replace").rpartition(":")
        return {int(number)} if identity == self._identity and number.isdecimal() else set()

    def _note(self) -> None:
        self.note = {str(number): offset for number, offset in self._offsets.items()}

    # --- sending ----------------------------------------------------------------------------------

    def send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        fresh = [parcel for parcel in parcels if parcel.index not in self._there]
        try:
            refusals = self._sent(fresh) if fresh else []
        except self._kafka.KafkaException as error:
            raise self._failure(error.args[0]) from None
        self._note()
        return refusals

    def _sent(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        """Send answers in a transaction; if the server refuses one, each in a transaction."""
        local, refused = self._transact(parcels)
        if refused and len(parcels) > 1:
            return [refusal for parcel in parcels for refusal in self._sent([parcel])]
        return [*local, *refused]

    def _transact(self, parcels: Sequence[Parcel]) -> tuple[list[Refusal], list[Refusal]]:
        """Send answers in a transaction.

        Returns:
            The answers that the library refuses to send, and those that the server refuses. If the
            server refuses any, the topic gets nothing.
        """
        refused: list[Refusal] = []
        ends: dict[int, int] = {}

        def report(parcel: Parcel, error: Any, message: Any) -> None:
            if error is None:
                number, after = message.partition(), message.offset() + 1
                ends[number] = max(after, ends.get(number, 0))
            elif self._is_refusal(error):
                refused.append(self._refusal(parcel, error))

        self._producer.begin_transaction()
        local = [refusal for parcel in parcels for refusal in self._produce(parcel, report)]
        if self._producer.flush(_COMMIT_S):
            raise self._failure(self._kafka.KafkaError(self._kafka.KafkaError._TIMED_OUT))
        if refused:
            self._producer.abort_transaction(_COMMIT_S)
        else:
            self._producer.commit_transaction(_COMMIT_S)
            self._offsets.update(ends)
        return local, refused

    def _produce(self, parcel: Parcel, report: Callable[[Parcel, Any, Any], None]) -> list[Refusal]:
        """Hand an answer to the library; a refusal if it does not send it."""
        place = f"{self._identity}:{parcel.index}"
        headers = {"content-type": "application/json", ID: parcel.id, PLACE: place}
        given = {"key": parcel.query.encode(), "value": parcel.text.encode(), "headers": headers}

        def on_delivery(error: Any, message: Any) -> None:
            report(parcel, error, message)

        while True:
            try:
                self._producer.produce(self.address.path, on_delivery=on_delivery, **given)
                return []
            except BufferError:
                self._producer.poll(0.1)
            except self._kafka.KafkaException as error:
                if not self._is_refusal(error.args[0]):
                    raise
                return [self._refusal(parcel, error.args[0])]

    def _refusal(self, parcel: Parcel, error: Any) -> Refusal:
        return Refusal(parcel, f"{self.address}: {without_secrets(error.str(), self.address)}")

    def _is_refusal(self, error: Any) -> bool:
        codes = self._kafka.KafkaError
        refusals = (codes.MSG_SIZE_TOO_LARGE, codes.INVALID_RECORD, codes.POLICY_VIOLATION)
        return error.code() in refusals

    def close(self) -> None:
        self._producer = None
