"""Advice on another language's syntax, and the place of the text that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spaseq.errors import Span
from spaseq.lang.scan import Lexeme
from spaseq.records import record


@record
class Advice:
    """What to write instead of the text of a span; `written` is that text or what it begins."""

    span: Span
    written: str
    text: str


@record
class Place:
    """Where a parse failed: at the lexeme `index`, at the offset `start`, and what may stand there.

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
        found = self.lexeme(offset)
        return found.keyword if found else ""

    def name(self, offset: int, otherwise: str) -> str:
        """The word there as it is written, or another name."""
        found = self.lexeme(offset)
        return found.text if found and found.keyword else otherwise

    def is_punct(self, offset: int, *marks: str) -> bool:
        """Whether one of some marks stands there."""
        found = self.lexeme(offset)
        return found is not None and found.is_punct(*marks)

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
