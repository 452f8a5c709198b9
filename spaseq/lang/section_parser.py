"""Runs an element of the grammar on one section of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spaseq.errors import Source, Span
from spaseq.lang.escapes import unescape
from spaseq.lang.findings import Findings
from spaseq.lang.scan import Lexeme, blank_comments, scan
from spaseq.lang.syntax_errors import Failure, report

if TYPE_CHECKING:
    from pyparsing import ParserElement


@dataclass(frozen=True, slots=True)
class SectionParser:
    """The text of one query, ready to be parsed piece by piece.

    `text` is without codepoint escapes and comments, `lexemes` without comments.
    """

    text: str
    lexemes: tuple[Lexeme, ...]
    findings: Findings

    @classmethod
    def of(cls, source: Source) -> SectionParser:
        unescaped = unescape(source.text)
        lexemes = scan(unescaped.text)
        findings = Findings(source, unescaped)
        for span in unescaped.invalid:
            findings.error_in_source("this escape stands for no character", span)
        return cls(
            blank_comments(unescaped.text, lexemes),
            tuple(lexeme for lexeme in lexemes if lexeme.kind != "comment"),
            findings,
        )

    def parse(
        self,
        element: ParserElement,
        span: Span,
        where: str,
        follows: frozenset[str] = frozenset(),
        then: str = "the next clause",
    ) -> list[Any] | None:
        """The nodes that `element` makes of a section, or None after an error was reported.

        Args:
            element: up to and including the end of the section.
            span: the section.
            where: what to call the section in messages.
            follows: keywords that may stand after the section, to suggest.
            then: what comes after the section, in one phrase.
        """
        from pyparsing import ParseBaseException

        from spaseq.lang.grammar.rules import Passage, Punctuation

        # Blanks before the section keep the offsets those of the whole text.
        passage = Passage(" " * span.start + self.text[span.start : span.end])
        try:
            found = element.parse_string(passage).as_list()
        except ParseBaseException:
            failure = Failure(passage.furthest, passage.expected, span, where, follows, then)
            report(failure, self.lexemes, self.findings)
            return None
        except RecursionError:
            self.findings.error(f"{where} is nested too deeply", Span(span.start, span.start + 1))
            return None
        return [node for node in found if not isinstance(node, Punctuation)]
