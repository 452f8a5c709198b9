"""The brackets in the text of a document, found before a parser reads them.

Each syntax has a pattern that divides text into tokens: a run of tokens without a bracket, then a
bracket. Brackets in strings, IRIs and comments do not count. All quantifiers are possessive, so the
scan is linear in the length of the text. A token that may go on after the end of the text is left
for the next piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spaseq.rdf.inputs.formats import Format

OPEN, CLOSE = b"(", b")"

_REST = rb"((?s:.)++|\Z)"
"""The last match: the token that may go on, or nothing."""

_TURTLE_FLAT = (
    rb"""[^<>()\[\]{}"'#\\|]++"""
    rb'|"(?:[^"\\]++|\\(?s:.))++"|""(?=[^"])|"""(?:[^"\\]++|\\(?s:.)|"{1,2}+(?=[^"]))*+"""'
    rb"|'(?:[^'\\]++|\\(?s:.))++'|''(?=[^'])|'''(?:[^'\\]++|\\(?s:.)|'{1,2}+(?=[^']))*+'''"
    rb"|\#[^\r\n]*+[\r\n]|\\(?s:.)"
    rb'|<[^<>"{}|^`\x00-\x20]*+>'
    rb"|[{](?=[^|])|[}]|>(?=[^>])"
)
_TURTLE_UNFINISHED = (
    rb"""(?:"(?:[^"\\]++|\\(?s:.))*+\\?|""|"""
    rb'"""(?:[^"\\]++|\\(?s:.)|"{1,2}+(?=[^"]))*+(?:"{0,2}|\\)'
    rb"""|'(?:[^'\\]++|\\(?s:.))*+\\?|''|"""
    rb"'''(?:[^'\\]++|\\(?s:.)|'{1,2}+(?=[^']))*+(?:'{0,2}|\\)"
    rb'|\#[^\r\n]*+|\\|<[^<>"{}|^`\x00-\x20]*+|<<|[{|>]|\)>?)\Z'
)

_JSON_FLAT = rb'[^\[\]{}"]++|"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+"'

_XML_TAG = rb"""<[^<>/!?"'][^<>/"']*+(?:(?:"[^"]*+"|'[^']*+'|/(?!>))[^<>/"']*+)*+"""
_XML_FLAT = (
    rb"[^<]++(?=<)"
    rb"|" + _XML_TAG + rb"(?:/>|>[^<]*+</[^<>]*+>)"
    rb"|<!--(?:[^-]++|-(?!->))*+-->"
    rb"|<!\[CDATA\[(?:[^\]]++|\](?!\]>))*+\]\]>"
    rb"|<\?(?:[^?]++|\?(?!>))*+\?>"
    rb"|<![A-Za-z]"
)
_XML_UNFINISHED = (
    rb"(?:[^<]++|<!-{0,2}|<!--(?:[^-]++|-(?!->))*+|<!\[[CDAT]{0,5}"
    rb"|<!\[CDATA\[(?:[^\]]++|\](?!\]>))*+|<\?(?:[^?]++|\?(?!>))*+"
    rb"|</?|</[^<>]*+|" + _XML_TAG + rb"""(?:"[^"]*+|'[^']*+|/)?)\Z"""
)


class Brackets(NamedTuple):
    """The brackets in a piece of text.

    `signs` has OPEN or CLOSE for each, `end` is the offset behind the last complete token.
    """

    signs: bytes
    end: int


