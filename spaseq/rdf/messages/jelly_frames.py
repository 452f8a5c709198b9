"""Jelly: binary frames, each a message (https://w3id.org/jelly), decoded by pyjelly.

Frames share tables of names, so nothing after a frame that cannot be decoded can be read. A frame
with a term that is no RDF costs only itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

import pyoxigraph as ox
from pyjelly import jelly
from pyjelly.parse.decode import Adapter, Decoder, ParserOptions, options_from_frame

from spaseq.limits import Limits
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.messages.message_lines import MessageLines, Report, joined, lines_of
from spaseq.rdf.messages.message_quads import TOGETHER_BYTES

_PRELUDE = b"\n"  # the tag of a row, with which a frame without a length begins


def jelly_messages(data: IO[bytes], limits: Limits, report: Report) -> Iterator[MessageLines]:
    """The quads of a file's frames, some frames at a time.

    `report` is called with the number of the frame, from 1, in place of a line.
    """
    parts: list[MessageLines] = []
    size = 0
    frames = _Frames(limits)
    number = 0
    try:
        for text in _frame_texts(data, limits):
            number += 1
            try:
                lines = frames.lines(text)
            except _BadTerm as error:
                report(number, str(error), f"frame {number}")
                continue
            parts.append(MessageLines(lines, [number]))
            size += len(lines) + 1
            if size >= TOGETHER_BYTES:
                yield joined(parts)
                parts, size = [], 0
    except (*READ_ERRORS, _BadFrame) as error:
        reason = f"the rest of the file is not read: {error}"
        report(number, reason, f"frame {number}")
    yield joined(parts)


class _BadFrame(Exception):
    """A frame that cannot be decoded."""


class _BadTerm(Exception):
    """A frame with something that is no RDF."""


def _frame_texts(data: IO[bytes], limits: Limits) -> Iterator[bytes]:
    """The bytes of each frame; its length is before it unless there is only one frame.

    The first three bytes decide, by the specification of Jelly.
    """
    head = _exactly(data, 3)
    if head[:1] == _PRELUDE and (head[1:2] != _PRELUDE or head[2:3] == _PRELUDE):
        rest = data.read(limits.event_bytes)
        if len(rest) == limits.event_bytes:
            raise _BadFrame(long_event(limits))
        yield head + rest
        return
    source = _Prefixed(head, data)
    while (length := _length(source)) is not None:
        if length > limits.event_bytes:
            raise _BadFrame(long_event(limits))
        text = _exactly(source, length)
        if len(text) < length:
            raise _BadFrame("the file ends within a frame")
        yield text


class _Prefixed:
    """A file of which some bytes have been read."""

    def __init__(self, head: bytes, data: IO[bytes]) -> None:
        self._head, self._data = head, data

    def read(self, size: int) -> bytes:
        if not self._head:
            return self._data.read(size)
        part, self._head = self._head[:size], self._head[size:]
        return part


def _exactly(source: Any, size: int) -> bytes:
    """The next `size` bytes; fewer at the end of the file."""
    parts, left = [], size
    while left and (part := source.read(min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _length(source: _Prefixed) -> int | None:
    """The next number, in base 128 with the lowest digit first; None at the end of the file."""
    value = 0
    for digit in range(5):
        byte = source.read(1)
        if not byte:
            if digit:
                raise _BadFrame("the file ends within the length of a frame")
            return None
        value |= (byte[0] & 0x7F) << (7 * digit)
        if byte[0] < 0x80:
            return value
    raise _BadFrame("the length of a frame is no number")


class _Frames:
    """Decodes frames in order."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._decoder: Any = None
        self._terms: Any = None

    def lines(self, text: bytes) -> bytes:
        """The quads of a frame.

        Raises:
            _BadTerm: a term of it is no RDF.
            _BadFrame: it cannot be decoded.
        """
        try:
            frame = jelly.RdfStreamFrame.FromString(text)
            if self._decoder is None:
                if not frame.rows:
                    return b""
                if frame.rows[0].WhichOneof("row") != "options":
                    raise ValueError("the first frame has no options")
                options: ParserOptions = options_from_frame(frame, delimited=True)
                self._terms = _FrameTerms(options, self._limits.event_bytes)
                self._decoder = Decoder(adapter=self._terms)
            rows = list(self._decoder.iter_rows(frame))
        except _TooLarge:
            raise _BadFrame(long_event(self._limits)) from None
        except Exception as error:  # of pyjelly and protobuf, which have many kinds
            raise _BadFrame(f"no Jelly: {str(error)[:200] or type(error).__name__}") from None
        bad, self._terms.bad, self._terms.size = self._terms.bad, None, 0
        if bad is not None:
            raise _BadTerm(bad)
        return lines_of(row for row in rows if row is not None)


class _TooLarge(Exception):
    """The terms of a frame exceed the limit."""


class _FrameTerms(Adapter):  # type: ignore[misc]  # pyjelly has no types
    """Terms as N-Triples texts; rows as (subject, predicate, object, graph or None).

    `bad` is the error of a term of the frame, `size` the characters of its terms.
    """

    def __init__(self, options: ParserOptions, most: int) -> None:
        super().__init__(options=options)
        self._most = most
        self._graph: str | None = None
        self.bad: str | None = None
        self.size = 0

    def iri(self, iri: str) -> str:
        self._count(iri)
        return self._checked(ox.NamedNode, iri)

    def default_graph(self) -> None:
        return None

    def bnode(self, bnode: str) -> str:
        self._count(bnode)
        try:
            return str(ox.BlankNode(bnode))
        except ValueError:  # Jelly allows any text
            return f"_:x{bnode.encode().hex()}"

    def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> str:
        self._count(lex)
        if language:
            return self._checked(ox.Literal, lex, language=language)
        if datatype is None:
            return str(ox.Literal(lex))
        try:
            return str(ox.Literal(lex, datatype=ox.NamedNode(datatype)))
        except ValueError as error:
            self.bad = f"a term that is no RDF: {error}"
            return '""'

    def triple(self, terms: Iterable[Any]) -> tuple[Any, ...]:
        s, p, o = terms
        return self._row(s, p, o, self._graph)

    def quad(self, terms: Iterable[Any]) -> tuple[Any, ...]:
        s, p, o, g = terms
        return self._row(s, p, o, g)

    def graph_start(self, graph_id: str | None) -> None:
        self._graph = graph_id

    def graph_end(self) -> None:
        self._graph = None

    def namespace_declaration(self, name: str, iri: str) -> None:
        return None

    def quoted_triple(self, terms: Iterable[Any]) -> str:
        s, p, o = terms
        self._row(s, p, o, None)
        return f"<<( {s} {p} {o} )>>"

    def _count(self, text: str) -> None:
        self.size += len(text)
        if self.size > self._most:
            raise _TooLarge

    def _row(self, s: str, p: str, o: str, g: str | None) -> tuple[str, str, str, str | None]:
        if s[:1] not in "<_" or s[:2] == "<<" or p[:1] != "<" or p[:2] == "<<":
            self.bad = f"{s} {p} {o} is no RDF triple"[:300]
        elif g is not None and (g[:1] not in "<_" or g[:2] == "<<"):
            self.bad = f"{g} is no name of a graph"[:300]
        return s, p, o, g

    def _checked(self, kind: Any, *given: str, **more: str) -> str:
        try:
            return str(kind(*given, **more))
        except ValueError as error:
            self.bad = f"a term that is no RDF: {error}"[:300]
            return "<urn:x>"
