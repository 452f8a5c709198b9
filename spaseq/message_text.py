"""Text for people: control characters are escaped, and passwords in addresses are left out."""

from __future__ import annotations

import re

_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0, DEL and C1, but no tab and no line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, overrides and isolates of direction
    "\u2028\u2029\ud800-\udfff"  # other line ends, lone surrogates
)
_ESCAPED = re.compile(f"[{_CONTROLS}]")
_ESCAPED_IN_LINE = re.compile(f"[\t\n{_CONTROLS}]")
_USER = re.compile(r"(https?://)[^\s/?#<>\"']*@", re.IGNORECASE)
_USER_OF_ADDRESS = re.compile(r"^(https?://).*@", re.IGNORECASE | re.DOTALL)


def visible(text: str) -> str:
    r"""The text with all control characters escaped, except tabs and line feeds.

    A terminal obeys such characters: it would recolour, overwrite or reorder what people read.

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


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04X}"


def without_passwords(text: str) -> str:
    """The text, in which addresses have no user name and no password.

    >>> without_passwords("SERVICE <http://me:secret@example.org/sparql>")
    'SERVICE <http://***@example.org/sparql>'
    """
    return _USER.sub(r"\1***@", text)


def public_address(url: str) -> str:
    """An address for messages: without a user name, a password and the values of its query.

    >>> public_address("https://me:secret@example.org/sparql?token=1234")
    'https://***@example.org/sparql?***'
    """
    place, mark, _ = _USER_OF_ADDRESS.sub(r"\1***@", url).partition("?")
    return f"{place}?***" if mark else place
