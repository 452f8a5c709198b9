"""The report of tests, in the form of pytest's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spaseq.query_tests.case_run import TestOutcome

_WIDTH = 80


def progress_line(path: Path, outcomes: Sequence[TestOutcome]) -> str:
    """A file with a dot for each test that passed and an F for each that failed."""
    return f"{path} {''.join('F' if outcome.failure else '.' for outcome in outcomes)}"


def failures(path: Path, outcomes: Sequence[TestOutcome]) -> Iterator[str]:
    """Each failed test of a file: its name, its place, and what differs."""
    for outcome in outcomes:
        if outcome.failure:
            yield f" {outcome.test.name} ".center(_WIDTH, "_")
            yield f"{path}:{outcome.line}: {outcome.failure}"
            yield ""


def heading(text: str) -> str:
    """A line between parts of the report.

    >>> heading("FAILURES")[:40]
    '=================================== FAIL'
    """
    return f" {text} ".center(_WIDTH, "=")


def summary_line(outcomes: Sequence[TestOutcome], seconds: float) -> str:
    """How many tests failed and passed, and how long all took."""
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    counts = ((failed, "failed"), (len(outcomes) - failed, "passed"))
    text = ", ".join(f"{count} {what}" for count, what in counts if count)
    return heading(f"{text or 'no tests ran'} in {seconds:.2f}s")
