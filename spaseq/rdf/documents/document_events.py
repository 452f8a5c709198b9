"""Events of TriG, Turtle, JSON-LD and RDF/XML documents, read as lines of N-Quads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Any, cast

from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.documents.document_lines import DocumentLines
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.stream_options import REST, BadInput, OnBad, StreamOptions
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import MAX_CHUNK_BYTES, AfterLines
from spaseq.rdf.lines.line_events import line_events, line_statements
from spaseq.rdf.lines.statements import StatementReader, Statements


def document_events(
    data: IO[bytes],
    file: InputFile,
    options: StreamOptions,
    counter: InstantCounter,
    arrival: Callable[[], int],
    on_bad: OnBad,
) -> Iterator[EventBatch]:
    """The events of a document, as `read_file` gives them.

    Reports have no line, but for the one that says why the rest is not read. All predicates are
    kept, so that the labels of blank nodes do not depend on the queries.
    """
    given = options.base, options.limits, options.contexts
    document = DocumentLines(data, file.format, *given)
    options = replace(options, predicates=None, limits=limits_of_lines(options.limits))
    report = _without_lines(document, on_bad)
    lines = cast("IO[bytes]", document)
    yield from line_events(lines, file, options, counter, arrival, report)


def document_statements(
    document: DocumentLines, file: str, limits: Limits, on_bad: OnBad
) -> Iterator[Statements]:
    """The statements of a document, in its order."""
    reader = StatementReader(True, ArenaPool(2), limits=limits_of_lines(limits))
    given: Any = document, file, reader, AfterLines(), 1, _without_lines(document, on_bad)
    for statements, _, _ in line_statements(*given):
        yield statements
        del statements  # releases its arena


def limits_of_lines(limits: Limits) -> Limits:
    """The limits of a document's lines, of which only the literals and triple terms have some."""
    return replace(limits, line_bytes=MAX_CHUNK_BYTES // 4)


def _without_lines(document: DocumentLines, on_bad: OnBad) -> OnBad:
    def report(bad: BadInput) -> None:
        line = document.fault_line if bad.reason.startswith(REST) else None
        on_bad(replace(bad, line=line))

    return report
