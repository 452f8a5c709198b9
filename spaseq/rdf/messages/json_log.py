"""Quads of JSON-LD messages, a line each: NDJSON-LD.

Lines are parsed together where each is known to be one object. Lines of a known shape need
no parser.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import Any

import pyoxigraph as ox

from spaseq import thresholds
from spaseq.compiled.mode import interpreted
from spaseq.limits import Limits
from spaseq.rdf.documents.document_events import (
    PARSER_ERRORS,
    VALUE_BYTES,
    MeasuredDocument,
    parser_reason,
)
from spaseq.rdf.inputs.contexts import JsonLdContexts, NamedContexts
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import PARSED_BYTES
from spaseq.rdf.messages.message_lines import (
    MARK,
    MessageLines,
    MessageText,
    Report,
    WrittenQuads,
    joined,
)
from spaseq.rdf.messages.message_quads import LoggedLines, in_halves, marked
from spaseq.rdf.messages.message_shapes import KnownShapes, learned

_NAMED_CONTEXT = re.compile(rb'"@context"\s*:\s*["\[]')
"""The sign of a context that may name another one, as one of several may."""

_BLANK_GRAPH = re.compile(rb"^[^ \n]+ [^ \n]+ [^\n]* _:[^ \n]+ \.$", re.MULTILINE)
"""A quad in the graph of a blank node; or a literal that looks like its end."""

_MARKED_OBJECT = f'{{"{MARK}": {{"@value": "{MARK}"}}, '.encode()
_SEPARATOR = f', "{MARK}", '.encode()
_BETWEEN = f', {{"@id": "{MARK}", "{MARK}": {{"@value": ""}}}},\n'.encode()


@dataclass(frozen=True, slots=True)
class JsonMessage:
    """A line as the parser gets it, and the context that an earlier line has set."""

    message: MessageText
    text: bytes
    context: bytes
    measured: bool  # whether the text may be nested too deep, or be no object
    alone: bool  # whether it means something else beside others


def is_small(text: bytes, limits: Limits) -> bool:
    """Whether a text can be parsed without measuring it."""
    brackets = text.count(b"{") + text.count(b"[")
    values = brackets + text.count(b",")
    return (
        len(text) <= PARSED_BYTES
        and brackets <= limits.nesting
        and values <= limits.event_bytes // VALUE_BYTES
    )


def _objects(texts: Sequence[bytes]) -> Sequence[Any]:
    """The object of each text; None if a text is not just one object.

    They are parsed together, with a string between two of them. If each string is found at its
    position, each text is one value.
    """
    try:
        values = json.loads(b"[" + _SEPARATOR.join(texts) + b"]")
        if len(values) == 2 * len(texts) - 1 and all(value == MARK for value in values[1::2]):
            return values[::2]  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        if len(texts) == 1:
            return [None]  # the parser knows the reason
    half = len(texts) // 2
    return [*_objects(texts[:half]), *_objects(texts[half:])] if half else [None] * len(texts)


Refuse = Callable[[MessageText, Exception], None]
"""Called with a message, or a part of one, that is bad, and the reason."""


def _raise(message: MessageText, error: Exception) -> None:
    raise error


class JsonLog:
    """Parses the lines of one file in order; a line may set the context of those after it.

    `report` is called with the line, the reason and the text of each line that is malformed.
    """

    has_shapes = True
    """Whether the quads of lines with one shape differ only in their values."""

    def __init__(
        self, base: str | None, contexts: JsonLdContexts, limits: Limits, report: Report
    ) -> None:
        self._base, self._limits, self._report = base, limits, report
        self._named = NamedContexts(dict(contexts.named), limits.event_bytes)
        self._asks_names = contexts.own is not None  # whether `@id` at the top names the event
        self._context = b""  # that of the last context message
        self._shapes = KnownShapes()  # of messages with this context
        self._unknown, self._patience = 0, thresholds.current.shape_messages
        if contexts.own is not None:
            context = self._named.inlined({"@context": json.loads(contexts.own)})
            self._context = json.dumps(context["@context"]).encode()

    def parsed(self, log: Iterator[LoggedLines]) -> Iterator[MessageLines]:
        """The quads of the messages, some messages at a time."""
        for lines in log:
            bad: list[tuple[int, str, str]] = []

            def refuse(message: MessageText, error: Exception, bad: Any = bad) -> None:
                bad.append((message.line, parser_reason(error), message.shown))

            quads = self._read(lines, refuse)
            for each in sorted(bad):
                self._report(*each)
            yield quads

    def _read(self, lines: LoggedLines, refuse: Refuse) -> MessageLines:
        """The quads of some messages; a parser reads those that have no known shape."""
        parts, at = list[MessageLines](), 0
        while at < len(lines):
            shapes, unknown = self._shapes, len(lines)
            if self.has_shapes:
                unknown = max(int(self._patience) - self._unknown, 1)
            for first, end, quads in shapes.spans(lines, at, unknown):
                if quads is not None:
                    parts.append(quads)
                else:
                    parts += self._parsed(lines.messages(first, end), refuse)
                at = end
                if self._shapes is not shapes:
                    break
        return joined(parts)

    def _learn(self, ready: Sequence[JsonMessage]) -> None:
        """Learn a shape from the last of some messages, if there have been enough of them."""
        self._unknown += len(ready)
        if not (self.has_shapes and ready and self._unknown >= self._patience) or interpreted():
            return
        last, shape = ready[-1], None
        if last.measured or last.context != self._context:
            return
        text = last.message.text.strip()
        try:
            contexts = [self._named.inlined(json.loads(text))]
            if self._context:
                contexts.append({"@context": json.loads(self._context)})
            shape = learned(text, contexts, self._alone)
        except PARSER_ERRORS:
            pass  # the error of the line has been reported
        self._unknown = 0
        if shape is None:
            self._patience *= 2
        else:
            self._patience = thresholds.current.shape_messages
            self._shapes.add(shape)

    def _alone(self, text: bytes) -> bytes:
        """The quads of one message."""
        (message,) = self._ready(MessageText(text, 1), text, json.loads(text), _raise)
        return self._together([message]).text

    def _parsed(self, run: Sequence[MessageText], refuse: Refuse) -> Iterator[MessageLines]:
        """The quads of messages that a parser reads."""
        ready: list[JsonMessage] = []
        for message, text, value in self._values(run):
            try:
                ready += self._ready(message, text, value, refuse)
            except PARSER_ERRORS as error:
                refuse(message, error)
        for _, several in groupby(ready, lambda each: (each.context, each.alone and id(each))):
            yield from in_halves(
                [*several], self._together, lambda each, error: refuse(each.message, error)
            )
        self._learn(ready)

    def _values(self, run: Sequence[MessageText]) -> Iterator[tuple[MessageText, bytes, Any]]:
        """The messages, without white space; and the object of each that needs no measuring."""
        texts = [message.text.strip() for message in run]
        small = [text[:1] == b"{" and is_small(text, self._limits) for text in texts]
        values = iter(_objects([*compress(texts, small)]))
        for message, text, has_value in zip(run, texts, small, strict=True):
            yield message, text, next(values) if has_value else None

    def _ready(
        self, message: MessageText, text: bytes, value: Any, refuse: Refuse
    ) -> Sequence[JsonMessage]:
        """A message in the form for the parser; a context message sets the context.

        Raises:
            PARSER_ERRORS: the message is no object, or exceeds a limit.
        """
        if message.refusal is not None:
            raise ValueError(message.refusal)
        if text[:1] != b"{":
            raise ValueError("a message is an object in one line, and this is none")
        if text == b"{}":
            return ()
        is_measured = value is None
        is_alone = value is None or ("@graph" in value and "@id" not in value)
        if b"@context" in text or b"\\u" in text:
            value = self.measured_value(text) if value is None else value
            named = text.count(b"@context") > 1 or _NAMED_CONTEXT.search(text)
            value = self._named.inlined(value) if named else value
            if list(value) == ["@context"]:
                context = json.dumps(value["@context"]).encode()
                self._quads(
                    b'{"@context": ' + context + b"}", is_measured
                )  # an invalid context is bad
                self._context, self._shapes = context, KnownShapes()
                return ()
            if named:
                text = json.dumps(value).encode()
        if self._asks_names and text[1:].strip() != b"}":
            text = _MARKED_OBJECT + text[1:]
        return [JsonMessage(message, text, self._context, is_measured, is_alone)]

    def measured_value(self, text: bytes) -> Any:
        """The JSON value of a text of any size."""
        measured = MeasuredDocument(io.BytesIO(text), Format.JSONLD, self._limits, int)
        while measured.read(1 << 20):  # it refuses what is nested too deep
            pass
        return json.loads(text)

    def _together(self, run: Sequence[JsonMessage]) -> MessageLines:
        """The quads of messages with one context."""
        text = _BETWEEN.join(each.text for each in run)
        if len(run) > 1:
            text = b"[" + text + b"]"
        if context := run[0].context:
            text = b'{"@context": ' + context + b', "@graph": ' + text + b"}"
        quads = self._quads(text, run[0].measured)
        if len(run) > 1 and b" _:" in quads and _BLANK_GRAPH.search(quads) is not None:
            raise ValueError("perhaps the graph of a message that is nothing else")
        return marked(quads, [each.message.line for each in run])

    def _quads(self, text: bytes, measured: bool) -> bytes:
        written = WrittenQuads(self._limits)
        data: Any = io.BytesIO(text)
        if measured:
            data = MeasuredDocument(data, Format.JSONLD, self._limits, written.tell)
        return written.take(ox.parse(data, ox.RdfFormat.JSON_LD, base_iri=self._base))
