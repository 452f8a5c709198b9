"""Runs the tests of a file, in this process, and reports them in the form of pytest's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from spaseq.api.harness import Harness
from spaseq.api.match import Match
from spaseq.api.queries import read_query
from spaseq.api.run import run
from spaseq.errors import InputError, SpaseqError
from spaseq.lang.parser import parse
from spaseq.lift.lifted import Lifted
from spaseq.message_text import visible
from spaseq.query_tests.case_nodes import (
    ExpectedAnswer,
    QueryTest,
    QueryTestFile,
    QueryTestStep,
    unpaired,
)
from spaseq.rdf.terms.times import duration_text, format_time
from spaseq.records import record
from spaseq.storage.user_files import read_user_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_WIDTH = 80


@record
class TestOutcome:
    """The outcome of a test.

    Attributes:
        test: the test.
        seconds: its duration.
        failure: the differences, in lines; "" if it passed.
        line: the line of the failure in the file.
    """

    test: QueryTest
    seconds: float
    failure: str = ""
    line: int = 0


class _Difference(Exception):
    """A difference from a test's expectation, and the line of the expectation."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def outcomes(file: QueryTestFile) -> Iterator[TestOutcome]:
    """The outcome of each test of a file, as it ends."""
    text = read_query(file.query)
    for test in file.tests:
        begun = time.perf_counter()
        failure, line = "", test.line
        try:
            if test.streams:
                _replay(file, test, text)
            else:
                _Bench(file, test, text).run()
        except _Difference as difference:
            failure, line = str(difference), difference.line
        except SpaseqError as error:
            failure = str(error)
        yield TestOutcome(test, time.perf_counter() - begun, failure, line)


