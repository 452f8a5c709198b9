"""Server-sent events as a source: `sse+http[s]://[user:password@]host[:port]/path`.

Each event's data is a message, and the event's type is its topic (HTML standard, section 9.2). The
id of the last event is logged with its message. A connection that is made again, also by a later
run, begins with that `Last-Event-ID`.
"""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from spaseq import back_off
from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSource
from spaseq.connectors.reconnecting import (
    Reconnecting,
    basic_login,
    check_one_host,
    http_connection,
    offer,
)
from spaseq.errors import InputError
from spaseq.logs.messages import UNNUMBERED, Message

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """An event: its data, its type, and the last id that the stream has named so far."""

    data: bytes
    type: str
    id: str


class EventStreamParser:
    r"""Parses the bytes of a stream, however they are cut.

    Attributes:
        retry_ms: the server's pause before a reconnection; None if it has set none.

    >>> list(EventStreamParser().feed(b"id: 7\ndata: a\ndata: b\n\n"))
    [ServerSentEvent(data=b'a\nb', type='message', id='7')]
    """

    def __init__(self, last_id: str = "") -> None:
        self._id, self._type = last_id, ""
        self._data: list[bytes] = []
        self._rest: list[bytes] = []  # the line that is not complete yet, in parts
        self._after_return = False
        self._begins = True
        self.retry_ms: int | None = None
        self.waiting = 0
        """The bytes of the event that is not complete yet."""

    def feed(self, data: bytes) -> Iterator[ServerSentEvent]:
        """The events that the next bytes complete."""
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
            self._after_return = False
        if not data:
            return
        self._after_return = data.endswith(b"\r")
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest.append(lines[0])
        self.waiting += len(lines[0])
        for following in lines[1:]:
            line = b"".join(self._rest)
            self._rest = [following]
            self.waiting += len(following)
            yield from self._line(line)

    def _line(self, line: bytes) -> Iterator[ServerSentEvent]:
        """Take a complete line; an empty one ends an event."""
        if self._begins:
            line = line.removeprefix(_BOM)
            self._begins = False
        if not line:
            if self._data:
                yield ServerSentEvent(b"\n".join(self._data), self._type or "message", self._id)
            self._data, self._type = [], ""
            self.waiting = len(self._rest[0])
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._type = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit():
                self.retry_ms = int(value[:9])


_MARK = "Last-Event-ID"
_MEDIA_TYPE = "text/event-stream"
_LOOK_S = 0.1
_AT_ONCE = 2**16  # bytes
_MOST_BYTES = 256 * 2**20
"""The size of an event that ends the connection."""


class ServerSentEvents(MessageSource):
    """The events that a server sends."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        check_one_host(address)

    def read(self, intake: Intake) -> None:
        reading = _EventStreamReading(self.address, intake)
        reading.run(reading.once)


class _EventStreamReading(Reconnecting):
    """A source while it reads."""

    def __init__(self, address: Address, intake: Intake) -> None:
        super().__init__(address, intake, "HTTP server")
        self._last_id = intake.marks.get(_MARK, "")

    def once(self) -> None:
        """Read over one connection, until the intake stops or the connection is lost."""
        connection = http_connection(self._address.scheme, self._address.host)
        with closing(connection):
            try:
                self._ask(connection)
                sock = connection.sock  # the connection forgets it if the server will close it
                response = connection.getresponse()
            except http.client.HTTPException as error:
                raise ConnectionError(f"{type(error).__name__} {error}".strip()) from None
            with closing(response):
                self._check(response)
                self.connected()
                sock.settimeout(None)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                with self._ending_with_the_intake(sock):
                    self._pass_on(response)

    def _ask(self, connection: http.client.HTTPConnection) -> None:
        """Ask for the events behind the last one."""
        query = f"?{self._address.query}" if self._address.query else ""
        headers: dict[str, str | bytes] = {
            "Accept": _MEDIA_TYPE,
            "User-Agent": "spaseq",
            "Cache-Control": "no-cache",
        }
        if self._last_id:
            headers[_MARK] = self._last_id.encode()
        headers |= basic_login(self._address)
        connection.request("GET", f"/{self._address.raw_path}{query}", headers=headers)

    def _check(self, response: http.client.HTTPResponse) -> None:
        """InputError if the answer is no stream of events; ConnectionError if it may be later."""
        media = response.headers.get_content_type()
        if back_off.may_pass(response.status):
            raise ConnectionError(f"the server answers {response.status}")
        if response.status != 200 or media != _MEDIA_TYPE:
            what = f" with {media}" if response.status == 200 else ""
            raise InputError(
                f"{self._address}: the server answers {response.status}{what}; expected is 200 "
                f"with {_MEDIA_TYPE}"
            )

    @contextmanager
    def _ending_with_the_intake(self, sock: socket.socket) -> Iterator[None]:
        """Let reads return once the intake stops."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(_LOOK_S):
                if self._intake.stopped:
                    with suppress(OSError):
                        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # TLS stays readable
                    return

        watcher = threading.Thread(target=watch, name=f"end of {self._address}", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def _pass_on(self, response: http.client.HTTPResponse) -> None:
        """Offer events as they come."""
        parser = EventStreamParser(self._last_id)
        while not self._intake.stopped:
            try:
                data = response.read1(_AT_ONCE)
            except (http.client.HTTPException, ValueError) as error:
                raise ConnectionError(str(error)) from None
            if not data:
                raise ConnectionError("the server has closed the connection")
            events = list(parser.feed(data))
            if parser.waiting > _MOST_BYTES:
                raise ConnectionError(f"an event has more than {_MOST_BYTES} bytes")
            if parser.retry_ms is not None:
                self.first_pause_s = min(parser.retry_ms / 1000, back_off.MOST_PAUSE)
            if events:
                self.progressed()
                offer(self._intake, [self._message(event) for event in events])

    def _message(self, event: ServerSentEvent) -> Message:
        """The message of an event, with its id, if that has changed."""
        marks = ((_MARK, event.id),) if event.id != self._last_id else ()
        self._last_id = event.id
        return Message(event.data, 0, UNNUMBERED, topic=event.type, marks=marks)
