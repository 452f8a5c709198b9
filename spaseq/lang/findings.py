"""Collects what is found wrong with one query while it is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field

from spaseq.errors import Diagnostic, Source, Span
from spaseq.lang.escapes import Unescaped


@dataclass
class Findings:
    """Diagnostics of one query; spans come in as offsets into the text without escapes."""

    source: Source
    text: Unescaped
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def error(
        self,
        message: str,
        span: Span,
        *,
        code: str = "syntax",
        expected: tuple[str, ...] = (),
        suggestion: str | None = None,
    ) -> None:
        self.add(
            Diagnostic(
                "error", code, message, self.text.span(span), self.source, expected, suggestion
            )
        )

    def warning(self, message: str, span: Span, *, code: str) -> None:
        self.add(Diagnostic("warning", code, message, self.text.span(span), self.source))

    def error_in_source(self, message: str, span: Span) -> None:
        """An error whose span leads to the source already."""
        self.add(Diagnostic("error", "syntax", message, span, self.source))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column in the source of an offset into the text without escapes."""
        return self.source.place(self.text.offset(offset))

    def add(self, diagnostic: Diagnostic) -> None:
        """Keeps a diagnostic, unless it is there already."""
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """All diagnostics by place."""
        return tuple(sorted(self.diagnostics, key=lambda found: (found.span.start, found.span.end)))
