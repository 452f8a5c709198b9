"""Lines of a log, about as many at a time as are parsed together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np

from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.limits import Limits
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.kernels import PAD
from spaseq.rdf.messages.message_lines import MessageText
from spaseq.rdf.messages.message_quads import TOGETHER_BYTES
from spaseq.records import record

_PADDING = b"\n" * PAD
_BOM = b"\xef\xbb\xbf"


@record
class LoggedLines:
    """n consecutive lines of a log. Each is a message; or all of them are one.

    Attributes:
        data: the bytes of the lines, and PAD line feeds.
        ends: [n] where each line ends, with its line feed.
        line: the number of the first, from 1.
        limits: what says which line is too long.
    """

    data: Bytes
    ends: Int64s
    line: int
    limits: Limits

    @classmethod
    def of(cls, text: bytearray, line: int, limits: Limits) -> LoggedLines:
        """The lines of a text; it becomes a part of them."""
        size = len(text)
        text += _PADDING
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data[:size] == _PADDING[0]) + 1
        if size and (not len(ends) or ends[-1] < size):
            ends = np.append(ends, size)
        return cls(data, ends, line, limits)

    @classmethod
    def one(cls, text: bytearray, line: int, limits: Limits) -> LoggedLines:
        """The lines of one message."""
        return cls(np.frombuffer(text + _PADDING, np.uint8), np.array([len(text)]), line, limits)

    def __len__(self) -> int:
        return len(self.ends)

    def text(self, first: int) -> bytearray:
        """The text of the messages from the given one on."""
        begin = int(self.ends[first - 1]) if first else 0
        return bytearray(self.data[begin : self.ends[-1]])

    def messages(self, first: int, end: int) -> list[MessageText]:
        """The messages first:end. Of one that is too long, there is only the begin."""
        begin = int(self.ends[first - 1]) if first else 0
        stops, most = self.ends[first:end].tolist(), self.limits.event_bytes
        collected = []
        for line, stop in enumerate(stops, self.line + first):
            text = self.data[begin : min(stop, begin + most + 1)].tobytes()
            begin = stop
            refusal = long_event(self.limits) if len(text) > most else None
            collected.append(MessageText(text, line, refusal))
        return collected


def logged_lines(data: IO[bytes], limits: Limits) -> Iterator[LoggedLines]:
    """The lines of a file. Of a line that is too long, only the begin and the end are kept."""
    line, rest, is_first = 1, b"", True
    while True:
        text = bytearray(rest)
        is_last = not _read(data, text, max(TOGETHER_BYTES, len(rest)))
        if is_first:
            text, is_first = text.removeprefix(_BOM), False
        end = len(text) if is_last else text.rfind(b"\n") + 1
        rest = bytes(text[end : end + limits.event_bytes + 1])
        del text[end:]
        if text:
            lines = LoggedLines.of(text, line, limits)
            line += len(lines)
            yield lines
        if is_last:
            return


def _read(data: IO[bytes], room: bytearray, size: int) -> bool:
    """Add bytes, fewer than `size` only at the end, and before an error, which is met again.

    Returns whether there were any.
    """
    begin, end = len(room), len(room) + size
    while len(room) < end:
        try:
            part: bytes = data.read1(end - len(room))  # type: ignore[attr-defined]
        except READ_ERRORS:
            if len(room) == begin:
                raise
            break
        if not part:
            break
        room += part
    return len(room) > begin
