"""Where in a query the causes of one GPM are."""

from __future__ import annotations

from dataclasses import replace

from spaseq.diagnosis.nearest_terms import as_written
from spaseq.diagnosis.pattern_parts import Condition, shown_triple
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.report import Cause
from spaseq.lang import ast
from spaseq.records import record


@record
class GpmPlace:
    """One GPM of a question, and the number of the step that uses it."""

    question: Question
    gpm: str
    step: int | None

    def cause(
        self,
        kind: str,
        node: ast.Node,
        text: str,
        count: int = 0,
        term: str | None = None,
        suggestion: str | None = None,
        example: str | None = None,
    ) -> Cause:
        """A cause at a node of the query."""
        line, column = self.question.place(node.span)
        return Cause(
            kind=kind,
            gpm=self.gpm,
            step=self.step,
            line=line,
            column=column,
            count=count,
            term=term,
            suggestion=suggestion,
            example=example,
            text=text,
            shown=self.shown(node),
        )

    def condition(
        self,
        kind: str,
        condition: Condition,
        text: str,
        count: int,
        term: str | None = None,
        suggestion: str | None = None,
        example: str | None = None,
    ) -> Cause:
        """A cause at a FILTER, which shows one conjunct of it."""
        cause = self.cause(kind, condition.filter, text, count, term, suggestion, example)
        return replace(cause, shown=self.shown(condition.expr))

    def shown(self, node: ast.Node) -> str:
        """The text of a node on one line, cut where it is long."""
        if isinstance(node, ast.Triple):
            return shown_triple(self.question.terms, node)
        text = self.question.line(node.span)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."

    def written(self, text: str) -> str:
        """A term's N-Triples text with the prefixes of the query."""
        return as_written(self.question.terms, text)


_LONGEST = 60
"""The most characters of the query that a cause shows."""
