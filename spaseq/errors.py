"""The tree of errors, and diagnostics of queries with place and caret.

The exit statuses of the command line follow the tree: `QueryError` 1, `UsageError` 2,
`InputError` 3, `RunError` 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from spaseq.message_text import one_line, visible, without_passwords
from spaseq.records import record

_SHOWN = 3  # errors that a message of several shows


@record
class Span:
    """A half-open range of character offsets into a `QueryText`."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@record
class QueryText:
    """The text of a query, and the name (usually a path) that messages give it."""

    text: str = field(repr=False)
    name: str = "<query>"

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) of a character offset, both counted from 1."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its line end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


_LONGEST_LINE = 500
"""A longer line of a query is shown in part."""

_AROUND = 120
"""Number of characters before and after a place that are shown of a longer line."""


def _around(text: str, place: int) -> tuple[str, int]:
    """(the part of a line around a place, the place in it)."""
    first, last = max(0, place - _AROUND), place + _AROUND
    before, after = "... " if first else "", " ..." if last < len(text) else ""
    return f"{before}{text[first:last]}{after}", place - first + len(before)


@record
class Diagnostic:
    """One finding about a query: the message, the place, what was expected, the nearest valid name.

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
        """The finding as text: place and message, the line, a caret under the span, and hints."""
        line, column = self.source.place(self.span.start)
        text = without_passwords(self.source.line(line))
        start, width = column - 1, self.span.end - self.span.start
        if len(text) > _LONGEST_LINE:
            text, start = _around(text, start)
        before, marked = visible(text[:start]), visible(text[start : start + width])
        lead = "".join("\t" if c == "\t" else " " for c in before)
        name = one_line(self.source.name)
        rows = [
            f"{name}:{line}:{column}: {self.severity}: {self._said(self.message)} [{self.code}]",
            f"    {before}{marked}{visible(text[start + width :])}",
            f"    {lead}{'^' * max(1, len(marked))}",
        ]
        if self.expected:
            rows.append(f"    expected: {self._said(', '.join(self.expected))}")
        if self.suggestion:
            rows.append(f"    did you mean: {self._said(self.suggestion)}")
        return "\n".join(rows)

    def _said(self, text: str) -> str:
        return visible(without_passwords(text))

    def to_json(self) -> dict[str, object]:
        """The finding as `spaseq check --json` writes it, with a part of a line that is long."""
        line, column = self.source.place(self.span.start)
        text = without_passwords(self.source.line(line))
        if len(text) > _LONGEST_LINE:
            text, _ = _around(text, column - 1)
        return {
            "severity": self.severity,
            "code": self.code,
            "message": without_passwords(self.message),
            "file": self.source.name,
            "line": line,
            "column": column,
            "text": text,
            "expected": list(self.expected),
            "suggestion": self.suggestion,
        }


class SpaseqError(Exception):
    """Root of all errors that this package raises on purpose; its text is safe for a terminal."""

    exit_status = 4

    def __str__(self) -> str:
        return visible(without_passwords(super().__str__()))


def fault_text(error: BaseException) -> str:
    """One line for the log about an unexpected error.

    >>> fault_text(KeyError("a"))
    "a fault: KeyError('a')"
    """
    return one_line(without_passwords(f"a fault: {error!r}"))


class QueryError(SpaseqError):
    """A query that cannot be run, with all its diagnostics in order of place."""

    exit_status = 1

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[QueryError], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


class UsageError(SpaseqError):
    """A wrong call or command line: an unknown name, or options that contradict each other."""

    exit_status = 2


class InputError(SpaseqError):
    """An input that a run cannot start with: a missing stream, a broken knowledge base."""

    exit_status = 3


class BadEvents(InputError):
    """Some events of a batch were refused; all others were taken.

    Attributes:
        bad: (place in the batch from 0, error) of each event that was refused.
        matches: the answers that the other events made certain.
    """

    def __init__(self, bad: Sequence[tuple[int, SpaseqError]], matches: Sequence[Any]) -> None:
        self.bad, self.matches = tuple(bad), list(matches)
        shown = [f"event {event}: {error}" for event, error in self.bad[:_SHOWN]]
        if len(self.bad) > _SHOWN:
            shown.append(f"and {len(self.bad) - _SHOWN} more")
        super().__init__("; ".join(shown))

    def __reduce__(self) -> tuple[type[BadEvents], tuple[object, ...]]:
        return type(self), (self.bad, self.matches)


class RunError(SpaseqError):
    """A failure, or a bound exceeded, while a query runs."""

    exit_status = 4


class OtherStateError(RunError):
    """A saved state belongs to another query, or to another version of spaseq."""


class TooManyWaiting(RunError):
    """More partial matches of a query wait after an instant than the limit allows.

    Attributes:
        query: the query's number in the run.
        instant: the instant, as (time in ms, place among the events of that time).
    """

    def __init__(self, message: str, query: int, instant: tuple[int, int]) -> None:
        self.query, self.instant = query, instant
        super().__init__(message)

    def __reduce__(self) -> tuple[type[TooManyWaiting], tuple[object, ...]]:
        return type(self), (*self.args, self.query, self.instant)


class Terminated(KeyboardInterrupt):
    """SIGTERM: the run ends like an interrupted one."""