class _Bench:
    """One test of steps while it runs."""

    def __init__(self, file: QueryTestFile, test: QueryTest, text: str) -> None:
        self._test = test
        self._prefixes = _prefixes(text)
        self._bench = Harness(text, file.kb, file.lifts, **_options(file))
        self._now = _EPOCH + test.start_ms * _MILLISECOND
        self._seen = 0

    def run(self) -> None:
        """Run the steps; `_Difference` at the first with other answers than expected."""
        steps = self._test.steps
        for number, step in enumerate(steps):
            following = steps[number + 1] if number + 1 < len(steps) else None
            try:
                self._take(step, following)
            except SpaseqError as error:
                raise _Difference(step.line, f"{self._said(step)}: {error}") from None
            came, self._seen = self._bench.matches[self._seen :], len(self._bench.matches)
            if step.answers is None:
                continue
            missing, unexpected = unpaired(step.answers, came, self._prefixes)
            if missing or unexpected:
                text = _difference(missing, unexpected) + self._later(steps[number + 1 :], missing)
                raise _Difference(step.line, f"{self._said(step)}:\n{text}")

    def _take(self, step: QueryTestStep, following: QueryTestStep | None) -> None:
        """Push the events of a step, or let time pass."""
        if step.wait_ms is not None:
            self._now += step.wait_ms * _MILLISECOND
            self._bench.advance(
                self._now - (_MILLISECOND if self._goes_on(following) else timedelta())
            )
            return
        if step.at_ms is not None:
            self._now = _EPOCH + step.at_ms * _MILLISECOND
        for event in step.events:
            self._bench.push(step.stream, event, self._now)
        self._now = max(self._now, self._bench.now or self._now)

    def _goes_on(self, following: QueryTestStep | None) -> bool:
        """Whether the next step has events at the end of a wait.

        Otherwise answers that end with the wait become final, too.
        """
        if following is None or following.wait_ms is not None:
            return False
        at = following.at_ms
        return at is None or _EPOCH + at * _MILLISECOND == self._now

    def _later(self, rest: Sequence[QueryTestStep], missing: Sequence[ExpectedAnswer]) -> str:
        """A hint, if answers that are missing come at a later step or at the end."""
        if not missing:
            return ""
        before = len(self._bench.matches)
        try:
            for number, step in enumerate(rest):
                self._take(step, rest[number + 1] if number + 1 < len(rest) else None)
            self._bench.close()
        except SpaseqError:
            return ""
        still, _ = unpaired(missing, self._bench.matches[before:], self._prefixes)
        if len(still) == len(missing):
            return ""
        return (
            "\nIt comes later: an answer is final when no event of its time can follow. "
            'A step `wait = "1 SECONDS"` lets time pass.'
        )

    def _said(self, step: QueryTestStep) -> str:
        """A step as the report names it."""
        now = format_time((self._now - _EPOCH) // _MILLISECOND)
        if step.wait_ms is not None:
            return f"wait {duration_text(step.wait_ms)}, until {now}"
        return f"{step.stream} at {now}"


def _replay(file: QueryTestFile, test: QueryTest, text: str) -> None:
    """Run the query over whole files; `_Difference` if other answers come."""
    streams: dict[str, Any] = {
        name: Lifted(path, file.lifts[name]) if name in file.lifts else path
        for name, path in test.streams.items()
    }
    answers = list(run(file.query, streams, file.kb, "local", **_options(file)))
    if isinstance(test.answers, tuple):
        missing, unexpected = unpaired(test.answers, answers, _prefixes(text))
        if missing or unexpected:
            raise _Difference(test.line, _difference(missing, unexpected))
        return
    wanted = _answers_of(test.answers, file.query.stem)
    _compare_lines(test.line, wanted, [match.to_json() for match in answers])


def _answers_of(path: Path, query: str) -> list[dict[str, Any]]:
    """The answers of a query in a file of JSON lines, without their ids."""
    lines = read_user_text(path).splitlines()
    try:
        answers = [json.loads(line) for line in lines if line.strip()]
    except json.JSONDecodeError as error:
        raise SpaseqError(f"{path}: no JSON lines: {error}") from None
    return [_without_id(answer) for answer in answers if answer.get("query") == query]


def _without_id(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "id"}


def _compare_lines(
    line: int, wanted: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]
) -> None:
    """`_Difference` at the first answer that differs."""
    for number, (want, got) in enumerate(zip(wanted, answers, strict=False), 1):
        if want != _without_id(got):
            raise _Difference(
                line,
                f"answer {number}:\n  expected {json.dumps(want)}\n  got      {json.dumps(got)}",
            )
    if len(wanted) != len(answers):
        raise _Difference(line, f"expected {len(wanted)} answers, got {len(answers)}")


def _difference(missing: Sequence[ExpectedAnswer], unexpected: Sequence[Match]) -> str:
    lines = [f"  expected {want}, which did not come" for want in missing]
    lines += [f"  got      {_shown(match)}, which nothing expects" for match in unexpected]
    return "\n".join(lines)


def _shown(match: Match) -> str:
    """An answer as a test could expect it."""
    if match.answer.graph is not None:
        return " ".join(f"{s} {p} {o} ." for s, p, o in match.answer.graph)
    return f"{{{', '.join(f'{name} = {term.n3()}' for name, term in match.bindings.items())}}}"


def _prefixes(text: str) -> Mapping[str, str]:
    return {prefix.prefix: prefix.iri for prefix in parse(text).prologue.prefixes}


def _options(file: QueryTestFile) -> dict[str, Any]:
    if file.entailment is None:
        return {}
    return {"ontology": file.ontology, "entailment": file.entailment}


def progress_line(path: Path, outcomes: Sequence[TestOutcome]) -> str:
    """A file with a dot for each test that passed and an F for each that failed."""
    return f"{path} {''.join('F' if outcome.failure else '.' for outcome in outcomes)}"


def failures(path: Path, outcomes: Sequence[TestOutcome]) -> Iterator[str]:
    """Each failed test of a file: its name, its place, and the differences."""
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
    """The numbers of failed and passed tests, and the duration."""
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
