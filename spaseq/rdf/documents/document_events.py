"""Events of TriG, Turtle, JSON-LD and RDF/XML documents.

pyoxigraph turns them into lines of N-Quads, which the usual readers read. An error ends the
document.

Parsers recurse into nested brackets, expand entities, and keep unfinished values. A small file
could exhaust the stack or the memory of the process. `MeasuredDocument` ends such a document with
an error right before the place that exceeds a limit, so the parser has all that comes before.
"""

from __future__ import annotations

import io
import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Any, cast

import pyoxigraph as ox

from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.documents.brackets import OPEN, Brackets, Depths, count, depths, syntax_of
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
from spaseq.rdf.inputs.sizes import PARSED_BYTES, UNREADABLE_TOKEN, many_values, unended_event
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


PIECE_BYTES = 1 << 16

VALUE_BYTES = 64
"""A parser may keep n / 64 values or elements of an event of n bytes. Each takes up to 600 bytes of
memory.
"""

_ENTITIES = "entity declarations are refused; write the text in place of the entity"
_LATE_DOCTYPE = "a document type declaration after the first element"
_LONG_NAME = f"a name or number of more than {PIECE_BYTES} bytes"
_NAME = re.compile(rb"""[^\s<>"'()\[\]{};,#]++""")
_DECLARATION = re.compile(rb"<!(?:(doctype)|(entity))", re.IGNORECASE)
_BEFORE = len(b"<!DOCTYPE") - 1  # most bytes of a declaration in the text before


class RefusedDocument(ValueError):
    """A document that exceeds a limit; `lineno` is the line, from 1, of the excess."""

    def __init__(self, reason: str, lineno: int) -> None:
        super().__init__(reason)
        self.lineno = lineno


