"""Quads of the messages of a log of RDF Messages, with pyoxigraph.

Many messages are parsed together, with a triple between two of them that marks the delimiter. If
the parser refuses the text, the messages are parsed one by one, so only a malformed one is lost.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, TypeVar, cast
from uuid import uuid4

import numpy as np
import pyoxigraph as ox

from spaseq.limits import Limits
from spaseq.possessive import possessive
from spaseq.rdf.columns.quad_block import DEFAULT_GRAPH, MALFORMED, BlockBuilder, QuadBlock
from spaseq.rdf.documents.document_lines import PARSER_ERRORS, parser_reason
from spaseq.rdf.documents.measured_document import MeasuredDocument
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import literal_size, long_event, long_literal
from spaseq.rdf.messages.message_block import (
    SHOWN,
    MessageBlock,
    MessageText,
    Report,
    alone,
    gathered,
    joined,
)

TOGETHER_BYTES = 1 << 20
"""About how many bytes of messages are parsed together."""

_BLOCK_BYTES = 1 << 24
"""Most bytes of the terms of a block, about."""

QUAD_BYTES = 1 << 11
"""What each quad adds to the size of its terms, so that a block has at most 8,192 quads."""

_MARK = f"<urn:uuid:{uuid4()}>"  # no input can know it
_MARKED = f'{_MARK} {_MARK} "" .\n'.encode()

_VERSION = possessive(
    rb"""^[ \t]*+VERSION[ \t]++(?:"[^"\n]*+"|'[^'\n]*+')[ \t]*+(?:\#[^\n]*+)?\r?$""", re.MULTILINE
)
_SYNTAX = {Format.RDFM: ox.RdfFormat.N_QUADS, Format.RDFM_TRIG: ox.RdfFormat.TRIG}


_Message = TypeVar("_Message")


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


def fill_block(builder: BlockBuilder, quads: Iterator[ox.Quad], has_graphs: bool) -> int:
    """Add the next quads to an empty block. Returns the size of their terms, 0 at the end."""
    codes = builder.codes
    code = codes.setdefault
    add_s, add_p, add_o, add_g = (c.append for c in (builder.s, builder.p, builder.o, builder.g))
    default = ox.DefaultGraph
    size = 0
    for quad in quads:
        # One text of four terms is faster than four texts. Only objects contain spaces.
        subject, predicate, object_ = str(quad).split(" ", 2)
        named = has_graphs and type(quad.graph_name) is not default
        if named:
            object_, graph = object_.rsplit(" ", 1)
        add_s(code(subject, len(codes)))
        add_p(code(predicate, len(codes)))
        add_o(code(object_, len(codes)))
        add_g(code(graph, len(codes)) if named else DEFAULT_GRAPH)
        size += QUAD_BYTES + len(subject) + len(predicate) + len(object_)
        if size >= _BLOCK_BYTES:
            break
    return max(size - QUAD_BYTES * len(builder), len(builder))


def without_long_literals(
    block: QuadBlock, form: Format, limits: Limits, report: Report
) -> QuadBlock:
    """The block without the triples whose literals exceed the limit, which are reported."""
    least = limits.literal_bytes // 4  # a character has up to four bytes
    if not block.terms or max(map(len, block.terms)) <= least:
        return block
    reasons = {
        code: reason
        for code, text in enumerate(block.terms)
        if len(text) > least
        and (reason := long_literal(literal_size(text.encode()), limits)) is not None
    }
    if not reasons:
        return block
    bad = np.isin(block.o, list(reasons))
    for code in block.o[bad].tolist():
        report(None, reasons[code], block.terms[code][:SHOWN])
    s, p, o = (np.where(bad, MALFORMED, column) for column in (block.s, block.p, block.o))
    marked = replace(block, s=s, p=p, o=o)
    if not form.has_graphs:
        return marked
    return marked.rows(np.flatnonzero(~bad | (block.g != DEFAULT_GRAPH)))


def in_halves(
    run: Sequence[_Message],
    parsed: Callable[[Sequence[_Message]], MessageBlock],
    refuse: Callable[[_Message, Exception], None],
) -> Iterator[MessageBlock]:
    """The quads of messages that are parsed together; where that fails, of each half by itself."""
    try:
        yield parsed(run)
    except PARSER_ERRORS as error:
        if len(run) > 1:
            for half in (run[: len(run) // 2], run[len(run) // 2 :]):
                yield from in_halves(half, parsed, refuse)
        elif run:
            refuse(run[0], error)


def cut_at_marks(block: QuadBlock, mark: str, lines: Sequence[int], limits: Limits) -> MessageBlock:
    """Messages, which begin at these lines, without the triples about the mark between them.

    Raises ValueError if some message has to be parsed by itself.
    """
    code = block.terms.index(mark) if mark in block.terms else DEFAULT_GRAPH
    marks = block.s == code
    if int(marks.sum()) != max(len(lines) - 1, 0) or (block.g[marks] != DEFAULT_GRAPH).any():
        raise ValueError("a delimiter within a statement or graph")
    if max(map(len, block.terms), default=0) > limits.literal_bytes // 4:
        raise ValueError("perhaps a literal is too long")
    kept = np.flatnonzero(~marks)
    return MessageBlock(block.rows(kept), np.cumsum(marks)[kept], lines)


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
        return gathered([*in_halves(good, self._block, self._refuse)])

    def _block(self, run: Sequence[MessageText]) -> MessageBlock:
        block = self._parsed([message.text for message in run])
        if len(run) == 1:
            block = without_long_literals(block, Format.TRIG, self._limits, self._report)
            return alone(block, run[0].first_line)
        return cut_at_marks(block, _MARK, [message.first_line for message in run], self._limits)

    def _refuse(self, message: MessageText, error: Exception) -> None:
        line, within = message.first_line, getattr(error, "lineno", None)
        if within is not None:
            line = message.line + within - 1 - (1 if self._prologue else 0)
        self._report(line, parser_reason(error), message.shown)

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

    def _keep_prologue(self, parser: Any) -> None:
        if self._form is Format.RDFM:
            return
        self._base = parser.base_iri or self._base
        prefixes = [f"@prefix {name}: <{iri}> ." for name, iri in parser.prefixes.items()]
        self._prologue = (" ".join(prefixes) + "\n").encode() if prefixes else b""
