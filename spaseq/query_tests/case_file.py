"""Reads `*.test.toml` files; all mistakes of a file are reported at once, each with its line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from spaseq.api.queries import check_queries
from spaseq.errors import QueryError, SpaseqError, UsageError
from spaseq.lang.spelling import suggested
from spaseq.options import REGIMES, PlanningOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.query_tests.case_nodes import (
    ExpectedAnswer,
    QueryTest,
    QueryTestFile,
    QueryTestStep,
    Row,
    turtle_graph,
)
from spaseq.rdf.terms.times import format_time, milliseconds, time_ms
from spaseq.storage.user_files import KeyPath, TomlMistakes, read_toml

SUFFIX = ".test.toml"
"""How the name of a test file ends."""

_FILE = ("query", "kb", "lift", "ontology", "entailment", "test")
_TEST = ("name", "step", "streams", "answers")
_STEP = ("stream", "at", "events", "wait", "answers")


def found_files(paths: Iterable[Path]) -> list[Path]:
    """The test files among paths: a file counts as it is, a directory with all below it.

    Raises:
        UsageError: there is no such path.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise UsageError(f"no such file or directory: {path}")
        below = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        files |= dict.fromkeys(below)
    return list(files)


def read_test_files(paths: Iterable[Path]) -> list[QueryTestFile]:
    """The tests in several files.

    Raises:
        UsageError: some cannot be read or have mistakes; all of all files are named.
    """
    read, mistakes = [], []
    for path in paths:
        try:
            read.append(read_test_file(path))
        except SpaseqError as error:
            mistakes.append(str(error))
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return read


def read_test_file(path: Path) -> QueryTestFile:
    """The tests in a file.

    Raises:
        InputError: the file cannot be read.
        UsageError: it has mistakes; all are named, each with its line.
    """
    text, table = read_toml(path)
    reading = _TestFileChecks(path, text)
    read = reading.file(table)
    reading.mistakes.check()
    return read


