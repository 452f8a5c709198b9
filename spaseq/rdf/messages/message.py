"""A message of a file: its text, or why it cannot be read."""

from __future__ import annotations

from spaseq.records import record

SHOWN = 300
"""Bytes of a message in a report."""


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
