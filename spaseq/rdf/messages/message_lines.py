"""Messages as text: in their format, and as the N-Quads of a parser."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from uuid import uuid4

import pyoxigraph as ox

from spaseq.limits import Limits
from spaseq.rdf.inputs.sizes import long_event
from spaseq.records import record

Report = Callable[[int | None, str, str], None]
"""Called with the line of bad input (None if unknown), the reason, and its text."""

SHOWN = 300
"""Bytes of a message in a report."""

MARK = f"u{uuid4().hex}:mark"  # no input can know it, and no context have its prefix
MARKED = f'<{MARK}> <{MARK}> "" .\n'.encode()
"""The line between two messages."""


@record
class MessageText:
    """One message as bytes. `line` is the line, from 1, at which `text` begins.

    `refusal` is the reason why it is bad input, where that is known before it is parsed.
    """

    text: bytes
    line: int
    refusal: str | None = None

    @property
    def first_line(self) -> int:
        """The line of the first character that is no white space."""
        space = len(self.text) - len(self.text.lstrip())
        return self.line + self.text.count(b"\n", 0, space)

    @property
    def shown(self) -> str:
        """The begin of the message, for a report."""
        return self.text.strip()[:SHOWN].decode(errors="replace")


@record
class MessageLines:
    """The quads of consecutive messages as N-Quads, with MARKED between two messages.

    A triple whose object is the literal MARK names, by its subject, the event of a message without
    a named graph. `lines` are the lines where the messages begin, from 1.
    """

    text: bytes
    lines: Sequence[int]


def joined(parts: Sequence[MessageLines]) -> MessageLines:
    """Consecutive messages together."""
    if len(parts) == 1:
        return parts[0]
    lines = [line for part in parts for line in part.lines]
    return MessageLines(MARKED.join(part.text for part in parts), lines)


def lines_of(quads: Iterable[tuple[str, str, str, str | None]]) -> bytes:
    """The N-Quads of quads of canonical texts; the name of the default graph is None."""
    return "".join(
        f"{s} {p} {o} .\n" if g is None else f"{s} {p} {o} {g} .\n" for s, p, o, g in quads
    ).encode()


class WrittenQuads(io.BytesIO):
    """The quads of some messages as N-Quads text, which a parser's quads become."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits

    def write(self, part: bytes) -> int:  # type: ignore[override]
        """Add text; ValueError if it is larger than an event may be."""
        count = super().write(part)
        if self.tell() > self._limits.event_bytes:
            raise ValueError(long_event(self._limits))
        return count

    def take(self, quads: Iterable[ox.Quad]) -> bytes:
        """All text, with these quads.

        Raises:
            PARSER_ERRORS: from the parser of the quads.
        """
        ox.serialize(quads, self, ox.RdfFormat.N_QUADS)
        return self.getvalue()
