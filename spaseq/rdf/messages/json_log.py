"""Quads of JSON-LD messages, a line each: NDJSON-LD.

Lines are parsed together where each is known to be one object.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import IO, Any
from uuid import uuid4

import numpy as np
import pyoxigraph as ox

from spaseq.limits import Limits
from spaseq.rdf.columns.quad_block import BlockBuilder, QuadBlock
from spaseq.rdf.documents.document_lines import PARSER_ERRORS, parser_reason
from spaseq.rdf.documents.measured_document import VALUE_BYTES, MeasuredDocument
from spaseq.rdf.inputs.contexts import JsonLdContexts, NamedContexts
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import PARSED_BYTES, long_event
from spaseq.rdf.messages.message_block import (
    MessageBlock,
    MessageText,
    Report,
    alone,
    gathered,
    joined,
)
from spaseq.rdf.messages.message_quads import (
    cut_at_marks,
    fill_block,
    in_halves,
    together,
    without_long_literals,
)

_NAMED_CONTEXT = re.compile(rb'"@context"\s*:\s*["\[]|@context(?s:.*)@context')
"""A context that may name another one."""

_JSON_MARK = f"u{uuid4().hex}:mark"  # no input can know it, and no context have its prefix
_JSON_MARKED = f'{{"{_JSON_MARK}": {{"@value": "{_JSON_MARK}"}}, '.encode()
_JSON_MARK_TERM = f'"{_JSON_MARK}"'
_JSON_BETWEEN = f', {{"@id": "{_JSON_MARK}", "{_JSON_MARK}": {{"@value": ""}}}},\n'.encode()


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
class JsonMessage:
    """A line as the parser gets it, and the context that an earlier line has set."""

    message: MessageText
    text: bytes
    context: bytes
    measured: bool  # whether the text may be nested too deep, or be no object
    alone: bool  # whether it means something else beside others


def is_small(text: bytes, limits: Limits) -> bool:
    """Whether a text needs no measuring before it is parsed."""
    brackets = text.count(b"{") + text.count(b"[")
    values = brackets + text.count(b",")
    return (
        len(text) <= PARSED_BYTES
        and brackets <= limits.nesting
        and values <= limits.event_bytes // VALUE_BYTES
    )


def _small_object(text: bytes, limits: Limits) -> dict[str, Any] | None:
    """The object that is all of a text that needs no measuring; None if there is none."""
    if not is_small(text, limits):
        return None
    try:
        value: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None  # the parser knows the reason
    return value


Refuse = Callable[[MessageText, Exception], None]
"""Called with a message, or a part of one, that is bad, and the reason."""


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

    def _block(self, run: Sequence[MessageText], refuse: Refuse) -> MessageBlock:
        ready: list[JsonMessage] = []
        for message in run:
            try:
                ready += self._ready(message, refuse)
            except PARSER_ERRORS as error:
                refuse(message, error)
        parts: list[MessageBlock] = []
        for _, several in groupby(ready, lambda each: (each.context, each.alone and id(each))):
            parts += in_halves(
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

    def _ready(self, message: MessageText, refuse: Refuse) -> Sequence[JsonMessage]:
        """A message as it is parsed; a context message sets the context.

        Raises:
            PARSER_ERRORS: the message is no object, or exceeds a limit.
        """
        if message.refusal is not None:
            raise ValueError(message.refusal)
        text = message.text.strip()
        if text[:1] != b"{":
            raise ValueError("a message is an object in one line, and this is none")
        if text == b"{}":
            return ()
        value = _small_object(text, self._limits)
        is_measured = value is None
        is_alone = value is None or ("@graph" in value and "@id" not in value)
        if b"@context" in text or b"\\u" in text:
            value = self.measured_value(text) if value is None else value
            named = _NAMED_CONTEXT.search(text)
            value = self._named.inlined(value) if named else value
            if list(value) == ["@context"]:
                context = json.dumps(value["@context"]).encode()
                self._quads(
                    b'{"@context": ' + context + b"}", is_measured
                )  # a context that is none is bad
                self._context = context
                return ()
            if named:
                text = json.dumps(value).encode()
        if self._asks_names and text[1:].strip() != b"}":
            text = _JSON_MARKED + text[1:]
        return [JsonMessage(message, text, self._context, is_measured, is_alone)]

    def measured_value(self, text: bytes) -> Any:
        """The JSON value of a text of any size."""
        measured = MeasuredDocument(io.BytesIO(text), Format.JSONLD, self._limits, int)
        while measured.read(1 << 20):  # it refuses what is nested too deep
            pass
        return json.loads(text)

    def _parsed(self, run: Sequence[JsonMessage]) -> MessageBlock:
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
            return cut_at_marks(quads, f"<{_JSON_MARK}>", lines, self._limits)
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
