"""Connections that last: notes and pauses of reconnecting sources, and outputs with asynchronous
libraries.

Such an output has an event loop and keeps a connection.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spaseq.back_off import BackOff
from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSink, Parcel, Refusal
from spaseq.errors import InputError, SpaseqError, UsageError
from spaseq.logs.messages import Message

if TYPE_CHECKING:
    from http.client import HTTPConnection

_LOOK_S = 0.1
_ROOM_S = 0.01  # before messages are offered again


class Reconnecting:
    """Reads over one connection after the other.

    Args:
        address: of the source.
        intake: where its messages go; it hears when the connection is lost, and when it is back.
        server: the kind of server, for messages.
    """

    def __init__(self, address: Address, intake: Intake, server: str) -> None:
        self._address, self._intake, self._server = address, intake, server
        self._was_connected = self._is_lost = False
        self._back_off = BackOff()
        self.first_pause_s = 0.0

    def run(self, once: Callable[[], None]) -> None:
        """Read until the intake stops.

        Args:
            once: reads over one connection until the intake stops or the connection is lost, which
                is an OSError. It calls `connected`, and `progressed` when it has read something.

        Raises:
            InputError: the server cannot be reached, or refuses the client, at the start.
        """
        while not self._intake.stopped:
            try:
                once()
            except (InputError, OSError) as error:
                if self._intake.stopped:
                    return
                self._take(error)
                end = time.monotonic() + max(self._back_off.failed(), self.first_pause_s)
                while time.monotonic() < end and not self._intake.stopped:
                    time.sleep(_LOOK_S)

    def _take(self, error: InputError | OSError) -> None:
        """Tell that the connection is lost, unless it has not been there yet."""
        reason = str(error) or type(error).__name__
        if not self._was_connected and isinstance(error, InputError):
            raise error
        if not self._was_connected:
            raise InputError(
                f"{self._address}: no {self._server} answers at {self._address.host} ({reason}): "
                "check the host and the port, and that the server runs"
            ) from error
        if not self._is_lost:
            self._is_lost = True
            self._intake.lost()
        elif isinstance(error, InputError) and self._back_off.failures == 1:
            self._intake.note(reason)

    def connected(self) -> None:
        """Take note that there is a connection."""
        self._was_connected, self._is_lost = True, False
        self._intake.connected()

    def progressed(self) -> None:
        """Record that the connection has brought messages."""
        self._back_off.succeeded()


def offer(intake: Intake, messages: Sequence[Message]) -> None:
    """Give messages to an intake; wait while it has no room. If it stops, they are given up."""
    while not intake.offer(messages) and not intake.stopped:
        time.sleep(_ROOM_S)


def check_one_host(address: Address) -> None:
    """UsageError if an address names several hosts."""
    if "," in address.host:
        raise UsageError(f"{address}: give one host")


_HTTP_TIMEOUT_S = 10.0  # for an HTTP server to answer


def http_connection(scheme: str, host: str) -> HTTPConnection:
    """A connection to a host, perhaps with its port, that is not made yet.

    Args:
        scheme: one that ends in `https` or in `http`.
        host: the host.
    """
    from http.client import HTTPConnection, HTTPSConnection  # only some connectors need it

    if not scheme.endswith("https"):
        return HTTPConnection(host, timeout=_HTTP_TIMEOUT_S)
    context = ssl.create_default_context()
    return HTTPSConnection(host, timeout=_HTTP_TIMEOUT_S, context=context)


def basic_login(address: Address) -> dict[str, str]:
    """The headers of a request for basic authorization."""
    if not address.user:
        return {}
    pair = f"{address.user}:{address.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


class AsyncSink(MessageSink):
    """An output whose `send` runs in an event loop. After a failure it reconnects."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Any = None

    def send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        try:
            return self._loop.run_until_complete(self._send(parcels))
        except SpaseqError:
            self.close()
            raise

    @abstractmethod
    async def _send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        """Send answers over `_connection`, which it makes if there is none, as `send` does."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close `_connection`, which may be closed already."""

    def close(self) -> None:
        if self._loop is not None:
            if self._connection is not None:
                self._loop.run_until_complete(self._disconnect())
            self._loop.close()
        self._loop = self._connection = None
