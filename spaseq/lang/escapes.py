"""Codepoint escapes `\\uXXXX` and `\\UXXXXXXXX` (SPARQL 1.1 section 19.2).

They may stand anywhere in a query and are replaced before anything else happens, so what is parsed
is shorter than the source; `Unescaped.span` leads back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from spaseq.errors import Span
from spaseq.lang import ast

T = TypeVar("T")

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LAST_CODEPOINT = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Unescaped:
    """A text without codepoint escapes, and how its offsets differ from the source's.

    From `starts[i]` on (an offset in `text`), offsets in the source are `shifts[i]` greater.
    `invalid` are the places, in the source, of escapes that stand for no character.
    """

    text: str
    starts: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()
    invalid: tuple[Span, ...] = ()

    def offset(self, offset: int) -> int:
        """The offset in the source of an offset in `text`."""
        number = bisect_right(self.starts, offset)
        return offset + (self.shifts[number - 1] if number else 0)

    def span(self, span: Span) -> Span:
        """The span in the source of a span in `text`."""
        if not self.starts:
            return span
        return Span(self.offset(span.start), self.offset(span.end))


def unescape(source: str) -> Unescaped:
    """Replaces the codepoint escapes of a query; an escaped backslash escapes nothing after it."""
    pieces: list[str] = []
    starts, shifts, invalid = [], [], []
    done = length = 0
    for found in _ESCAPE.finditer(source):
        if found[3] is not None:
            continue
        code = int(found[1] or found[2], 16)
        valid = code <= _LAST_CODEPOINT and not 0xD800 <= code <= 0xDFFF
        if not valid:
            invalid.append(Span(*found.span()))
        pieces += [source[done : found.start()], chr(code) if valid else "\ufffd"]
        length += len(pieces[-2]) + 1
        done = found.end()
        starts.append(length)
        shifts.append(done - length)
    text = "".join([*pieces, source[done:]])
    return Unescaped(text, tuple(starts), tuple(shifts), tuple(invalid))


def restore_spans(value: T, text: Unescaped) -> T:
    """A node, or a tuple of nodes, with all spans leading to the source."""
    if not text.starts:
        return value
    part: Any = value
    if isinstance(part, tuple):
        return tuple(restore_spans(item, text) for item in part)  # type: ignore[return-value]
    if not isinstance(part, ast.Node):
        return value
    named = {item.name: getattr(part, item.name) for item in fields(part) if item.name != "span"}
    moved = {name: restore_spans(field, text) for name, field in named.items()}
    return replace(part, span=text.span(part.span), **moved)  # type: ignore[return-value]