class MeasuredDocument:
    """The bytes of a document, as a file for a parser.

    `read` raises RefusedDocument in front of brackets that are nested too deep, of an entity
    declaration, of a token that is longer than parsers read, and once there was too much text
    since the last quad. `quads` counts the quads that the parser has found.
    """

    def __init__(
        self, data: IO[bytes], form: Format, limits: Limits, quads: Callable[[], int]
    ) -> None:
        self._read: Callable[[int], bytes] = getattr(data, "read1", data.read)
        self._form = form
        self._limits = limits
        self._quads = quads
        self._syntax = syntax_of(form)
        self._deepest = limits.nesting
        if form is Format.RDFXML:  # elements without other elements in them are not counted
            self._deepest -= 1
        self._depth = 0
        self._elements = False  # whether there was a bracket
        self._doctype = False  # whether there was a document type declaration
        self._lines = 0  # line ends in the text before
        self._text = b""  # measured text, which the parser may have
        self._at = 0  # its part that the parser has
        self._rest = b""  # a token that more text may complete
        self._before = b""  # the last bytes before `_rest`
        self._begun = False  # whether a byte order mark has been looked for
        self._refusal: RefusedDocument | None = None
        self._last = 0  # quads when the text before was read
        self._bytes = 0  # since the last quad
        self._values = 0  # values that the parser may keep
        self._name = 0  # bytes of the name or number that all of the last text is part of

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        if self._at == len(self._text):
            self._advance()
        part = self._text[self._at : self._at + size]
        self._at += len(part)
        return part

    def _advance(self) -> None:
        """Measure the next tokens, and pass them to the parser."""
        self._lines += count(self._text, b"\n")
        self._before = self._text[-_BEFORE:] or self._before
        self._text, self._at = b"", 0
        while not self._text:
            if self._refusal is not None:
                raise self._refusal
            piece = self._piece(len(self._rest))
            text = self._rest + piece
            if not piece:
                self._end(text)
                if self._refusal is None:
                    return
                continue
            self._measure(text, self._syntax.of(text))
            if not self._text and len(self._rest) > PARSED_BYTES:
                self._refuse(UNREADABLE_TOKEN, b"")

    def _piece(self, least: int) -> bytes:
        """The next bytes of the file: about as many as the rest has, so that few scans see it."""
        parts = [self._read(PIECE_BYTES)]
        if not self._begun:
            self._begun = True
            while 0 < len(parts[0]) < len(BOM_UTF8) and BOM_UTF8.startswith(parts[0]):
                more = self._read(PIECE_BYTES)
                if not more:
                    break
                parts[0] += more
            marked, parts[0] = parts[0], parts[0].removeprefix(BOM_UTF8)
            if marked and not parts[0]:
                parts[0] = self._read(PIECE_BYTES)
        size = len(parts[0])
        while parts[-1] and size < least - PIECE_BYTES:
            parts.append(self._read(least - size))
            size += len(parts[-1])
        return b"".join(parts)

    def _end(self, text: bytes) -> None:
        """Pass the last bytes to the parser, which ignores missing ends of elements."""
        self._measure(text, Brackets(self._syntax.scanned(text).signs, len(text)))
        if self._form is Format.RDFXML and self._depth and self._refusal is None:
            self._refuse("the document ends within an element", text)

    def _measure(self, text: bytes, brackets: Brackets) -> None:
        """Divide a text into measured text, a rest and, if it exceeds a limit, the refusal."""
        signs, end = brackets
        self._text, self._rest = text[:end], text[end:]
        depth = self._depth
        depth_range = depths(signs, depth)
        self._depth = depth_range.end
        if self._form is Format.RDFXML and (b"!" in text or b"!" in self._before):
            self._declarations(text)
        if self._refusal is None and depth_range.most > self._deepest:
            self._refuse(
                f"nested more than {self._limits.nesting} deep; that is the limit (--max-nesting)",
                text[: self._place_of(text, depth)],
            )
        self._elements = self._elements or bool(signs)
        self._sizes(signs, depth_range)

    def _place_of(self, text: bytes, depth: int) -> int:
        """The offset of the first bracket that is too deep, if the text begins at this depth."""
        for offset, sign in self._syntax.places(text):
            depth = depth + 1 if sign == OPEN else max(depth - 1, 0)
            if depth > self._deepest:
                return offset
        return 0

    def _declarations(self, text: bytes) -> None:
        """Refuse entities anywhere after a document type declaration.

        Text and comments may contain their sign before; in a declaration, comments do not hide it.
        """
        shift = len(self._before)
        for match in _DECLARATION.finditer(self._before + text):
            offset = max(match.start() - shift, 0)
            if match.group(1):
                self._doctype = True
                if self._elements or self._syntax.of(text[:offset]).signs:
                    self._refuse(_LATE_DOCTYPE, text[:offset])
                    return
            elif self._doctype:
                self._refuse(_ENTITIES, text[:offset])
                return

    def _sizes(self, signs: bytes, depth_range: Depths) -> None:
        """Refuse text without end, and values that the parser would have to keep."""
        quads = self._quads()
        if quads != self._last:
            self._last, self._bytes = quads, 0
            if self._form is Format.JSONLD:
                self._values = 0
        self._bytes += len(self._text)
        if self._form is Format.JSONLD:  # the parser keeps an object until its end
            self._values += count(self._text, b",") + signs.count(OPEN)
        elif self._form is Format.RDFXML:  # and collections and XML literals until theirs
            self._values = count(self._text, b"<") + (self._values if depth_range.least > 1 else 0)
        most = self._limits.event_bytes
        self._name = self._name + len(self._text) if _NAME.fullmatch(self._text) else 0
        if self._refusal is not None:
            return
        if self._bytes > most:
            self._refuse(unended_event(self._limits), self._text)
        elif self._values > most // VALUE_BYTES:
            self._refuse(many_values(most // VALUE_BYTES), self._text)
        elif self._name > PIECE_BYTES:
            self._refuse(_LONG_NAME, b"")

    def _refuse(self, reason: str, good: bytes) -> None:
        """End the document with an error after this text."""
        self._text, self._rest = good, b""
        line = 1 + self._lines + good.count(b"\n")
        self._refusal = RefusedDocument(reason, line)
