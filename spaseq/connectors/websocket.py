"""WebSocket as a source: `ws[s]://[user:password@]host[:port]/path`.

Each text or binary message that the server sends is a message. There are no offsets: messages that
the server sends while the source is not connected are lost, unless the server repeats them.
"""

from __future__ import annotations

from typing import Any

from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSource
from spaseq.connectors.reconnecting import Reconnecting, basic_login, check_one_host, offer
from spaseq.errors import InputError
from spaseq.logs.messages import UNNUMBERED, Message

_TOGETHER = 1000  # messages that are offered at once
_WAIT_S = 0.1
_TIMEOUT_S = 5.0
_MOST_BYTES = 256 * 2**20
"""The size of a message that ends the connection."""


class WebSocketSource(MessageSource):
    """The messages that a server sends."""

    extra = "ws"

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        check_one_host(address)

    def read(self, intake: Intake) -> None:
        reading = _WebSocketReading(self.address, intake)
        reading.run(reading.once)


class _WebSocketReading(Reconnecting):
    """A source while it reads."""

    def __init__(self, address: Address, intake: Intake) -> None:
        super().__init__(address, intake, "WebSocket server")
        query = f"?{address.query}" if address.query else ""
        self._url = f"{address.scheme}://{address.host}/{address.raw_path}{query}"

    def once(self) -> None:
        """Read over one connection, until the intake stops or the connection is lost."""
        from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
        from websockets.sync.client import connect

        try:
            connection = connect(
                self._url,
                open_timeout=_TIMEOUT_S,
                close_timeout=1.0,
                max_size=_MOST_BYTES,
                additional_headers=basic_login(self._address),
            )
        except InvalidStatus as error:
            status = error.response.status_code
            raise InputError(f"{self._address}: the server answers {status}") from None
        except InvalidHandshake as error:
            raise InputError(f"{self._address}: no WebSocket server: {error}") from None
        with connection:
            self.connected()
            try:
                while not self._intake.stopped:
                    self._pass_on(connection)
            except ConnectionClosed as error:
                raise ConnectionError(str(error)) from None

    def _pass_on(self, connection: Any) -> None:
        """Offer the messages that have come."""
        from websockets.exceptions import ConnectionClosed

        messages: list[Message] = []
        try:
            while len(messages) < _TOGETHER:
                messages.append(_message(connection.recv(timeout=0 if messages else _WAIT_S)))
        except TimeoutError:
            pass
        except ConnectionClosed:
            if not messages:
                raise
        if messages:
            self.progressed()
            offer(self._intake, messages)


def _message(payload: str | bytes) -> Message:
    return Message(payload.encode() if isinstance(payload, str) else payload, 0, UNNUMBERED)
