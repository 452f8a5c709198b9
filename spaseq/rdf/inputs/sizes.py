"""Checks of limits on lines, literals, events and nesting; a result is the reason for a report."""

from __future__ import annotations

import re

from spaseq.limits import Limits
from spaseq.text_patterns import possessive

# Literals, IRIs and comments may contain the signs. All quantifiers are possessive: the scan is
# linear in the length of the text.
_TOKEN = possessive(rb'"(?:[^"\\\r\n]++|\\.)*+"|<(?!<)[^<>"\x00-\x20]*+>|#[^\r\n]*+|(<<)|(>>)')


def nested_too_deep(text: bytes | str, most: int) -> str | None:
    """The reason to refuse N-Triples or N-Quads text whose triple terms are nested too deep.

    None if they are nested at most `most` deep. Text with few signs `<<` is not scanned.

    >>> nested_too_deep(b'<a:s> <a:p> <<( <a:s> <a:p> <<( <a:s> <a:p> "<<" )>> )>> .', 1)
    'triple terms are nested more than 1 deep'
    >>> nested_too_deep(b'<a:s> <a:p> <<( <a:s> <a:p> <<( <a:s> <a:p> "<<" )>> )>> .', 2)
    """
    if isinstance(text, str):
        return None if text.count("<<") <= most else nested_too_deep(text.encode(), most)
    if text.count(b"<<") <= most:
        return None
    depth = 0
    for token in _TOKEN.finditer(text):
        if token.group(1) is not None:
            depth += 1
            if depth > most:
                return f"triple terms are nested more than {most} deep"
        elif token.group(2) is not None:
            depth = max(depth - 1, 0)
    return None


PARSED_BYTES = 1 << 24
"""pyoxigraph reads no longer line; the kernel reads longer ones, if they are not unusual."""

UNREADABLY_LONG = "a line over 16 MiB that is malformed, or unusual and so not read"

UNREADABLE_TOKEN = "a literal, name or comment over 16 MiB, which is not read (--max-literal)"

_LITERAL = possessive(rb'"((?:[^"\\]++|\\.)*+)"')
_ESCAPE = re.compile(rb"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")


def long_line(size: int, limits: Limits) -> str | None:
    """The reason to refuse a line of `size` bytes; None if it is not too long."""
    if size <= limits.line_bytes:
        return None
    return f"a line of {size} bytes; the limit is {limits.line_bytes} (--max-line)"


def long_literal(size: int, limits: Limits) -> str | None:
    """The reason to refuse a literal of `size` bytes; None if it is not too long."""
    if size <= limits.literal_bytes:
        return None
    return f"a literal of {size} bytes; the limit is {limits.literal_bytes} (--max-literal)"


def long_event(limits: Limits) -> str:
    """The reason to refuse an event that exceeds its limit; its end is unknown."""
    return f"an event of more than {limits.event_bytes} bytes, the limit (--max-event)"


def unended_event(limits: Limits) -> str:
    """The reason to refuse text that is too long without an event."""
    return f"no event ends within {limits.event_bytes} bytes, the limit (--max-event)"


def many_values(most: int) -> str:
    """The reason to refuse an object or element that a parser would have to keep whole."""
    return f"more than {most} values before the object or element ends (--max-event)"


def line_excess(line: bytes, limits: Limits) -> str | None:
    """The reason to refuse a well-formed line of N-Triples or N-Quads; None if no limit does.

    >>> line_excess(b'<a:s> <a:p> "abc" .', Limits(literal_bytes=2))
    'a literal of 3 bytes; the limit is 2 (--max-literal)'
    """
    if len(line) <= min(limits.line_bytes, limits.literal_bytes):
        return None
    return long_line(len(line), limits) or long_literal(literal_size(line), limits)


def literal_size(line: bytes) -> int:
    """The bytes of the longest literal in well-formed text; 0 if there is none."""
    texts = (match.group(1) for match in _LITERAL.finditer(line))
    return max((_unescaped_size(t) if b"\\" in t else len(t) for t in texts), default=0)


def _unescaped_size(text: bytes) -> int:
    size = len(text)
    for escape in _ESCAPE.finditer(text):
        written = escape.group()
        character = chr(int(written[2:], 16)) if written[1:2] in b"uU" else " "
        size += len(character.encode()) - len(written)
    return size
