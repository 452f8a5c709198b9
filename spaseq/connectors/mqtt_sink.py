"""MQTT as an output: `mqtt[s]://[user:password@]host[:port]/topic[?version=5]`.

Each answer is a message with QoS 1, so the broker gets it at least once. In MQTT 5 its id is the
user property `id`. Answers that the broker refuses by its acknowledgement are refused for good.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from spaseq.connectors.address import Address
from spaseq.connectors.base import MessageSink, NotTaken, Parcel, Refusal
from spaseq.connectors.mqtt_connection import ConnectionRefused, MqttConnection, check_address
from spaseq.errors import UsageError

_TIMEOUT_S = 10.0  # without an acknowledgement
_WAIT_S = 0.2
_MOST_OPEN = 1000  # messages that wait for their acknowledgements
_HEAD = 1024  # bytes of a packet besides its topic and its answer, at most
_MOST_BYTES = 268_435_455 - _HEAD
_QUOTA_EXCEEDED = 0x97
"""The reason code of an acknowledgement that says: later."""

_COMPLAINTS = frozenset({"Malformed packet", "Protocol error", "Packet too large"})
"""The broker's reasons for closing a connection because of a message."""


class MqttSink(MessageSink):
    """A topic that gets each answer at least once."""

    extra = "mqtt"

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        check_address(address, "client")
        if "+" in address.path or "#" in address.path:
            raise UsageError(f"{address}: answers go to one topic, without + and #")
        self._identity = ""
        self._link: MqttConnection | None = None
        self._was_connected = False
        self._open: dict[int, Parcel] = {}  # answers without an acknowledgement, by packet
        self._refusals: list[Refusal] = []
        self._is_full = False

    def resume(self, identity: str, note: Mapping[str, Any]) -> None:
        self._identity = identity

    def send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        while True:
            is_kept = self._link is not None  # perhaps lost since the last answers
            try:
                return self._send(self._link or self._connected(), parcels)
            except OSError as error:
                self.close()
                if not is_kept and str(error) in _COMPLAINTS:
                    return self._sent_singly(parcels, str(error))
                if not is_kept:
                    raise self._away(error) from error
            except NotTaken:
                self.close()
                raise

    def _sent_singly(self, parcels: Sequence[Parcel], complaint: str) -> list[Refusal]:
        """Send answers one by one, because the broker closes the connection at one of them."""
        if len(parcels) > 1:
            return [refusal for parcel in parcels for refusal in self.send([parcel])]
        said = f"{self.address}: the broker closes the connection: {complaint}"
        return [Refusal(parcels[0], said)]

    def _connected(self) -> MqttConnection:
        """A new connection.

        Raises:
            ConnectionRefused: the broker does not let the client in, and never has.
        """
        name = self.address.parameters.get("client") or self._identity
        self._link = link = MqttConnection(self.address, name)
        link.client.max_inflight_messages_set(_MOST_OPEN)
        link.client.on_publish = self._on_acknowledgement
        try:
            link.open()
        except ConnectionRefused as error:
            if self._was_connected:
                raise NotTaken(str(error)) from error
            self.close()
            raise
        self._was_connected = True
        return link

    def _away(self, error: OSError) -> NotTaken:
        reason = str(error) or type(error).__name__
        return NotTaken(
            f"{self.address}: no MQTT broker answers at {self.address.host} ({reason}): check the "
            "host and the port, and that the broker runs"
        )

    def _send(self, link: MqttConnection, parcels: Sequence[Parcel]) -> list[Refusal]:
        """Send answers over a connection; OSError if it is lost."""
        self._open, self._refusals, self._is_full = {}, [], False
        most = getattr(link.limits, "MaximumPacketSize", _MOST_BYTES + _HEAD) - _HEAD
        room = min(getattr(link.limits, "ReceiveMaximum", _MOST_OPEN), _MOST_OPEN)
        link.step(0)
        for parcel in parcels:
            self._wait(link, room)
            data = parcel.text.encode()
            if len(data) + len(self.address.path.encode()) > most:
                self._refuse(parcel, f"the broker takes packets of at most {most + _HEAD} bytes")
                continue
            told = self._properties(parcel) if link.is_version_5 else None
            sent = link.client.publish(self.address.path, data, 1, properties=told)
            self._open[sent.mid] = parcel
            link.step(0)
        self._wait(link, 1)
        if self._is_full:
            raise NotTaken(f"{self.address}: the broker says that a quota is exceeded")
        return self._refusals

    def _wait(self, link: MqttConnection, room: int) -> None:
        """Wait until fewer answers than `room` lack acknowledgements.

        Raises:
            OSError: the connection is lost, or nothing is acknowledged for a while.
        """
        left, end = len(self._open), time.monotonic() + _TIMEOUT_S
        while len(self._open) >= room:
            link.step(_WAIT_S)
            if len(self._open) < left:
                left, end = len(self._open), time.monotonic() + _TIMEOUT_S
            elif time.monotonic() > end:
                raise OSError("no acknowledgement")

    def _properties(self, parcel: Parcel) -> Any:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.PUBLISH)
        properties.ContentType = "application/json"
        properties.UserProperty = ("id", parcel.id)
        return properties

    def _on_acknowledgement(self, _: Any, __: Any, packet: int, code: Any, ___: Any) -> None:
        parcel = self._open.pop(packet, None)
        if parcel is None or not code.is_failure:
            return
        if code.value == _QUOTA_EXCEEDED:
            self._is_full = True
        else:
            self._refuse(parcel, f"the broker says: {code}")

    def _refuse(self, parcel: Parcel, reason: str) -> None:
        self._refusals.append(Refusal(parcel, f"{self.address}: {reason}"))

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
