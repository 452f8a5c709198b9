"""Quads of the messages of a log of RDF Messages, with pyoxigraph.

Many messages are parsed together, with a triple between two of them that marks the delimiter. If
the parser refuses the text, the messages are parsed one by one, so only a malformed one is lost.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, cast
from uuid import uuid4

import numpy as np
import pyoxigraph as ox

from spaseq.limits import Limits
from spaseq.possessive import possessive
from spaseq.rdf.columns.quad_block import DEFAULT_GRAPH, BlockBuilder, QuadBlock
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
from spaseq.rdf.messages.message_block import MessageBlock, MessageText, gathered, joined

TOGETHER_BYTES = 1 << 20
"""About how many bytes of messages are parsed together."""

_MARK = f"<urn:uuid:{uuid4()}>"  # no input can know it
_MARKED = f'{_MARK} {_MARK} "" .\n'.encode()

_VERSION = possessive(
    rb"""^[ \t]*+VERSION[ \t]++(?:"[^"\n]*+"|'[^'\n]*+')[ \t]*+(?:\#[^\n]*+)?\r?$""", re.MULTILINE
)
_SYNTAX = {Format.RDFM: ox.RdfFormat.N_QUADS, Format.RDFM_TRIG: ox.RdfFormat.TRIG}


def together(messages: Iterable[MessageText]) -> Iterator[list[MessageText]]:
    """Runs of messages that are parsed together."""
    run: list[MessageText] = []
    size = 0
    try:
        for message in messages:
            run.append(message)
            size += len(message.text)
            if size >= TOGETHER_BYTES:
                yield run
                run, size = [], 0
    except READ_ERRORS:
        yield run  # what was read before counts
        raise
    if run:
        yield run


class LogParser:
    """Parses the messages of one log in order. Prefixes and the base hold for later messages, too.

    `report` is called with the line, the reason and the text of each message that is malformed.
    """

    def __init__(self, form: Format, base: str | None, limits: Limits, report: Report) -> None:
        self._form, self._limits, self._report = form, limits, report
        self._base = base
        self._prologue = b""  # the prefixes that earlier messages have declared, in one line

    def block(self, run: Sequence[MessageText]) -> MessageBlock:
        """The quads of some messages."""
        good = []
        for message in run:
            if message.refusal is None:
                good.append(message)
            else:
                self._report(message.first_line, message.refusal, message.shown)
        try:
            return self._all(good)
        except PARSER_ERRORS:
            return gathered(list(self._each(good)))

    def _all(self, run: Sequence[MessageText]) -> MessageBlock:
        block = self._parsed([message.text for message in run])
        code = block.terms.index(_MARK) if _MARK in block.terms else DEFAULT_GRAPH
        marks = block.p == code
        if int(marks.sum()) != max(len(run) - 1, 0) or (block.g[marks] != DEFAULT_GRAPH).any():
            raise ValueError("a delimiter within a statement or graph")
        if max(map(len, block.terms), default=0) > self._limits.literal_bytes // 4:
            raise ValueError("perhaps a literal is too long")  # `_each` tells which
        kept = np.flatnonzero(~marks)
        message = np.cumsum(marks)[kept]
        lines = [message.first_line for message in run]
        return MessageBlock(block.rows(kept), message, lines)

    def _each(self, run: Sequence[MessageText]) -> Iterator[tuple[QuadBlock, int]]:
        for message in run:
            try:
                yield self._checked(self._parsed([message.text])), message.first_line
            except PARSER_ERRORS as error:
                within = getattr(error, "lineno", None)
                line = message.first_line
                if within is not None:
                    line = message.line + within - 1 - self._prologue_lines
                self._report(line, parser_reason(error), message.shown)

    @property
    def _prologue_lines(self) -> int:
        return 1 if self._prologue else 0

    def _parsed(self, texts: Sequence[bytes]) -> QuadBlock:
        """The quads of texts with marks between them."""
        if self._form is Format.RDFM:
            texts = [_VERSION.sub(b"", t) if b"VERSION" in t else t for t in texts]
        text = self._prologue + (b"\n" + _MARKED).join(texts)
        builder, blocks, size = BlockBuilder(), list[QuadBlock](), 0
        measured = MeasuredDocument(
            io.BytesIO(text), Format.TRIG, self._limits, lambda: len(builder) + len(blocks)
        )
        source = cast("IO[bytes]", measured)
        parser: Any = ox.parse(source, _SYNTAX[self._form], base_iri=self._base)
        try:
            while found := fill_block(builder, parser, has_graphs=True):
                size += found
                if size > self._limits.event_bytes:
                    raise ValueError(long_event(self._limits))
                blocks.append(builder.block(size=found))
                builder = BlockBuilder()
        except PARSER_ERRORS:
            if len(texts) == 1:
                self._keep_prologue(parser)
            raise
        self._keep_prologue(parser)
        return joined(blocks)

    def _checked(self, block: QuadBlock) -> QuadBlock:
        return without_long_literals(block, Format.TRIG, self._limits, self._report)

    def _keep_prologue(self, parser: Any) -> None:
        if self._form is Format.RDFM:
            return
        self._base = parser.base_iri or self._base
        prefixes = [f"@prefix {name}: <{iri}> ." for name, iri in parser.prefixes.items()]
        self._prologue = (" ".join(prefixes) + "\n").encode() if prefixes else b""


_NAMED_CONTEXT = re.compile(rb'"@context"\s*:\s*["\[]|@context(?s:.*)@context')
"""A context that may name another one."""

_JSON_MARK = f"urn:uuid:{uuid4()}"  # no input can know it
_JSON_MARKED = f'{{"{_JSON_MARK}": {{"@value": "{_JSON_MARK}"}}, '.encode()
_JSON_MARK_TERM = f'"{_JSON_MARK}"'

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
        if not self._asks_names or _JSON_MARK_TERM not in quads.terms:
            return block
        marks = quads.o == list(quads.terms).index(_JSON_MARK_TERM)
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
            text = _JSON_MARKED + text[1:]
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
