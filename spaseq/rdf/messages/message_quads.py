"""Quads of the messages of a log of RDF Messages, with pyoxigraph.

Many messages are parsed together, with a triple between two of them that marks the delimiter. If
the parser refuses the text, the messages are parsed one by one, so only a malformed one is lost.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import IO, Any, TypeVar, cast
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
from spaseq.rdf.documents.measured_document import VALUE_BYTES, MeasuredDocument
from spaseq.rdf.inputs.contexts import JsonLdContexts, NamedContexts
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.messages.message_block import MessageBlock, MessageText, alone, gathered, joined

TOGETHER_BYTES = 1 << 20
"""About how many bytes of messages are parsed together."""

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


def _in_halves(
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
                yield from _in_halves(half, parsed, refuse)
        elif run:
            refuse(run[0], error)


def _cut(block: QuadBlock, mark: str, lines: Sequence[int], limits: Limits) -> MessageBlock:
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
        return gathered([*_in_halves(good, self._block, self._refuse)])

    def _block(self, run: Sequence[MessageText]) -> MessageBlock:
        block = self._parsed([message.text for message in run])
        if len(run) == 1:
            block = without_long_literals(block, Format.TRIG, self._limits, self._report)
            return alone(block, run[0].first_line)
        return _cut(block, _MARK, [message.first_line for message in run], self._limits)

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


_NAMED_CONTEXT = re.compile(rb'"@context"\s*:\s*["\[]|@context(?s:.*)@context')
"""A context that may name another one."""

_JSON_MARK = f"u{uuid4().hex}:mark"  # no input can know it, and no context have its prefix
_JSON_MARKED = f'{{"{_JSON_MARK}": {{"@value": "{_JSON_MARK}"}}, '.encode()
_JSON_MARK_TERM = f'"{_JSON_MARK}"'
_JSON_BETWEEN = f', {{"@id": "{_JSON_MARK}", "{_JSON_MARK}": {{"@value": ""}}}},\n'.encode()

_SMALL_BYTES = 1 << 16
"""Longer messages are measured before anything else reads them, and parsed by themselves."""


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


@dataclass(frozen=True, slots=True)
class _JsonMessage:
    """A line as the parser gets it, and the context that an earlier line has set."""

    message: MessageText
    text: bytes
    context: bytes
    measured: bool  # whether the text may be nested too deep, or be no object
    alone: bool  # whether it means something else beside others


def _small_object(text: bytes, limits: Limits) -> dict[str, Any] | None:
    """The object that is all of a text without need of measuring; None if it may have."""
    brackets = text.count(b"{") + text.count(b"[")
    values = brackets + text.count(b",")
    if (
        len(text) > _SMALL_BYTES
        or brackets > limits.nesting
        or values > limits.event_bytes // VALUE_BYTES
    ):
        return None
    try:
        value: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None  # the parser knows the reason
    return value


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
        for run in together(messages):
            bad: list[tuple[int, str, str]] = []

            def refuse(message: MessageText, error: Exception, bad: Any = bad) -> None:
                bad.append((message.line, parser_reason(error), message.shown))

            block = self._block(run, refuse)
            for each in sorted(bad):
                self._report(*each)
            yield block

    def _block(
        self, run: Sequence[MessageText], refuse: Callable[[MessageText, Exception], None]
    ) -> MessageBlock:
        ready = []
        for message in run:
            try:
                found = self._ready(message)
            except PARSER_ERRORS as error:
                refuse(message, error)
            else:
                ready += [] if found is None else [found]
        parts: list[MessageBlock] = []
        for _, several in groupby(ready, lambda each: (each.context, each.alone and id(each))):
            parts += _in_halves(
                [*several], self._parsed, lambda each, error: refuse(each.message, error)
            )
        return self._named_events(gathered(parts))

    def _named_events(self, block: MessageBlock) -> MessageBlock:
        """The subject of the mark names the event of a message; the mark is dropped."""
        quads = block.quads
        if not self._asks_names or _JSON_MARK_TERM not in quads.terms:
            return block
        marks = quads.o == list(quads.terms).index(_JSON_MARK_TERM)
        names = [""] * len(block.lines)
        for number, code in zip(block.message[marks], quads.s[marks].tolist(), strict=True):
            text = quads.terms[code]
            names[number] = text if text[0] == "<" else ""
        kept = np.flatnonzero(~marks)
        return replace(block, quads=quads.rows(kept), message=block.message[kept], names=names)

    def _ready(self, message: MessageText) -> _JsonMessage | None:
        """A message as it is parsed; None if it has no quads. A context message sets the context.

        Raises:
            PARSER_ERRORS: the message is no object, or exceeds a limit.
        """
        if message.refusal is not None:
            raise ValueError(message.refusal)
        text = message.text.strip()
        if text[:1] != b"{":
            raise ValueError("a message is an object in one line, and this is none")
        if text == b"{}":
            return None
        value = _small_object(text, self._limits)
        is_measured = value is None
        is_alone = value is None or ("@graph" in value and "@id" not in value)
        if b"@context" in text or b"\\u" in text:
            value = self._measured(text) if value is None else value
            named = _NAMED_CONTEXT.search(text)
            value = self._named.inlined(value) if named else value
            if list(value) == ["@context"]:
                context = json.dumps(value["@context"]).encode()
                self._quads(
                    b'{"@context": ' + context + b"}", is_measured
                )  # a context that is none is bad
                self._context = context
                return None
            if named:
                text = json.dumps(value).encode()
        if self._asks_names and text[1:].strip() != b"}":
            text = _JSON_MARKED + text[1:]
        return _JsonMessage(message, text, self._context, is_measured, is_alone)

    def _measured(self, text: bytes) -> dict[str, Any]:
        """The object of a text of any size."""
        measured = MeasuredDocument(io.BytesIO(text), Format.JSONLD, self._limits, int)
        while measured.read(1 << 20):  # it refuses what is nested too deep
            pass
        value: dict[str, Any] = json.loads(text)
        return value

    def _parsed(self, run: Sequence[_JsonMessage]) -> MessageBlock:
        """The quads of messages with one context."""
        text = _JSON_BETWEEN.join(each.text for each in run)
        if len(run) > 1:
            text = b"[" + text + b"]"
        if context := run[0].context:
            text = b'{"@context": ' + context + b', "@graph": ' + text + b"}"
        quads, lines = self._quads(text, run[0].measured), [each.message.line for each in run]
        if len(run) > 1:
            if any(quads.terms[code][0] == "_" for code in np.unique(quads.g[quads.g >= 0])):
                raise ValueError("perhaps the graph of a message that is nothing else")
            return _cut(quads, f"<{_JSON_MARK}>", lines, self._limits)
        report = self._report
        return alone(without_long_literals(quads, Format.JSONLD, self._limits, report), lines[0])

    def _quads(self, text: bytes, measured: bool) -> QuadBlock:
        builder, blocks, size = BlockBuilder(), list[QuadBlock](), 0

        def found() -> int:
            return len(builder) + len(blocks)

        data: Any = io.BytesIO(text)
        if measured:
            data = MeasuredDocument(data, Format.JSONLD, self._limits, found)
        parser = ox.parse(data, ox.RdfFormat.JSON_LD, base_iri=self._base)
        while count := fill_block(builder, parser, has_graphs=True):
            size += count
            if size > self._limits.event_bytes:
                raise ValueError(long_event(self._limits))
            blocks.append(builder.block(size=count))
            builder = BlockBuilder()
        return joined(blocks)
