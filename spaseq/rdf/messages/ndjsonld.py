"""NDJSON-LD: each line is a JSON-LD object, and a message.

The rules are those of the draft "RDF Messages", section 2.2: a line `{"@context": ...}` alone is no
message, but the context of those after it; `{}` is an empty message. Nesting is measured before a
parser sees it. Remote contexts are not fetched.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, Any, cast
from uuid import uuid4

import numpy as np
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
from spaseq.rdf.inputs.contexts import JsonLdContexts, NamedContexts
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.messages.message import MessageText
from spaseq.rdf.messages.message_block import MessageBlock, gathered, joined

_NAMED_CONTEXT = re.compile(rb'"@context"\s*:\s*["\[]|@context(?s:.*)@context')
"""A context that may name another one."""

_MARK = f"urn:uuid:{uuid4()}"  # no input can know it
_MARKED = f'{{"{_MARK}": {{"@value": "{_MARK}"}}, '.encode()
_MARK_TERM = f'"{_MARK}"'

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

    def __init__(
        self, base: str | None, contexts: JsonLdContexts, limits: Limits, report: Report
    ) -> None:
        self._base, self._limits, self._report = base, limits, report
        self._named = NamedContexts(dict(contexts.named), limits.event_bytes)
        self._asks_names = contexts.own is not None  # whether `@id` at the top names the event
        self._context = b""  # that of the last context message
        if contexts.own is not None:
            own = self._named.inlined({"@context": json.loads(contexts.own)})
            self._context = json.dumps(own["@context"]).encode()

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
                    yield self._gathered(parts)
                    parts, size = [], 0
        except READ_ERRORS:
            yield self._gathered(parts)  # what was read before counts
            raise
        yield self._gathered(parts)

    def _gathered(self, parts: list[tuple[QuadBlock, int]]) -> MessageBlock:
        """Messages as one block. The subject of the mark names the event; the mark is dropped."""
        block = gathered(parts)
        quads = block.quads
        if not self._asks_names or _MARK_TERM not in quads.terms:
            return block
        marks = quads.o == list(quads.terms).index(_MARK_TERM)
        names = [""] * len(parts)
        for number, code in zip(block.message[marks], quads.s[marks].tolist(), strict=True):
            text = quads.terms[code]
            names[number] = text if text[0] == "<" else ""
        kept = np.flatnonzero(~marks)
        return replace(block, quads=quads.rows(kept), message=block.message[kept], names=names)

    def _parsed(self, message: MessageText) -> QuadBlock:
        if message.refusal is not None:
            raise ValueError(message.refusal)
        text = message.text.strip()
        if text[:1] != b"{":
            raise ValueError("a message is an object in one line, and this is none")
        if text == b"{}":
            return BlockBuilder().block()
        if b"@context" in text or b"\\u" in text:
            value = self._value(text)
            if list(value) == ["@context"]:
                context = json.dumps(value["@context"]).encode()
                self._quads(b'{"@context": ' + context + b"}")  # a context that is none is bad
                self._context = context
                return BlockBuilder().block()
            if _NAMED_CONTEXT.search(text):
                text = json.dumps(value).encode()
        if self._asks_names and text[1:].strip() != b"}":
            text = _MARKED + text[1:]
        if self._context:
            text = b'{"@context": ' + self._context + b', "@graph": ' + text + b"}"
        return self._quads(text)

    def _value(self, text: bytes) -> dict[str, Any]:
        """The object with known contexts in the place of their IRIs."""
        measured = MeasuredDocument(io.BytesIO(text), Format.JSONLD, self._limits, int)
        while measured.read(1 << 20):  # it refuses what is nested too deep
            pass
        value: dict[str, Any] = json.loads(text)
        return self._named.inlined(value) if _NAMED_CONTEXT.search(text) else value

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
