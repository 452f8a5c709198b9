"""Advice on expressions and terms of other languages, and the place of the text it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spaseq.errors import Span
from spaseq.lang.functions import ALL_FUNCTIONS
from spaseq.lang.scan import Lexeme
from spaseq.lang.spelling import nearest
from spaseq.records import record
from spaseq.text_patterns import late_pattern


@record
class Advice:
    """A replacement for the text of a span; `written` is that text or its beginning."""

    span: Span
    written: str
    text: str


@record
class Place:
    """The place of a failed parse: the lexeme `index`, the offset `start`, and the expected
    elements.

    `where` is the name of the section, as in "the sequence".
    """

    text: str
    lexemes: Sequence[Lexeme]
    index: int
    start: int
    expected: frozenset[str]
    where: str

    def lexeme(self, offset: int = 0) -> Lexeme | None:
        """The lexeme at a distance from the one where the parse failed."""
        at = self.index + offset
        return self.lexemes[at] if 0 <= at < len(self.lexemes) else None

    def keyword(self, offset: int = 0) -> str:
        """The word there in upper case; "" for another kind of lexeme."""
        lexeme = self.lexeme(offset)
        return lexeme.keyword if lexeme else ""

    def name(self, offset: int, otherwise: str) -> str:
        """The word there as it is written, or another name."""
        lexeme = self.lexeme(offset)
        return lexeme.text if lexeme and lexeme.keyword else otherwise

    def is_punct(self, offset: int, *marks: str) -> bool:
        """Whether one of some marks stands there."""
        lexeme = self.lexeme(offset)
        return lexeme is not None and lexeme.is_punct(*marks)

    def advice(self, text: str, first: int = 0, last: int = 0) -> Advice:
        """Advice on the lexemes from `first` to `last`."""
        begin, end = self.lexeme(first), self.lexeme(last)
        assert begin and end
        span = Span(max(begin.span.start, self.start) if not first else begin.span.start,
                    end.span.end)  # fmt: skip
        return Advice(span, self.text[span.start : span.end], text)

    def sign(self, signs: Mapping[str, str]) -> Advice | None:
        """Advice on the longest of some signs that covers the place."""
        for sign in sorted(signs, key=len, reverse=True):
            for begin in range(self.start - len(sign) + 1, self.start + 1):
                if begin >= 0 and self.text.startswith(sign, begin):
                    return Advice(Span(begin, begin + len(sign)), sign, signs[sign])
        return None


_IRI = late_pattern(r"\b(?:https?|urn|ftp|file)://[^\s<>\"{}|^`]*")
_LONGEST = 200
_KEYWORDS = ("FILTER", "OPTIONAL", "MINUS", "GRAPH", "SERVICE", "BIND", "VALUES", "UNION", "EXISTS")


def on_iri(place: Place) -> Advice | None:
    """Advice on an IRI without angle brackets."""
    for match in _IRI.finditer(place.text, max(0, place.start - _LONGEST)):
        if match.start() > place.start:
            return None
        if place.start < match.end():
            written = match[0].rstrip(".;,)")
            span = Span(match.start(), match.start() + len(written))
            return Advice(span, written, f"put the IRI into angle brackets: <{written}>")
    return None


def on_turtle(place: Place) -> Advice | None:
    """Advice on `@prefix` and `@base`."""
    lexeme = place.lexeme()
    word = lexeme.text.lower() if lexeme else ""
    if word in ("@prefix", "@base"):
        keyword = word[1:].upper()
        return place.advice(f"write {keyword} without the @, and no dot at the end of the line")
    return None


def on_name(place: Place) -> Advice | None:
    """Advice on a word where a term or a predicate is expected."""
    word = place.keyword()
    if word == "WHERE":
        return place.advice("conditions are FILTERs: write FILTER(?x > 1)")
    if not word or word in ALL_FUNCTIONS or nearest(word, _KEYWORDS, at_least=0.7):
        return None
    name = place.name(0, "x")
    if "'a'" in place.expected:
        return place.advice(f"a name has a prefix: write :{name}")
    if "an IRI" in place.expected and "a variable" in place.expected:
        return place.advice(f"write ?{name} for a variable, or :{name} for a name of the data")
    return None


_EXPRESSION_SIGNS = {
    "==": "write =",
    "<>": "write !=",
    "=<": "write <=",
    "=>": "write >=",
    "=~": 'write REGEX(?x, "...")',
}
_UNBOUND = "write BOUND(?x) or !BOUND(?x)"
_MATCHING = 'write REGEX(?x, "..."), CONTAINS(?x, "...") or STRSTARTS(?x, "...")'
_EXPRESSION_WORDS = {
    "AND": "write &&",
    "OR": "write ||",
    "IS": _UNBOUND,
    "NULL": _UNBOUND,
    "BETWEEN": "write ?x >= 1 && ?x <= 9",
    **dict.fromkeys(("LIKE", "RLIKE", "REGEXP", "SIMILAR"), _MATCHING),
}


def on_expression(place: Place) -> Advice | None:
    """Advice on an expression."""
    word = place.keyword()
    if word in _EXPRESSION_WORDS:
        return place.advice(_EXPRESSION_WORDS[word])
    sign = place.sign(_EXPRESSION_SIGNS)
    if sign is not None:
        return sign
    single = {"&": "write &&", "|": "write ||"}.get(place.text[place.start : place.start + 1])
    if single is not None and not re.search(r"[&|]{2}", place.text[place.start - 1 :][:3]):
        return place.advice(single)
    if place.is_punct(0, "~"):
        return place.advice(_MATCHING)
    if place.keyword(-1) == "NOT" and place.expected == {"EXISTS"}:
        return place.advice("write ! before a bracket: !(?x < ?y)", -1, -1)
    if place.is_punct(0, ",", ";") and "an operator" in place.expected:
        return place.advice("join conditions with &&")
    return on_bare_name(place)


def on_bare_name(place: Place) -> Advice | None:
    """Advice on `A.x`, or on `x` without its question mark."""
    word = place.keyword()
    if not word or "a variable" not in place.expected or place.is_punct(1, "("):
        return None
    if place.is_punct(1, "."):
        field = place.name(2, "x")
        last = 2 if place.keyword(2) else 1
        text = f"write ?{field}, and bind it in the GPM: a variable belongs to the whole query"
        return place.advice(text, 0, last)
    if word in ALL_FUNCTIONS:
        return None
    return place.advice(f"a variable begins with a question mark: write ?{place.name(0, 'x')}")
