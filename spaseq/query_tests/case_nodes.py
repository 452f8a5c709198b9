"""The checked contents of a test file, and the comparison of expected and found answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from spaseq.api.harness import with_full_stop
from spaseq.api.match import Match
from spaseq.errors import UsageError
from spaseq.rdf.terms.term import Term, split_literal
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
        line: its line in the file.
        at_ms: the time of the events, milliseconds since the epoch; None: the time of the step
            before.
        wait_ms: the time that passes; None if the step has events.
        stream: the name of the stream, or its IRI; "" for a wait.
        events: graphs in Turtle, or rows.
        answers: the answers that must have become final by this step; None if not checked.
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


def unpaired(
    expected: Sequence[ExpectedAnswer], answers: Sequence[Match], prefixes: Mapping[str, str]
) -> tuple[list[ExpectedAnswer], list[Match]]:
    """The expected answers that did not come, and the unexpected answers.

    Each answer matches at most one expected answer. A maximum matching counts, so an expected
    answer that names few variables takes none from another.

    Args:
        expected: in any order.
        answers: in any order.
        prefixes: the query's, which expected texts may use.
    """
    fits = [[n for n, got in enumerate(answers) if _fits(want, got, prefixes)] for want in expected]
    taken: dict[int, int] = {}  # the expected answer of each answer

    def pair(first: int) -> bool:
        """Find an answer for an expected one along an augmenting path."""
        by: dict[int, int] = {}  # the expected answer that has tried each answer
        left: dict[int, int | None] = {first: None}  # the answer that each one would give up
        for want in (queue := [first]):
            for got in (got for got in fits[want] if got not in by):
                by[got] = want
                if got in taken:
                    left[taken[got]] = got
                    queue.append(taken[got])
                    continue
                free: int | None = got
                while free is not None:
                    taken[free] = by[free]
                    free = left[by[free]]
                return True
        return False

    missing = [want for number, want in enumerate(expected) if not pair(number)]
    return missing, [got for number, got in enumerate(answers) if number not in taken]


def _fits(want: ExpectedAnswer, got: Match, prefixes: Mapping[str, str]) -> bool:
    if want.graph is not None:
        return got.answer.graph is not None and _same_graph(want.graph, got, prefixes)
    return all(
        name in got.bindings and same_value(value, got.bindings[name], prefixes)
        for name, value in want.bindings.items()
    )


def same_value(want: object, got: Term, prefixes: Mapping[str, str]) -> bool:
    """Whether a term equals a value of TOML.

    A text is an IRI (whole, in `<>`, or prefixed), the text of a literal, or a term in N-Triples.
    Numbers, truth values and times are compared by value.

    >>> same_value(":d1", Term("<http://e/d1>"), {"": "http://e/"})
    True
    >>> same_value(7, Term('"07"^^<http://www.w3.org/2001/XMLSchema#integer>'), {})
    True
    """
    if isinstance(want, str):
        return want in _texts(got) or _expanded(want, prefixes) == got.n3()
    value = got.to_python()
    if isinstance(want, bool) or isinstance(value, bool):
        return value is want
    if isinstance(want, int | float):
        return isinstance(value, int | float | Decimal) and _same_number(want, value)
    if isinstance(want, datetime):
        return isinstance(value, datetime) and _utc(want) == _utc(value)
    if isinstance(want, date | time):
        return bool(value in (want, str(want)))
    if isinstance(want, list):
        return isinstance(value, list) and value == want
    return False


def _texts(term: Term) -> tuple[str, ...]:
    """The forms of a term, without prefixed names."""
    match term.kind:
        case "iri":
            return term.n3(), term[1:-1]
        case "literal":
            return term.n3(), split_literal(term)[0]
        case _:
            return (term.n3(),)


def _expanded(text: str, prefixes: Mapping[str, str]) -> str | None:
    """The IRI of a prefixed name in `<>`; None if it is none."""
    prefix, colon, local = text.partition(":")
    return f"<{prefixes[prefix]}{local}>" if colon and prefix in prefixes else None


def _same_number(want: float, got: float | Decimal) -> bool:
    if isinstance(got, float):
        return got == want or (math.isnan(got) and math.isnan(want))
    if isinstance(want, float) and not math.isfinite(want):
        return False
    return Decimal(str(want)) == Decimal(got)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _same_graph(turtle: str, got: Match, prefixes: Mapping[str, str]) -> bool:
    """Whether CONSTRUCT made a graph, up to the names of its blank nodes."""
    from rdflib.compare import isomorphic

    assert got.graph is not None
    return bool(isomorphic(turtle_graph(turtle, prefixes), got.graph))


def turtle_graph(text: str, prefixes: Mapping[str, str]) -> Any:
    """An rdflib graph of Turtle that may use a query's prefixes; its last full stop may be missing.

    Raises:
        UsageError: it is no Turtle.
    """
    import rdflib  # 0.3 s that tests of SELECT queries need not pay

    head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in prefixes.items())
    try:
        return rdflib.Graph().parse(data=head + with_full_stop(text), format="turtle")
    except Exception as error:  # rdflib's parser raises many kinds
        raise UsageError(f"no graph in Turtle: {error}") from None
