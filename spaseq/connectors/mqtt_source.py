"""MQTT as a source: `mqtt[s]://[user:password@]host[:port]/topic/filter[?qos=1&version=5]`.

MQTT has no offsets. The broker keeps a session for the client, whose name never changes, and a
message is acknowledged once it is in the log on disk. So no message with QoS 1 is lost. After a
crash the broker sends the messages again that were not acknowledged; some of them may be in the
log. While the source runs, it recognises repeated messages, and drops them.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from typing import Any

from spaseq.connectors.address import Address
from spaseq.connectors.base import HEADER, Intake, MessageSource, media_of
from spaseq.connectors.mqtt_connection import MqttConnection, check_address
from spaseq.connectors.reconnecting import Reconnecting
from spaseq.errors import InputError, UsageError
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.rdf.inputs.formats import CLOUD_EVENT, cloud_event

_WAIT_S = 0.2
_TIMEOUT_S = 5.0
_ROOM_S = 0.01  # before messages are offered again
_MOST_WAITING = 4096  # messages with QoS 0 that wait before no more are read
_GRANTED = "granted"
_ENVELOPE = frozenset(("specversion", "id", "source", "type"))  # of a CloudEvent in binary mode


class MqttSource(MessageSource):
    """The messages of the topics that match a filter."""

    extra = "mqtt"

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        check_address(address, "qos", "client")
        if address.parameters.get("qos", "1") not in ("0", "1"):
            raise UsageError(
                f"{address}: qos is 0 or 1; with 2 a crash would lose what the broker has handed "
                "over and the log does not have"
            )
        levels = address.path.split("/")
        for number, level in enumerate(levels, 1):
            if "#" in level and (level != "#" or number < len(levels)):
                raise UsageError(f"{address}: # stands alone, as the last level of a topic filter")
            if "+" in level and level != "+":
                raise UsageError(f"{address}: + stands alone, as a level of a topic filter")

    def read(self, intake: Intake) -> None:
        reading = _MqttReading(self.address, intake)
        try:
            reading.run(reading.once)
        finally:
            reading.close()


class _MqttReading(Reconnecting):
    """A source while it reads.

    Messages are numbered in the order in which they are offered. `_open` has the number and the
    packet id of each message that is not acknowledged. `_known` has, by packet id, the digest and
    the number of the last message with it, so that one that comes again is recognized.
    """

    def __init__(self, address: Address, intake: Intake) -> None:
        super().__init__(address, intake, "MQTT broker")
        given = address.parameters
        self._qos = int(given.get("qos", "1"))
        self._link = MqttConnection(address, given.get("client") or _name(address, intake), True)
        self._link.client.on_message = self._take_message
        self._link.client.on_subscribe = self._on_subscribe
        self._waiting: list[Message] = []
        self._count = self._committed = 0
        self._open: deque[tuple[int, int]] = deque()
        self._known: dict[int, tuple[bytes, int]] = {}
        self._answer = ""  # to the subscription
        self._subscribed = False  # whether this process has subscribed to the topics
        intake.tell_committed(self._on_commit)

    def once(self) -> None:
        """Read over one connection, until the intake stops or the connection is lost."""
        kept = self._link.open()
        self._open.clear()
        if not kept:
            if self._subscribed:
                self._intake.note(
                    f"{self._address}: the broker has forgotten the session, and perhaps messages"
                )
            self._known.clear()
        if not kept or not self._subscribed or self._link.is_version_5:
            self._subscribe()
        self.connected()
        while not self._intake.stopped:
            self._pass_on()
            self._acknowledge()
        self._acknowledge()

    def _subscribe(self) -> None:
        """Ask for the topics.

        Raises:
            ConnectionError: the broker does not answer.
            InputError: it refuses.
        """
        self._answer = ""
        if self._link.is_version_5:
            from paho.mqtt.subscribeoptions import SubscribeOptions

            only_new = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
            how = SubscribeOptions(self._qos, retainHandling=only_new)
            self._link.client.subscribe(self._address.path, options=how)
        else:
            self._link.client.subscribe(self._address.path, self._qos)
        end = time.monotonic() + _TIMEOUT_S
        while not self._answer:
            self._link.step(_WAIT_S)
            if time.monotonic() > end:
                raise ConnectionError("the broker does not answer the subscription")
        if self._answer != _GRANTED:
            raise InputError(f"{self._address}: the broker refuses the topic: {self._answer}")
        self._subscribed = True

    def _on_subscribe(self, _: Any, __: Any, ___: Any, codes: Any, ____: Any) -> None:
        self._answer = str(codes[0]) if codes[0].is_failure else _GRANTED

    def _take_message(self, _: Any, __: Any, published: Any) -> None:
        """Take a message from the connection."""
        if published.qos:
            digest = hashlib.sha256(published.topic.encode())
            digest.update(published.payload)
            known = self._known.get(published.mid)
            if published.dup and known is not None and known[0] == digest.digest():
                self._open.append((known[1], published.mid))
                return
            self._known[published.mid] = digest.digest(), self._count + 1
            self._open.append((self._count + 1, published.mid))
        self._count += 1
        media = getattr(published.properties, "ContentType", "") if published.properties else ""
        given = getattr(published.properties, "UserProperty", ()) if published.properties else ()
        named, payload = dict(given), bytes(published.payload)
        if named.keys() >= _ENVELOPE:
            media, payload = CLOUD_EVENT, cloud_event(named, media, payload)
        media = media_of(named.get(HEADER), payload, media)
        message = Message(payload, 0, UNNUMBERED, media, topic=published.topic)
        self._waiting.append(message)

    def _pass_on(self) -> None:
        """Step the connection, and offer its messages."""
        self._link.step(_ROOM_S if self._waiting else _WAIT_S, len(self._waiting) < _MOST_WAITING)
        if self._waiting and self._intake.offer(self._waiting):
            self._waiting = []
            self.progressed()

    def _on_commit(self, count: int) -> None:
        self._committed = count
        self._link.wake()

    def _acknowledge(self) -> None:
        """Tell the broker which messages are in the log on disk."""
        while self._open and self._open[0][0] <= self._committed:
            self._link.client.ack(self._open.popleft()[1], 1)

    def close(self) -> None:
        """End the connection; the session stays."""
        self._link.close()


def _name(address: Address, intake: Intake) -> str:
    """The name of the client: another one for each log and each filter."""
    digest = hashlib.sha256(f"{intake.identity()} {address.path}".encode()).hexdigest()
    return f"spaseq-{digest[:16]}"  # 23 characters, as any broker must allow
