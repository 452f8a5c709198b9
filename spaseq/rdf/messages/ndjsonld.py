"""NDJSON-LD: each line is a JSON-LD object, and a message.

The rules are those of the draft "RDF Messages", section 2.2: a line `{"@context": ...}` alone is no
message, but the context of those after it; `{}` is an empty message. Nesting is measured before a
parser sees it. Remote contexts are not fetched.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import IO, cast

import pyoxigraph as ox

from spaseq.limits import Limits
from spaseq.rdf.columns.quad_block import BlockBuilder, QuadBlock
from spaseq.rdf.documents.document_blocks import (
    PARSER_ERRORS,
    Report,
    fill_block,
    parser_reason,
    without_long_literals,
)
from spaseq.rdf.documents.measured_document import MeasuredDocument
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.messages.message import MessageText
from spaseq.rdf.messages.message_block import MessageBlock, gathered, joined

_TOGETHER = 1 << 13
"""About how many quads of messages become one block."""


def json_messages(data: IO[bytes], limits: Limits) -> Iterator[MessageText]:
    """The lines of a file. Of a line that is too long, only the begin."""
    line, most = 0, limits.event_bytes + 1
    while text := data.readline(most):
        line += 1
        if line == 1:
            text = text.removeprefix(b"\xef\xbb\xbf")
        refusal = long_event(limits) if len(text) == most else None
        yield MessageText(text, line, refusal)
        while len(text) == most and not text.endswith(b"\n"):
            text = data.readline(most)


class JsonLog:
    """Parses the lines of one file in order; a line may set the context of those after it.

    `report` is called with the line, the reason and the text of each line that is malformed.
    """

    def __init__(self, base: str | None, limits: Limits, report: Report) -> None:
        self._base, self._limits, self._report = base, limits, report
        self._context = b""  # that of the last context message

    def blocks(self, messages: Iterator[MessageText]) -> Iterator[MessageBlock]:
        """The quads of the messages, some messages at a time."""
        parts: list[tuple[QuadBlock, int]] = []
        size = 0
        try:
            for message in messages:
                try:
                    block = self._parsed(message)
                except PARSER_ERRORS as error:
                    self._report(message.line, parser_reason(error), message.shown)
                    continue
                parts.append((block, message.line))
                size += len(block) + 1
                if size >= _TOGETHER:
                    yield gathered(parts)
                    parts, size = [], 0
        except READ_ERRORS:
            yield gathered(parts)  # what was read before counts
            raise
        yield gathered(parts)

    def _parsed(self, message: MessageText) -> QuadBlock:
        if message.refusal is not None:
            raise ValueError(message.refusal)
        text = message.text.strip()
        if text[:1] != b"{":
            raise ValueError("a message is an object in one line, and this is none")
        if text == b"{}":
            return BlockBuilder().block()
        if b"@context" in text or b"\\u" in text:
            context = self._context_alone(text)
            if context is not None:
                self._context = context
                return BlockBuilder().block()
        if self._context:
            text = b'{"@context": ' + self._context + b', "@graph": ' + text + b"}"
        return self._quads(text)

    def _context_alone(self, text: bytes) -> bytes | None:
        """The context of a message that has nothing else; None for other messages."""
        measured = MeasuredDocument(io.BytesIO(text), Format.JSONLD, self._limits, int)
        while measured.read(1 << 20):  # it refuses what is nested too deep
            pass
        found = json.loads(text)
        if list(found) != ["@context"]:
            return None
        context = json.dumps(found["@context"]).encode()
        self._quads(b'{"@context": ' + context + b"}")  # a context that is none is bad
        return context

    def _quads(self, text: bytes) -> QuadBlock:
        builder, blocks, size = BlockBuilder(), list[QuadBlock](), 0
        measured = MeasuredDocument(
            io.BytesIO(text), Format.JSONLD, self._limits, lambda: len(builder) + len(blocks)
        )
        parser = ox.parse(cast("IO[bytes]", measured), ox.RdfFormat.JSON_LD, base_iri=self._base)
        while found := fill_block(builder, parser, has_graphs=True):
            size += found
            if size > self._limits.event_bytes:
                raise ValueError(long_event(self._limits))
            blocks.append(builder.block(size=found))
            builder = BlockBuilder()
        return without_long_literals(joined(blocks), Format.JSONLD, self._limits, self._report)
