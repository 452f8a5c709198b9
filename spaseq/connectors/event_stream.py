"""The parser of `text/event-stream` (HTML standard, section 9.2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """An event: its data, its type, and the last id that the stream has named so far."""

    data: bytes
    type: str
    id: str


class EventStreamParser:
    r"""Makes events of the bytes of a stream, however they are cut.

    Attributes:
        retry_ms: how long the server wants clients to wait before they connect again; None if it
            has not said.

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
