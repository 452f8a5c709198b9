"""The brackets in the text of a document, found before a parser reads them.

Each syntax has a pattern that divides text into tokens: a run of tokens without a bracket, then a
bracket. Brackets in strings, IRIs and comments do not count. All quantifiers are possessive, so the
scan is linear in the length of the text. A token that may continue after the end of the text is
left for the next piece.

Most text has few strings or tags with brackets in them. Then a short cut finds the same brackets:
delete all bytes except signs, then pairs of signs that enclose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bytes
from spaseq.rdf.inputs.formats import Format
from spaseq.records import record
from spaseq.text_patterns import late_pattern, possessive

OPEN, CLOSE = b"(", b")"

_REST = rb"((?s:.)++|\Z)"
"""The last match: the token that may continue, or nothing."""

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


@record
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
        """The brackets in a text, up to a complete token."""
        return self.scanned(text)

    def scanned(self, text: bytes) -> Brackets:
        """The brackets in a text, up to its last complete token.

        A token that no further text can complete is malformed; the parser will refuse it. It counts
        as one byte, so that the bytes after it are measured, too.

        >>> syntax_of(Format.TURTLE).scanned(b'<a> <b> ( "(" [ ] ) . # (')
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

    def places(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """The offset of each bracket, and OPEN or CLOSE."""
        for match in self.tokens.finditer(text):
            if match.lastindex is not None and match.lastindex < 3:
                yield match.start(match.lastindex), OPEN if match.lastindex == 1 else CLOSE


class _TurtleSyntax(BracketSyntax):
    """The brackets of Turtle and TriG."""

    def of(self, text: bytes) -> Brackets:
        brackets = self._of_lines(text)
        return self.scanned(text) if brackets is None else brackets

    def _of_lines(self, text: bytes) -> Brackets | None:
        """The brackets in the complete lines of a text. None if only a scan can tell.

        Without long strings, a line ends no token but a comment. A parser refuses strings and IRIs
        with line ends in them. In this order:

        1. An escape is no sign.
        2. `<` and `>` with nothing but `#` between them enclose an IRI, or stand in one string or
           comment. No others may be left, so there are no brackets of two characters but `{|`.
        3. Of two quotes side by side, both stand in one string or comment, or separate strings.
        """
        end = text.rfind(b"\n") + 1
        lines = text[:end]
        if b"\\" in lines:
            lines = _TURTLE_ESCAPE.sub(b"", lines)
        signs = lines.translate(_LINE_ENDS, _NO_TURTLE_SIGN)
        if b"<<" in signs or any(sign in signs and sign in lines for sign in _LONG_SIGNS):
            return None
        signs = signs.replace(b"<>", b"").replace(b"<#>", b"")
        if b"<" in signs:
            signs = _IRI_SIGNS.sub(b"", signs)
        signs = signs.replace(b'""', b"")
        if b'"' in signs or b"#" in signs or b"'" in signs:
            signs = _TEXT_SIGNS.sub(b"", signs)
        signs = signs.translate(_SIGNS, b"{|}\n")
        return Brackets(signs, end) if end and not signs.strip(OPEN + CLOSE) else None


class _XmlSyntax(BracketSyntax):
    """The brackets of XML: the tags of elements that have other elements in them."""

    def of(self, text: bytes) -> Brackets:
        brackets = self._of_tags(text)
        return self.scanned(text) if brackets is None else brackets

    def _of_tags(self, text: bytes) -> Brackets | None:
        """The brackets up to the last closing tag. None if only a scan can tell.

        In a tag, the first quoted value with a sign in it comes after an even number of quotes. So
        its first quote is left when neighbouring quotes are gone, and then the text is scanned.
        """
        end = text.find(b">", text.rfind(b"</", 0, text.rfind(b">") + 1)) + 1
        if not end or (b"'" in text and _SINGLE_QUOTES.search(text) is not None):
            return None
        signs = text[:end].translate(None, _NO_XML_SIGN).replace(b'""', b"")
        if signs != b"<>" * (len(signs) // 2):
            return None
        brackets = _brackets_of_tags(np.frombuffer(text, np.uint8, end))
        return None if brackets is None else Brackets(brackets, end)


def _brackets_of_tags(text: Bytes) -> bytes | None:
    """The brackets of text (uint8 [bytes]) in which `<` and `>` only stand around tags."""
    second = text[1:][text[:-1] == _LESS]
    last = text[:-1][text[1:] == _GREATER]
    closing, empty = second == _SLASH, last == _SLASH
    if ((second == _EXCLAMATION) | (second == _QUESTION) | (closing & empty)).any():
        return None
    signs = np.where(empty, _EMPTY, np.where(closing, CLOSE[0], OPEN[0])).astype(np.uint8)
    return signs.tobytes().replace(OPEN + CLOSE, b"").translate(None, bytes([_EMPTY]))


class _JsonSyntax(BracketSyntax):
    """The brackets of JSON, which has many: `tokens` has one group for speed."""

    def of(self, text: bytes) -> Brackets:
        """The brackets in a text, up to its last complete token.

        Without escapes, quotes alone tell the strings. After deleting all text except quotes and
        brackets, pairs of neighbouring quotes are deleted: strings without brackets, or separators
        of strings.
        """
        if b"\\" not in text:
            end = text.rfind(b'"') if count(text, b'"') % 2 else len(text)
            signs = text[:end].translate(None, _NO_JSON_SIGN).replace(b'""', b"")
            if b'"' not in signs:
                return Brackets(signs.translate(_SIGNS), end)
        return self.scanned(text)

    def scanned(self, text: bytes) -> Brackets:
        tokens: list[bytes] = self.tokens.findall(text)
        while tokens and not tokens[-1]:
            tokens.pop()
        rest = tokens.pop() if tokens and tokens[-1][:1] == b'"' else b""
        return Brackets(b"".join(tokens).translate(_SIGNS), len(text) - len(rest))

    def places(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        for match in self.tokens.finditer(text):
            sign = match.group(1)[:1]
            if sign in (b"[", b"{", b"]", b"}"):
                yield match.start(1), sign.translate(_SIGNS)


def _all_but(signs: bytes) -> bytes:
    return bytes(set(range(256)) - set(signs))


_SIGNS = bytes.maketrans(b"[{]}", b"(())")
_NO_JSON_SIGN = _all_but(b'"[]{}')

_LINE_ENDS = bytes.maketrans(b"\r", b"\n")
_NO_TURTLE_SIGN = _all_but(b"""<>"'#{|}()[]\r\n""")
_LONG_SIGNS = b"{|", b"|}", b'"""', b"'''"
_TURTLE_ESCAPE = late_pattern(rb"\\[^\r\n]")
_IRI_SIGNS = late_pattern(rb"""<[^<>"'\n]*+>""")
_TEXT_SIGNS = late_pattern(rb"""\"[^"\n]*+"|'[^'\n]*+'|\#[^\n]*+""")

_LESS, _GREATER, _SLASH, _EXCLAMATION, _QUESTION = b"<>/!?"
_EMPTY = 0
_NO_XML_SIGN = _all_but(b'<>"')
_SINGLE_QUOTES = late_pattern(rb"=\s*+'")


def _tokens(flat: bytes, opening: bytes, closing: bytes) -> re.Pattern[bytes]:
    return possessive(
        rb"(?:" + flat + rb")*+(?:(" + opening + rb")|(" + closing + rb")|" + _REST + rb")"
    )


_TURTLE = _TurtleSyntax(
    _tokens(_TURTLE_FLAT, rb"<<\(|<<(?=[^(])|[(\[]|\{\|", rb">>|\]|\)(?=[^>])|\)>>|\|\}"),
    possessive(_TURTLE_UNFINISHED),
)
_JSON = _JsonSyntax(
    possessive(rb"(?:" + _JSON_FLAT + rb")*+([\[\]{}]|(?s:.)++|\Z)"), late_pattern(rb'"')
)
_XML = _XmlSyntax(_tokens(_XML_FLAT, _XML_TAG + rb">", rb"</[^<>]*+>"), possessive(_XML_UNFINISHED))

_SYNTAXES = {
    Format.TURTLE: _TURTLE,
    Format.NTRIPLES: _TURTLE,
    Format.NQUADS: _TURTLE,
    Format.TRIG: _TURTLE,
    Format.JSONLD: _JSON,
    Format.RDFXML: _XML,
}


def syntax_of(form: Format) -> BracketSyntax:
    """The brackets of a document format."""
    return _SYNTAXES[form]


def count(text: bytes, byte: bytes) -> int:
    """Number of occurrences of a byte. Faster than `bytes.count` for a frequent byte."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == byte[0]))


class Depths(NamedTuple):
    """The least and the greatest depth in a text, and the depth at its end."""

    least: int
    most: int
    end: int


def depths(signs: bytes, depth: int) -> Depths:
    """The depths of brackets that begin at a depth. Unmatched closing brackets are not counted.

    >>> depths(b"(()", 1)
    Depths(least=1, most=3, end=2)
    """
    if not signs:
        return Depths(depth, depth, depth)
    closing = np.frombuffer(signs, np.uint8) & 1  # OPEN is even
    sums = depth + np.cumsum(1 - 2 * closing.view(np.int8), dtype=np.int64)
    least = int(sums.min())
    if least < 0:
        sums -= np.minimum(np.minimum.accumulate(sums), 0)
    return Depths(min(depth, max(least, 0)), max(depth, int(sums.max())), int(sums[-1]))
