"""The diagnostics of one query, collected while it is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field

from spaseq.errors import Diagnostic, QueryText, Span
from spaseq.lang.scan import Unescaped

MOST = 100
"""Number of diagnostics after which a query is read no further: a text that is no query has errors
everywhere.
"""


class TooManyErrors(Exception):
    """The query has too many errors; the rest of it is not read."""

    def __init__(self, findings: Findings) -> None:
        super().__init__()
        self.findings = findings


@dataclass
class Findings:
    """Diagnostics of one query; methods take spans in the text without codepoint escapes."""

    source: QueryText
    text: Unescaped
    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)

    def error(
        self,
        message: str,
        span: Span,
        *,
        code: str = "syntax",
        expected: tuple[str, ...] = (),
        suggestion: str | None = None,
    ) -> None:
        """Add an error."""
        self.add(
            Diagnostic(
                "error", code, message, self.text.span(span), self.source, expected, suggestion
            )
        )

    def warning(self, message: str, span: Span, *, code: str) -> None:
        """Add a warning."""
        self.add(Diagnostic("warning", code, message, self.text.span(span), self.source))

    def error_in_source(self, message: str, span: Span) -> None:
        """Add an error whose span is one of the source already."""
        self.add(Diagnostic("error", "syntax", message, span, self.source))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column in the source of an offset in the text without escapes."""
        return self.source.place(self.text.offset(offset))

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a diagnostic, unless an equal one is there.

        Raises:
            TooManyErrors: there are `MOST` of them, and a last one that says so.
        """
        self.diagnostics.setdefault(diagnostic)
        if len(self.diagnostics) == MOST:
            end = Span(*[len(self.source.text)] * 2)
            more = Diagnostic("error", "syntax", f"more than {MOST} errors", end, self.source)
            self.diagnostics[more] = None
            raise TooManyErrors(self)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """All diagnostics in the order of the text."""
        return tuple(sorted(self.diagnostics, key=lambda each: (each.span.start, each.span.end)))
