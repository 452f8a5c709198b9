"""Text for people: control characters are escaped, and passwords in addresses are left out.

Texts of queries, events, endpoints and file names can hold characters that a terminal obeys.
"""

from __future__ import annotations

import io
import logging
import re
from typing import TextIO

_CONTROLS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0, DEL and C1, but no tab and no line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, overrides and isolates of direction
    "\u2028\u2029\ud800-\udfff"  # other line ends, lone surrogates
)
_ESCAPED = re.compile(f"[{_CONTROLS}]|\r(?!\n)")
_ESCAPED_IN_LINE = re.compile(f"[\t\n\r{_CONTROLS}]")
_USER = re.compile(r"((?<=[a-z0-9+.-])://)[^\s/?#<>\"']*@", re.IGNORECASE)
_USER_OF_ADDRESS = re.compile(r"^([a-z][a-z0-9+.-]*://).*@", re.IGNORECASE | re.DOTALL)


def visible(text: str) -> str:
    r"""The text with all control characters escaped, except tabs and line ends.

    >>> print(visible("red: \x1b[31m"))
    red: \u001B[31m
    """
    return _ESCAPED.sub(_escape, text)


def one_line(text: str) -> str:
    r"""The text with all control characters escaped, so that it cannot forge a further line.

    >>> print(one_line("a.nq\nspaseq: done"))
    a.nq\u000Aspaseq: done
    """
    return _ESCAPED_IN_LINE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04X}"


def without_passwords(text: str) -> str:
    """The text, as long as before, with asterisks for user names and passwords in addresses.

    >>> without_passwords("SERVICE <http://me:secret@example.org/sparql>")
    'SERVICE <http://*********@example.org/sparql>'
    """
    return _USER.sub(lambda match: match[1] + "*" * (len(match[0]) - len(match[1]) - 1) + "@", text)


def public_address(url: str) -> str:
    """An address for messages: without a user name, a password and the values of its query.

    >>> public_address("https://me:secret@example.org/sparql?token=1234")
    'https://***@example.org/sparql?***'
    """
    address, mark, _ = _USER_OF_ADDRESS.sub(r"\1***@", url).partition("?")
    return f"{address}?***" if mark else address


class EscapedStream(io.TextIOBase):
    """A text stream that people read: it escapes control characters and removes passwords.

    `plain` is the stream behind it.
    """

    def __init__(self, plain: TextIO) -> None:
        self.plain = plain

    def write(self, text: str) -> int:
        self.plain.write(visible(without_passwords(text)))
        return len(text)

    def flush(self) -> None:
        self.plain.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.plain.isatty()

    def fileno(self) -> int:
        return self.plain.fileno()


def unescaped(stream: TextIO) -> TextIO:
    """The stream behind an `EscapedStream`; any other stream itself."""
    return stream.plain if isinstance(stream, EscapedStream) else stream


def _one_line_record(record: logging.LogRecord) -> bool:
    """Make the message of a log record one line."""
    record.msg, record.args = one_line(without_passwords(record.getMessage())), ()
    return True


logging.getLogger("spaseq").addFilter(_one_line_record)
