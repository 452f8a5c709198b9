"""A connection to an MQTT broker: `mqtt[s]://[user:password@]host[:port]/...`.

The caller drives it, step by step, in one thread. So nothing is acknowledged or read behind its
back.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from select import select
from typing import Any

from spaseq.connectors.address import Address
from spaseq.errors import InputError, UsageError

CONNECTION_PARAMETERS = ("version", "ca", "cert", "key")
"""The parameters of a URL that say how to connect."""

_TIMEOUT_S = 5.0
_KEEP_ALIVE_S = 30
_FOR_EVER = 2**32 - 1  # the session expiry interval that is none
_MOST_WAITING = 1000  # messages that the broker sends before the first one is acknowledged


class ConnectionRefused(InputError):
    """The broker does not let this client in."""


class MqttConnection:
    """A client of a broker, which is connected by `open` and does its work in `step`.

    Args:
        address: the address of the broker.
        client_id: the client's name; "" lets the broker choose one.
        keeps_session: the broker keeps subscriptions and messages for the client while it is away.

    Attributes:
        client: the client of paho-mqtt, for its callbacks and for sending. Messages are
            acknowledged by `client.ack` only.
        limits: the broker's properties from the connection, such as `MaximumPacketSize`.
    """

    def __init__(self, address: Address, client_id: str, keeps_session: bool = False) -> None:
        from paho.mqtt import client as mqtt

        self._address, self._keeps_session = address, keeps_session
        self.is_version_5 = version_of(address) == 5
        clean = {} if self.is_version_5 else {"clean_session": not keeps_session}
        self.client: Any = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id,
            protocol=mqtt.MQTTv5 if self.is_version_5 else mqtt.MQTTv311,
            manual_ack=True,
            reconnect_on_failure=False,
            **clean,
        )
        self.client.connect_timeout = _TIMEOUT_S
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        if address.user:
            self.client.username_pw_set(address.user, address.password)
        if address.scheme == "mqtts":
            self._use_tls()
        self.limits: Any = None
        self._answer: Any = None  # (reason code, whether the broker knows the session)
        self._lost = ""  # why the connection has ended
        self._wakes, self._wake = socket.socketpair()
        self._wakes.setblocking(False)
        self._wake.setblocking(False)

    def _use_tls(self) -> None:
        given = self._address.parameters
        try:
            self.client.tls_set(given.get("ca"), given.get("cert"), given.get("key"))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{self._address}: ca, cert or key: {reason}") from None

    def open(self) -> bool:
        """Connect; whether the broker has kept a session of the client.

        Raises:
            ConnectionRefused: the broker does not let the client in.
            OSError: it cannot be reached, or does not answer.
        """
        host, port = host_and_port(self._address)
        self._answer, self._lost = None, ""
        given: dict[str, Any] = {}
        if self.is_version_5:
            given = {"clean_start": not self._keeps_session, "properties": self._properties()}
        try:
            self.client.connect(host, port, _KEEP_ALIVE_S, **given)
        except ValueError as error:  # paho's word for a host that is no name
            raise OSError(str(error)) from None
        for _ in range(int(_TIMEOUT_S / 0.1)):
            with suppress(ConnectionError):  # a refusal ends the connection
                self.step(0.1)
            if self._answer is not None:
                code, known = self._answer
                if code.is_failure:
                    raise ConnectionRefused(f"{self._address}: {self._refusal(str(code))}")
                return bool(known)
            if self._lost:
                raise OSError(self._lost)
        raise OSError("no answer")

    def _properties(self) -> Any:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.CONNECT)
        if self._keeps_session:
            properties.SessionExpiryInterval = _FOR_EVER
        properties.ReceiveMaximum = _MOST_WAITING
        return properties

    def _refusal(self, said: str) -> str:
        if "protocol" in said.lower():
            return f"the broker says: {said}; for an older broker add version=3.1.1 to the URL"
        return (
            f"the broker refuses this client: {said}; the user and the password stand in the URL, "
            f"{self._address.scheme}://USER:PASSWORD@HOST/..."
        )

    def step(self, seconds: float, reads: bool = True) -> None:
        """Wait at most some seconds for work, and do it.

        Args:
            seconds: 0 does not wait.
            reads: if False, messages of the broker wait in the network.

        Raises:
            ConnectionError: the connection is lost.
        """
        client, sock = self.client, self.client.socket()
        if sock is not None:
            pending = reads and getattr(sock, "pending", lambda: 0)() > 0
            readers = [sock, self._wakes] if reads else [self._wakes]
            writers = [sock] if client.want_write() else []
            ready = select(readers, writers, [], 0.0 if pending else seconds)
            if self._wakes in ready[0]:
                with suppress(BlockingIOError):
                    self._wakes.recv(4096)
            if sock in ready[0] or pending:
                client.loop_read()
            if client.want_write():
                client.loop_write()
            client.loop_misc()
        if client.socket() is None:
            raise ConnectionError(self._lost or "the connection is closed")

    def wake(self) -> None:
        """Let `step` return; any thread may call this."""
        with suppress(BlockingIOError, OSError):
            self._wake.send(b"w")

    def close(self) -> None:
        """End the connection after sending waiting messages; a kept session stays."""
        if self.client.socket() is not None:
            self.client.disconnect()
            for _ in range(20):
                with suppress(OSError):
                    self.step(0.05)
                if self.client.socket() is None:
                    break
        self._wakes.close()
        self._wake.close()

    def _on_connect(self, _: Any, __: Any, flags: Any, code: Any, limits: Any) -> None:
        self.limits = limits
        self._answer = code, flags.session_present

    def _on_disconnect(self, _: Any, __: Any, ___: Any, code: Any, ____: Any) -> None:
        self._lost = str(code)


def host_and_port(address: Address) -> tuple[str, int]:
    """The host and port of the broker: by default port 1883, or 8883 with TLS."""
    host, mark, port = address.host.rpartition(":")
    if not mark or port.endswith("]"):
        host, port = address.host, "8883" if address.scheme == "mqtts" else "1883"
    return host.strip("[]"), int(port)


def version_of(address: Address) -> int:
    """The version of MQTT in a URL, 5 or 3; UsageError if it is another one."""
    text = address.parameters.get("version", "5")
    if text not in ("5", "3.1.1"):
        raise UsageError(f"{address}: version is 5 or 3.1.1")
    return 5 if text == "5" else 3


def check_address(address: Address, *more: str) -> None:
    """UsageError if an address has no topic, several hosts, or unknown parameters.

    `more` has the parameters that do not concern the connection.
    """
    address.check_parameters((*more, *CONNECTION_PARAMETERS))
    version_of(address)
    if not address.path:
        raise UsageError(f"{address}: give a topic, {address.scheme}://HOST/TOPIC")
    if "," in address.host:
        raise UsageError(f"{address}: give one host")
    if "\0" in address.path:
        raise UsageError(f"{address}: a topic has no null character")
    tls = [name for name in ("ca", "cert", "key") if name in address.parameters]
    if tls and address.scheme != "mqtts":
        raise UsageError(f"{address}: {tls[0]} goes with mqtts://")
