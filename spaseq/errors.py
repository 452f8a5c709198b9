"""The error tree, source spans, and diagnostics drawn with a caret.

Exit statuses of the command line follow the tree: `QueryError` 1, `UsageError` 2, `InputError` 3,
`RunError` 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets into a `QueryText`."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class QueryText:
    """The text of a query and the name (usually a path) it is reported under."""

    text: str = field(repr=False)
    name: str = "<query>"

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character offset, both counted from 1."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def line(self, number: int) -> str:
        """The text of a line counted from 1, without its end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a query: what, where, what was expected and the nearest valid name.

    `code` is a stable, hyphenated identifier (`unknown-stream`, `syntax`, `not-supported-yet`).
    """

    severity: Literal["error", "warning"]
    code: str
    message: str
    span: Span
    source: QueryText
    expected: tuple[str, ...] = ()
    suggestion: str | None = None

    def render(self) -> str:
        """`file:line:column: severity: message`, the line, a caret under the span, and hints."""
        line, column = self.source.place(self.span.start)
        text = self.source.line(line)
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        lead = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
        rows = [
            f"{self.source.name}:{line}:{column}: {self.severity}: {self.message} [{self.code}]",
            f"    {text}",
            f"    {lead}{'^' * width}",
        ]
        if self.expected:
            rows.append(f"    expected: {', '.join(self.expected)}")
        if self.suggestion:
            rows.append(f"    did you mean: {self.suggestion}")
        return "\n".join(rows)

    def to_json(self) -> dict[str, object]:
        """The fields of `spaseq check --json`."""
        line, column = self.source.place(self.span.start)
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "file": self.source.name,
            "line": line,
            "column": column,
            "text": self.source.line(line),
            "expected": list(self.expected),
            "suggestion": self.suggestion,
        }


class SpaseqError(Exception):
    """Root of every error this package raises on purpose."""

    exit_status = 4


class QueryError(SpaseqError):
    """A query that cannot be run; carries every diagnostic that was found, in order of place."""

    exit_status = 1

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[QueryError], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


class UsageError(SpaseqError):
    """A call or command line that makes no sense as it stands."""

    exit_status = 2


class InputError(SpaseqError):
    """An input that stops the run at its start: a missing stream, a broken KB."""

    exit_status = 3


class RunError(SpaseqError):
    """A failure, or a bound exceeded, while a query runs."""

    exit_status = 4
