"""Parses one section of a query with an element of the grammar."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spaseq.errors import QueryText, Span
from spaseq.lang.findings import Findings
from spaseq.lang.scan import MOST, Lexeme, blank_comments, misplaced, scan, unescape
from spaseq.lang.syntax_errors import Failure, report
from spaseq.records import record

if TYPE_CHECKING:
    from pyparsing import ParserElement

    from spaseq.lang.grammar.rules import Passage


_SHORT = 1000
"""Maximum characters of a section whose nodes are cached."""


@record
class SectionParser:
    """The text of one query, ready to be parsed section by section.

    `text` has neither codepoint escapes nor comments; `lexemes` has no comments.
    """

    text: str
    lexemes: tuple[Lexeme, ...]
    findings: Findings
    too_long: Span | None = None  # the first lexeme that is not among them

    @classmethod
    def of(cls, source: QueryText) -> SectionParser:
        """Scan a query; invalid codepoint escapes are errors."""
        unescaped = unescape(source.text)
        lexemes = scan(unescaped.text)
        findings = Findings(source, unescaped)
        for span in unescaped.invalid:
            findings.error_in_source("this escape is not a character", span)
        for span in misplaced(unescaped, lexemes):
            findings.error(r"\u and \U stand for a character only in a string or an IRI", span)
        return cls(
            blank_comments(unescaped.text, lexemes),
            tuple(lexeme for lexeme in lexemes if lexeme.kind != "comment"),
            findings,
            lexemes[MOST].span if len(lexemes) > MOST else None,
        )

    def parse(
        self,
        element: ParserElement,
        span: Span,
        where: str,
        follows: frozenset[str] = frozenset(),
        then: str = "the next clause",
    ) -> list[Any] | None:
        """The nodes of a section; None if it has an error, which is reported.

        Args:
            element: the element for the whole section, made by `rules.whole`.
            span: the span of the section.
            where: the name of the section in messages.
            follows: keywords that may follow the section, as suggestions.
            then: a phrase for the next part of the query.
        """
        text = self.text[span.start : span.end]
        parse = _parsed_before if len(text) <= _SHORT else _parsed
        try:
            return [*parse(element, span.start, text)]
        except _NotParsed as error:
            passage = error.passage
            failure = Failure(passage.furthest, passage.expected, span, where, follows, then)
            report(failure, self.lexemes, self.findings)
            return None
        except RecursionError:
            self.findings.error(f"{where} is nested too deeply", self._deepest(span))
            return None

    def _deepest(self, section: Span) -> Span:
        """The place in a section with the most open brackets and signs before it."""
        deepest, most, depth, signs = Span(section.start, section.start + 1), 0, 0, 0
        for lexeme in self.lexemes:
            if not section.start <= lexeme.start < section.end:
                continue
            depth += lexeme.is_punct(*"([{") - lexeme.is_punct(*")]}")
            signs = signs + 1 if lexeme.is_punct(*"!+-^") else 0
            if depth + signs > most:
                deepest, most = lexeme.span, depth + signs
        return deepest


class _NotParsed(Exception):
    """A section has an error; `passage` knows where."""

    def __init__(self, passage: Passage) -> None:
        super().__init__()
        self.passage = passage


def _parsed(element: ParserElement, start: int, text: str) -> tuple[Any, ...]:
    """The nodes of a section that begins at an offset; nodes never change."""
    from spaseq.lang.grammar.lookahead import nodes_of
    from spaseq.lang.grammar.rules import Punctuation

    # With blanks before the section, its offsets are offsets in the whole text.
    nodes = nodes_of(element, " " * start + text, start)
    if nodes is None:
        nodes = _parsed_with_notes(element, start, text)
    return tuple(node for node in nodes if not isinstance(node, Punctuation))


def _parsed_with_notes(element: ParserElement, start: int, text: str) -> list[Any]:
    """The nodes of a section; if it has an error, pyparsing finds out where."""
    from pyparsing import ParseBaseException

    from spaseq.lang.grammar.rules import Passage

    passage = Passage(" " * start + text)
    try:
        nodes: list[Any] = element.parse_string(passage).as_list()
        return nodes
    except ParseBaseException:
        raise _NotParsed(passage) from None


_parsed_before = lru_cache(maxsize=512)(_parsed)
"""The same, for sections that queries of one run have in common."""