class _TestFileChecks:
    """One file while it is checked."""

    def __init__(self, path: Path, text: str) -> None:
        self.mistakes = TomlMistakes(path, text)
        self._mistake = self.mistakes.add
        self._path = path
        self._plan: QueryPlan | None = None
        self._lifted: frozenset[str] = frozenset()
        self._prefixes: Mapping[str, str] = {}

    def file(self, table: dict[str, Any]) -> QueryTestFile:
        """The checked content."""
        self._check_keys(table, _FILE, (), "the file")
        entailment = self._entailment(table.get("entailment"))
        ontology = tuple(
            str(self._beside(p, ("ontology",))) for p in self._texts(table.get("ontology", []))
        )
        given = self._table(table, "lift", ("lift",))
        lifts = {name: self._beside(p, ("lift", name)) for name, p in given.items()}
        self._lifted = frozenset(lifts)
        query = self._query(table.get("query"), PlanningOptions(ontology, entailment))
        given = self._table(table, "kb", ("kb",))
        kb = {iri: str(self._beside(p, ("kb", iri))) for iri, p in given.items()}
        tests = table.get("test", [])
        if not isinstance(tests, list) or not all(isinstance(t, dict) for t in tests):
            self._mistake(("test",), "test: each test begins with [[test]]")
            tests = []
        checked = tuple(self._test(number, test) for number, test in enumerate(tests))
        return QueryTestFile(self._path, query, kb, lifts, ontology, entailment, checked)

    def _query(self, given: object, planning: PlanningOptions) -> Path:
        """The query file, whose own mistakes are mistakes of the tests, too."""
        place = ("query",)
        if not isinstance(given, str):
            self._mistake(place, 'query = "FILE.rq" is missing')
            return self._path
        path = self._path.parent / given
        try:
            checked = next(check_queries(path, planning))
        except SpaseqError as error:
            self._mistake(place, str(error))
            return path
        if checked.errors:
            self._mistake(place, str(QueryError(checked.errors)))
        self._plan = checked.plan
        if checked.query is not None:
            self._prefixes = {p.prefix: p.iri for p in checked.query.prologue.prefixes}
        return path

    def _test(self, number: int, table: dict[str, Any]) -> QueryTest:
        place = ("test", number)
        self._check_keys(table, _TEST, place, "a test")
        name = table.get("name", f"test {number + 1}")
        if not isinstance(name, str):
            self._mistake(place, "name: a text is expected")
        streams = {
            self._stream(stream, place): self._beside(path, place)
            for stream, path in self._table(table, "streams", place).items()
        }
        steps = table.get("step", [])
        if bool(streams) == bool(steps):
            self._mistake(place, "a test has either streams, or steps: [[test.step]]")
        answers: Path | tuple[ExpectedAnswer, ...] = ()
        if streams:
            given = table.get("answers")
            whole = isinstance(given, str)
            answers = self._beside(given, place) if whole else self._answers(given, place) or ()
            if given is None:
                self._mistake(place, "answers: a list, or a file of JSON lines, is missing")
        elif "answers" in table:
            self._mistake(place, "answers: they belong to a step")
        start = _start(steps)
        line, checked = self.mistakes.line(place), self._steps(number, steps, start)
        return QueryTest(str(name), line, checked, streams, answers, start)

    def _steps(self, test: int, tables: object, start: int) -> tuple[QueryTestStep, ...]:
        """The steps of a test that starts at a time."""
        if not isinstance(tables, list):
            self._mistake(("test", test), "step: each begins with [[test.step]]")
            return ()
        steps: list[QueryTestStep] = []
        latest: int | None = None
        for number, table in enumerate(tables):
            place = ("test", test, "step", number)
            try:
                step = self._step(table, place, start)
            except UsageError as error:
                self._mistake(place, str(error))
                continue
            if step.at_ms is not None:
                if latest is not None and step.at_ms < latest:
                    self._mistake(place, f"at: {format_time(step.at_ms)} is before an earlier step")
                latest = step.at_ms
            elif latest is not None and step.wait_ms is not None:
                latest += step.wait_ms
            steps.append(step)
        return tuple(steps)

    def _step(self, table: object, place: KeyPath, start: int) -> QueryTestStep:
        """A step of a test that starts at a time."""
        if not isinstance(table, dict):
            raise UsageError("step: each begins with [[test.step]]")
        self._check_keys(table, _STEP, place, "a step")
        number = self.mistakes.line(place)
        answers = self._answers(table.get("answers"), place) if "answers" in table else None
        if "wait" in table:
            if table.keys() & {"events", "at", "stream"}:
                raise UsageError("a step either waits, or has events: stream, at, events")
            if not isinstance(table["wait"], str):
                raise UsageError('wait: a duration such as "5 SECONDS" is expected')
            return QueryTestStep(number, None, milliseconds(table["wait"]), "", (), answers)
        if "events" not in table:
            raise UsageError("a step has events, or a wait")
        stream = self._stream(table.get("stream"), place)
        at = _instant(table["at"], start) if "at" in table else None
        given = table["events"]
        events = tuple(
            self._event(each, stream) for each in (given if isinstance(given, list) else [given])
        )
        return QueryTestStep(number, at, None, stream, events, answers)

    def _event(self, given: object, stream: str) -> str | Row:
        """A graph in Turtle, or a row of a stream with a lift."""
        if stream not in self._lifted:
            if not isinstance(given, str):
                raise UsageError(f"events: {stream} has no lift, so Turtle in quotes is expected")
            return given
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except json.JSONDecodeError as error:
                raise UsageError(
                    f"events: {stream} has a lift, and this is no JSON: {error}"
                ) from None
        if not isinstance(given, dict):
            raise UsageError("events: a JSON object is expected, one row")
        return given

    def _answers(self, given: object, place: KeyPath) -> tuple[ExpectedAnswer, ...] | None:
        if given is None:
            return None
        if not isinstance(given, list):
            self._mistake(place, "answers: a list such as [{ road = ':r1' }] is expected")
            return None
        expected = []
        for each in given:
            if isinstance(each, str):
                expected.append(self._graph(each, place))
            elif isinstance(each, dict):
                self._check_variables(each, place)
                expected.append(ExpectedAnswer({n.removeprefix("?"): v for n, v in each.items()}))
            else:
                self._mistake(place, "answers: each is a table of variables, or a graph in Turtle")
        return tuple(expected)

    def _graph(self, text: str, place: KeyPath) -> ExpectedAnswer:
        try:
            turtle_graph(text, self._prefixes)
        except UsageError as error:
            self._mistake(place, f"answers: {error}")
        if self._plan is not None and self._plan.answers.template is None:
            self._mistake(place, "answers: a SELECT query gives tables of variables, no graphs")
        return ExpectedAnswer({}, text)

    def _check_variables(self, answer: Mapping[str, Any], place: KeyPath) -> None:
        if self._plan is None:
            return
        if self._plan.answers.template is not None:
            self._mistake(place, "answers: a CONSTRUCT query gives graphs; write them in Turtle")
            return
        known = [item.name for item in self._plan.answers.projection]
        for name in answer:
            if name.removeprefix("?") not in known:
                near = suggested(name, known)
                hint = f"did you mean {near}?" if near else f"it has {', '.join(known)}"
                self._mistake(place, f"answers: the query selects no {name}; {hint}")

    def _stream(self, given: object, place: KeyPath) -> str:
        """A stream's name in the query, or its IRI."""
        if not isinstance(given, str):
            self._mistake(place, "stream: the name of a stream is missing")
            return ""
        if self._plan is not None:
            inputs = self._plan.inputs
            names = [*inputs.stream_names, *inputs.streams]
            if given not in names:
                near = suggested(given, names)
                hint = f"did you mean {near}?" if near else f"it has {', '.join(names)}"
                self._mistake(place, f"stream: the query has no stream {given}; {hint}")
        return given

    def _entailment(self, given: object) -> str | None:
        if given is None or given in REGIMES:
            return None if given is None else str(given)
        self._mistake(("entailment",), f"entailment: one of {', '.join(REGIMES)}")
        return None

    def _beside(self, given: object, place: KeyPath) -> Path:
        """A path relative to the test file."""
        if not isinstance(given, str):
            self._mistake(place, "a path in quotes is expected")
            return self._path
        path = self._path.parent / given
        if not path.exists():
            self._mistake(place, f"there is no {path}")
        return path

    def _texts(self, given: object) -> list[str]:
        texts = [given] if isinstance(given, str) else given
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            return texts
        self._mistake(("ontology",), "ontology: a path, or a list of paths")
        return []

    def _table(self, table: Mapping[str, Any], key: str, place: KeyPath) -> dict[str, Any]:
        given = table.get(key, {})
        if isinstance(given, dict):
            return given
        self._mistake(place, f'{key}: a table such as {{ "NAME" = "FILE" }} is expected')
        return {}

    def _check_keys(
        self, table: Mapping[str, Any], keys: tuple[str, ...], place: KeyPath, of: str
    ) -> None:
        for key in table.keys() - set(keys):
            near = suggested(key, keys)
            hint = f"did you mean {near}?" if near else f"{of} has {', '.join(keys)}"
            self._mistake((*place, key), f"unknown key {key}; {hint}")


def _start(steps: object) -> int:
    """The time of a test's start: its first dateTime, or the epoch if it has seconds only."""
    for step in steps if isinstance(steps, list) else ():
        at = step.get("at") if isinstance(step, dict) else None
        if isinstance(at, str | datetime):
            with suppress(UsageError):  # a mistake, which the step reports
                return time_ms(at)
    return 0


def _instant(given: object, start: int) -> int:
    """A time in milliseconds since the epoch: a dateTime, or seconds after the test's start."""
    if isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given):
        return start + round(given * 1000)
    if isinstance(given, str | datetime):
        with suppress(UsageError):
            return time_ms(given)
    raise UsageError(
        f'at: a time such as "2026-01-01T10:00:00Z", or seconds, is expected, not {given!r}'
    )
