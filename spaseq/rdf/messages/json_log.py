"""Quads of JSON-LD messages, a line each: NDJSON-LD.

Lines are parsed together where each is known to be one object. Those of a known shape need no
parser.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import IO, Any

import pyoxigraph as ox

from spaseq import thresholds
from spaseq.limits import Limits
from spaseq.rdf.documents.document_lines import PARSER_ERRORS, parser_reason
from spaseq.rdf.documents.measured_document import VALUE_BYTES, MeasuredDocument
from spaseq.rdf.inputs.contexts import JsonLdContexts, NamedContexts
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import PARSED_BYTES, long_event
from spaseq.rdf.messages.message_lines import (
    MARK,
    MARKED,
    MessageLines,
    MessageText,
    Report,
    WrittenQuads,
    joined,
)
from spaseq.rdf.messages.message_quads import in_halves, marked, together
from spaseq.rdf.messages.message_shapes import MessageShape, learned

_SHAPES = 8
"""Shapes that are known at a time; each costs a look at every message of another one."""

_NAMED_CONTEXT = re.compile(rb'"@context"\s*:\s*["\[]')
"""A context that may name another one, as may one of several."""

_BLANK_GRAPH = re.compile(rb"^[^ \n]+ [^ \n]+ [^\n]* _:[^ \n]+ \.$", re.MULTILINE)
"""A quad in the graph of a blank node; or a literal that looks like its end."""

_MARKED_OBJECT = f'{{"{MARK}": {{"@value": "{MARK}"}}, '.encode()
_SEPARATOR = f', "{MARK}", '.encode()
_BETWEEN = f', {{"@id": "{MARK}", "{MARK}": {{"@value": ""}}}},\n'.encode()


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


def _objects(texts: Sequence[bytes]) -> Sequence[Any]:
    """The object that is all of each text; None if there is none.

    They are parsed together, with a string between two of them. If each string is found at its
    place, each text is a value by itself.
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
    """Whether the quads of lines with one shape differ only where their values stand."""

    def __init__(
        self, base: str | None, contexts: JsonLdContexts, limits: Limits, report: Report
    ) -> None:
        self._base, self._limits, self._report = base, limits, report
        self._named = NamedContexts(dict(contexts.named), limits.event_bytes)
        self._asks_names = contexts.own is not None  # whether `@id` at the top names the event
        self._context = b""  # that of the last context message
        self._shapes: list[MessageShape] = []  # of messages with this context, the last used first
        self._unknown, self._patience = 0, thresholds.current.shape_messages
        if contexts.own is not None:
            own = self._named.inlined({"@context": json.loads(contexts.own)})
            self._context = json.dumps(own["@context"]).encode()

    def parsed(self, messages: Iterator[MessageText]) -> Iterator[MessageLines]:
        """The quads of the messages, some messages at a time."""
        for run in together(messages):
            bad: list[tuple[int, str, str]] = []

            def refuse(message: MessageText, error: Exception, bad: Any = bad) -> None:
                bad.append((message.line, parser_reason(error), message.shown))

            found = self._lines(run, refuse)
            for each in sorted(bad):
                self._report(*each)
            yield found

    def _lines(self, run: Sequence[MessageText], refuse: Refuse) -> MessageLines:
        """The quads of some messages; a parser reads those that have no known shape."""
        known, parts, at = self._of_shapes(run), list[MessageLines](), 0
        while at < len(run):
            end = next((i for i in range(at, len(run)) if known[i] is None), len(run))
            if end > at:
                lines = [message.line for message in run[at:end]]
                parts.append(MessageLines(MARKED.join(filter(None, known[at:end])), lines))
            last = min(len(run), end + self._patience) if self.has_shapes else len(run)
            at = next((i for i in range(end, last) if known[i] is not None), last)
            shapes = self._shapes
            parts += self._parsed(run[end:at], refuse)
            if self._shapes is not shapes:
                known[at:] = self._of_shapes(run[at:])
        return joined(parts)

    def _of_shapes(self, run: Sequence[MessageText]) -> list[bytes | None]:
        """The quads of each message that has a known shape."""
        return [self._of_shape(message) for message in run] if self._shapes else [None] * len(run)

    def _of_shape(self, message: MessageText) -> bytes | None:
        text = message.text.strip()
        if message.refusal is not None or len(text) > PARSED_BYTES:
            return None
        for place, shape in enumerate(self._shapes):
            quads = shape.quads(text)
            if quads is not None:
                if place:
                    self._shapes.insert(0, self._shapes.pop(place))
                return quads if len(quads) <= self._limits.event_bytes else None
        return None

    def _learn(self, ready: Sequence[JsonMessage]) -> None:
        """Learn a shape from the last of some messages, if there have been enough of them."""
        self._unknown += len(ready)
        if not (self.has_shapes and ready and self._unknown >= self._patience):
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
            pass  # what is wrong with the line has been reported
        self._unknown = 0
        if shape is None:
            self._patience *= 2
        else:
            self._patience = thresholds.current.shape_messages
            self._shapes = [shape, *self._shapes[: _SHAPES - 1]]

    def _alone(self, text: bytes) -> bytes:
        """The quads of one message."""
        (message,) = self._ready(MessageText(text, 1), text, json.loads(text), _raise)
        return self._together([message]).text

    def _parsed(self, run: Sequence[MessageText], refuse: Refuse) -> Iterator[MessageLines]:
        """The quads of messages that a parser reads."""
        ready: list[JsonMessage] = []
        for message, text, value in self._read(run):
            try:
                ready += self._ready(message, text, value, refuse)
            except PARSER_ERRORS as error:
                refuse(message, error)
        for _, several in groupby(ready, lambda each: (each.context, each.alone and id(each))):
            yield from in_halves(
                [*several], self._together, lambda each, error: refuse(each.message, error)
            )
        self._learn(ready)

    def _read(self, run: Sequence[MessageText]) -> Iterator[tuple[MessageText, bytes, Any]]:
        """The messages, without white space; and the object of each that needs no measuring."""
        texts = [message.text.strip() for message in run]
        small = [text[:1] == b"{" and is_small(text, self._limits) for text in texts]
        values = iter(_objects([*compress(texts, small)]))
        for message, text, has_value in zip(run, texts, small, strict=True):
            yield message, text, next(values) if has_value else None

    def _ready(
        self, message: MessageText, text: bytes, value: Any, refuse: Refuse
    ) -> Sequence[JsonMessage]:
        """A message as it is parsed; a context message sets the context.

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
                )  # a context that is none is bad
                self._context, self._shapes = context, []
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
        found = self._quads(text, run[0].measured)
        if len(run) > 1 and b" _:" in found and _BLANK_GRAPH.search(found) is not None:
            raise ValueError("perhaps the graph of a message that is nothing else")
        return marked(found, [each.message.line for each in run])

    def _quads(self, text: bytes, measured: bool) -> bytes:
        written = WrittenQuads(self._limits)
        data: Any = io.BytesIO(text)
        if measured:
            data = MeasuredDocument(data, Format.JSONLD, self._limits, written.tell)
        return written.take(ox.parse(data, ox.RdfFormat.JSON_LD, base_iri=self._base))
