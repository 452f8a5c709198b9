"""What a test file says, checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from spaseq.records import record

Row: TypeAlias = Mapping[str, Any]
"""One row of a stream with a lift."""


@record
class ExpectedAnswer:
    """An answer that a test expects.

    Attributes:
        bindings: by variable, a value of TOML; other variables are not compared.
        graph: the graph of a CONSTRUCT query in Turtle, in place of bindings.
    """

    bindings: Mapping[str, Any]
    graph: str | None = None

    def __str__(self) -> str:
        if self.graph is not None:
            return self.graph.strip()
        return f"{{{', '.join(f'{name} = {shown(v)}' for name, v in self.bindings.items())}}}"


@record
class QueryTestStep:
    """Events at a time, or a wait.

    Attributes:
        line: where it stands in the file.
        at_ms: the time of the events, milliseconds since the epoch; None: that of the step before.
        wait_ms: how long time passes; None if the step has events.
        stream: the name of the stream, or its IRI; "" for a wait.
        events: graphs in Turtle, or rows.
        answers: the ones that must have become final by this step; None if nobody looks.
    """

    line: int
    at_ms: int | None
    wait_ms: int | None
    stream: str
    events: tuple[str | Row, ...]
    answers: tuple[ExpectedAnswer, ...] | None


@record
class QueryTest:
    """One test.

    Attributes:
        name: as the report shows it.
        line: where it begins in the file.
        steps: in order of time; none if the test reads files.
        streams: by name of a stream, the file that it reads to its end.
        answers: of a test that reads files: a file of JSON lines, or the answers themselves.
        start_ms: the time of the test's start, milliseconds since the epoch.
    """

    name: str
    line: int
    steps: tuple[QueryTestStep, ...]
    streams: Mapping[str, Path]
    answers: Path | tuple[ExpectedAnswer, ...] = ()
    start_ms: int = 0


@record
class QueryTestFile:
    """The tests of one query, in a file.

    Attributes:
        path: of the file.
        query: the query file.
        kb: the files of the knowledge base, by graph IRI.
        lifts: the lift files, by name of the stream.
        ontology: ontology files.
        entailment: the entailment regime; None for none.
        tests: in the order of the file.
    """

    path: Path
    query: Path
    kb: Mapping[str, str]
    lifts: Mapping[str, Path]
    ontology: tuple[str, ...]
    entailment: str | None
    tests: tuple[QueryTest, ...]


def shown(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