@dataclass(frozen=True, slots=True)
class BracketSyntax:
    """The brackets of one format.

    Attributes:
        tokens: a run of other tokens, then one group: an opening bracket, a closing one, or the
            rest of the text.
        unfinished: matches a rest that more text could complete.
    """

    tokens: re.Pattern[bytes]
    unfinished: re.Pattern[bytes]

    def of(self, text: bytes) -> Brackets:
        """The brackets in a text, up to its last complete token.

        What no more text can complete is malformed; the parser will refuse it. It counts as one
        byte, so that the bytes after it are measured, too.

        >>> syntax_of(Format.TURTLE).of(b'<a> <b> ( "(" [ ] ) . # (')
        Brackets(signs=b'(())', end=22)
        """
        signs: list[bytes] = []
        rest = b""
        for opened, closed, left in self.tokens.findall(text):
            if opened:
                signs.append(OPEN)
            elif closed:
                signs.append(CLOSE)
            elif left:
                rest = left
        end = len(text) - len(rest)
        if rest and self.unfinished.match(rest) is None:
            end += 1
        return Brackets(b"".join(signs), end)

    def places(self, text: bytes) -> Iterator[int]:
        """The offset of each bracket of `of(text)`."""
        for found in self.tokens.finditer(text):
            if found.lastindex is not None and found.lastindex < 3:
                yield found.start(found.lastindex)


class _JsonSyntax(BracketSyntax):
    """The brackets of JSON, which has many: `tokens` has one group, as that is faster."""

    def of(self, text: bytes) -> Brackets:
        """The brackets in a text, up to its last complete token.

        Without escapes, quotes alone tell the strings. Of all text but quotes and brackets, pairs
        of neighbouring quotes are left out: strings without brackets, or what separates strings.
        """
        if b"\\" not in text:
            end = text.rfind(b'"') if text.count(b'"') % 2 else len(text)
            signs = text[:end].translate(None, _NO_JSON_SIGN).replace(b'""', b"")
            if b'"' not in signs:
                return Brackets(signs.translate(_SIGNS), end)
        found: list[bytes] = self.tokens.findall(text)
        while found and not found[-1]:
            found.pop()
        rest = found.pop() if found and found[-1][:1] == b'"' else b""
        return Brackets(b"".join(found).translate(_SIGNS), len(text) - len(rest))

    def places(self, text: bytes) -> Iterator[int]:
        for found in self.tokens.finditer(text):
            if found.group(1)[:1] in (b"[", b"{", b"]", b"}"):
                yield found.start(1)


_SIGNS = bytes.maketrans(b"[{]}", b"(())")
_NO_JSON_SIGN = bytes(set(range(256)) - set(b'"[]{}'))


def _tokens(flat: bytes, opening: bytes, closing: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb"(?:" + flat + rb")*+(?:(" + opening + rb")|(" + closing + rb")|" + _REST + rb")"
    )


_TURTLE = BracketSyntax(
    _tokens(_TURTLE_FLAT, rb"<<\(|<<(?=[^(])|[(\[]|\{\|", rb">>|\]|\)(?=[^>])|\)>>|\|\}"),
    re.compile(_TURTLE_UNFINISHED),
)
_JSON = _JsonSyntax(
    re.compile(rb"(?:" + _JSON_FLAT + rb")*+([\[\]{}]|(?s:.)++|\Z)"), re.compile(rb'"')
)
_XML = BracketSyntax(
    _tokens(_XML_FLAT, _XML_TAG + rb">", rb"</[^<>]*+>"), re.compile(_XML_UNFINISHED)
)

_SYNTAXES = {
    Format.TURTLE: _TURTLE,
    Format.TRIG: _TURTLE,
    Format.JSONLD: _JSON,
    Format.RDFXML: _XML,
}


def syntax_of(form: Format) -> BracketSyntax:
    """The brackets of a document format."""
    return _SYNTAXES[form]


class Depths(NamedTuple):
    """The least and the greatest depth in a text, and the depth at its end."""

    least: int
    most: int
    end: int


def depths(signs: bytes, depth: int) -> Depths:
    """The depths of brackets that begin at a depth. A closing bracket too many is not counted.

    >>> depths(b"(()", 1)
    Depths(least=1, most=3, end=2)
    """
    if not signs:
        return Depths(depth, depth, depth)
    steps = 1 - 2 * (np.frombuffer(signs, np.uint8) & 1).astype(np.int64)  # OPEN is even
    sums = depth + np.cumsum(steps)
    sums -= np.minimum(np.minimum.accumulate(sums), 0)
    return Depths(min(depth, int(sums.min())), max(depth, int(sums.max())), int(sums[-1]))
