"""The report of tests, in the form of pytest's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from spaseq.errors import InputError
from spaseq.message_text import visible
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


# --- Outcomes as a JUnit XML file, which continuous integration reads -----------------------------


def write_junit(path: Path, files: Mapping[Path, Sequence[TestOutcome]]) -> None:
    """Write the outcomes of tests, by test file, as the xunit2 format that pytest writes.

    Raises:
        InputError: the file cannot be written.
    """
    outcomes = [outcome for each in files.values() for outcome in each]
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", _counts(outcomes))
    for file, each in files.items():
        for outcome in each:
            case = SubElement(
                suite,
                "testcase",
                classname=visible(str(file)),
                name=visible(outcome.test.name),
                file=visible(str(file)),
                line=str(outcome.line),
                time=f"{outcome.seconds:.3f}",
            )
            if outcome.failure:
                text = visible(outcome.failure)
                failure = SubElement(case, "failure", message=text.splitlines()[0])
                failure.text = f"{file}:{outcome.line}: {text}"
    indent(root)
    try:
        ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _counts(outcomes: Sequence[TestOutcome]) -> dict[str, str]:
    return {
        "name": "spaseq",
        "tests": str(len(outcomes)),
        "failures": str(sum(bool(outcome.failure) for outcome in outcomes)),
        "errors": "0",
        "skipped": "0",
        "time": f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    }
