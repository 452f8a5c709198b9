"""TriG, Turtle, JSON-LD and RDF/XML as lines of N-Quads, by pyoxigraph. An error ends the document.

Then everything that reads N-Quads reads these documents.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import IO, cast

import pyoxigraph as ox

from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.documents.measured_document import MeasuredDocument
from spaseq.rdf.inputs.contexts import (
    CORE_NAME,
    NO_CONTEXTS,
    NOT_FETCHED,
    REMOTE,
    JsonLdContexts,
    NamedContexts,
)
from spaseq.rdf.inputs.files import READ_ERRORS, Headed
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import UNREADABLE_TOKEN
from spaseq.rdf.inputs.stream_options import syntax_reason

_HEAD_BYTES = 1 << 16  # in which a document names the core context of NGSI-LD

_PIECE_BYTES = 1 << 20
"""About how many bytes of lines are written at a time."""

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
        contexts: that JSON-LD may name; it is then in memory as a whole. None: no user can give
            any.
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
        self._text = io.BytesIO()  # lines that are not read yet
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
        """JSON-LD in which the contexts stand that it names."""
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
    """Why a document cannot be read further."""
    if isinstance(error, MemoryError):  # the parser's own bound on a token
        return UNREADABLE_TOKEN
    return syntax_reason(error)
