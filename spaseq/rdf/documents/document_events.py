"""Events of TriG, Turtle, JSON-LD and RDF/XML documents.

pyoxigraph turns them into lines of N-Quads, which the usual readers read. An error ends the
document.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Any, cast

import pyoxigraph as ox

from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.documents.measured_document import MeasuredDocument
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.contexts import (
    CORE_NAME,
    NO_CONTEXTS,
    NOT_FETCHED,
    REMOTE,
    JsonLdContexts,
    NamedContexts,
)
from spaseq.rdf.inputs.files import READ_ERRORS, Headed, InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import UNREADABLE_TOKEN
from spaseq.rdf.inputs.stream_options import REST, BadInput, OnBad, StreamOptions, syntax_reason
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import MAX_CHUNK_BYTES, AfterLines
from spaseq.rdf.lines.line_events import line_events, line_statements
from spaseq.rdf.lines.statements import StatementReader, Statements

_HEAD_BYTES = 1 << 16  # in which a document names the core context of NGSI-LD

_PIECE_BYTES = 1 << 20
"""Approximate bytes of lines that are written at a time."""

DOCUMENT_FORMATS = {
    Format.NQUADS: ox.RdfFormat.N_QUADS,
    Format.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
}

PARSER_ERRORS = (SyntaxError, ValueError, MemoryError, *READ_ERRORS)
"""Errors of the parser, or of the file that it reads; see `parser_reason`."""


class DocumentLines:
    """A document as a file of N-Quads, a line for each quad in the parser's order.

    `readinto` raises OSError where the text is malformed or exceeds a limit, after the lines
    before; `fault_line` is then the document's line, None if unknown. Blank nodes without a label
    have a random one (see `blank_labels`).

    Args:
        data: the document.
        form: its format, a key of `DOCUMENT_FORMATS`.
        base: the base IRI until the document sets its own.
        limits: bounds on nesting, and on text without a quad.
        contexts: the contexts that JSON-LD may name; the document is then in memory as a whole.
            None: there are none.
    """

    def __init__(
        self,
        data: IO[bytes],
        form: Format,
        base: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        contexts: JsonLdContexts | None = NO_CONTEXTS,
    ) -> None:
        self._data, self._form, self._base, self._limits = data, form, base, limits
        self._not_fetched = NOT_FETCHED if contexts else f"{REMOTE}; write it into the document"
        self._contexts = contexts or NO_CONTEXTS
        self._text = io.BytesIO()  # unread lines
        self._count = 0  # quads so far
        self._quads: Iterator[ox.Quad] | None = None
        self._ended = False
        self._fault: OSError | None = None
        self.fault_line: int | None = None

    def readinto(self, room: memoryview) -> int:
        """Read the next bytes into `room`; returns their number, 0 at the end."""
        while not (count := self._text.readinto(room)):
            if self._fault is not None:
                raise self._fault
            if self._ended:
                return 0
            self._advance()
        return count

    def _advance(self) -> None:
        self._text = io.BytesIO()
        try:
            ox.serialize(self._piece(self._text), self._text, ox.RdfFormat.N_QUADS)
        except PARSER_ERRORS as error:
            self._fault = OSError(self._reason(error))
            self.fault_line = getattr(error, "lineno", None)
        self._text.seek(0)

    def _piece(self, text: io.BytesIO) -> Iterator[ox.Quad]:
        """The next quads, until their lines have been written to `text`."""
        if self._quads is None:
            self._quads = self._parsed()
        for quad in self._quads:
            self._count += 1
            yield quad
            if text.tell() > _PIECE_BYTES:
                return
        self._ended = True

    def _parsed(self) -> Iterator[ox.Quad]:
        data = self._data
        is_named = bool(self._contexts.named)
        if self._form is Format.JSONLD and not is_named:
            head = data.read(_HEAD_BYTES)
            is_named, data = CORE_NAME in head, cast("IO[bytes]", Headed(head, data))
        if self._form is Format.JSONLD and is_named:
            data = self._with_contexts(data)
        measured = MeasuredDocument(data, self._form, self._limits, lambda: self._count)
        source = cast("IO[bytes]", measured)
        return ox.parse(source, DOCUMENT_FORMATS[self._form], base_iri=self._base)

    def _with_contexts(self, data: IO[bytes]) -> IO[bytes]:
        """JSON-LD with its named contexts inlined."""
        measured = MeasuredDocument(data, Format.JSONLD, self._limits, int)
        parts = []
        while part := measured.read(1 << 20):  # it refuses what is nested too deep
            parts.append(part)
        named = NamedContexts(dict(self._contexts.named), self._limits.event_bytes)
        try:
            return io.BytesIO(json.dumps(named.inlined(json.loads(b"".join(parts)))).encode())
        except RecursionError as error:
            raise ValueError(str(error)) from None

    def _reason(self, error: Exception) -> str:
        reason = parser_reason(error)
        if self._base is None and "No scheme found" in reason:
            reason += "; relative IRIs need a base (--base IRI, or base= in Python)"
        if "No LoadDocumentCallback" in reason:
            reason = f"a context that it names {self._not_fetched}"
        return reason


def parser_reason(error: Exception) -> str:
    """The reason why a document cannot be read further."""
    if isinstance(error, MemoryError):  # the parser's own bound on a token
        return UNREADABLE_TOKEN
    return syntax_reason(error)


def document_events(
    data: IO[bytes],
    file: InputFile,
    options: StreamOptions,
    counter: InstantCounter,
    arrival: Callable[[], int],
    on_bad: OnBad,
) -> Iterator[EventBatch]:
    """The events of a document, as `read_file` gives them.

    Only the report of the reason why the rest is not read has a line. All predicates are kept, so
    that the labels of blank nodes do not depend on the queries.
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
    """The limits of a document's lines: only literals and triple terms are limited."""
    return replace(limits, line_bytes=MAX_CHUNK_BYTES // 4)


def _without_lines(document: DocumentLines, on_bad: OnBad) -> OnBad:
    def report(bad: BadInput) -> None:
        line = document.fault_line if bad.reason.startswith(REST) else None
        on_bad(replace(bad, line=line))

    return report
