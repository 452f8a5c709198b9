"""JSON messages that hold events in a form of their own: NGSI-LD and CloudEvents.

What a message holds becomes JSON-LD, an event each, which `JsonLog` parses.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any
from urllib.parse import quote

from spaseq.limits import Limits
from spaseq.rdf.documents.document_lines import PARSER_ERRORS
from spaseq.rdf.inputs.contexts import NO_CONTEXTS
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.messages.json_log import JsonLog, JsonMessage, Refuse, is_small
from spaseq.rdf.messages.message_lines import MessageText, Report
from spaseq.rdf.messages.message_quads import LoggedLines, logged_lines
from spaseq.rdf.terms.times import parse_datetime

_DATE_TIME = "http://www.w3.org/2001/XMLSchema#dateTime"


@dataclass(frozen=True, slots=True)
class WrappedEvent:
    """An event as JSON-LD.

    Attributes:
        name: its IRI.
        time: the text of an xsd:dateTime; None: that of the message's arrival, if it has one.
        nodes: its graph.
        context: that of the message, as in JSON-LD; None for none.
        about: values of the event itself by property, which stand in its graph, too.
    """

    name: str
    time: str | None
    nodes: Sequence[Any]
    context: Any = None
    about: dict[str, Any] = field(default_factory=dict)


class WrappedLog(JsonLog):
    """Parses the messages of one file; each has some events, which are brought into order of time.

    Args:
        options: how the stream is read.
        report: as of `JsonLog`.
    """

    has_shapes = False  # texts are checked, and percent-encoded

    def __init__(self, options: StreamOptions, report: Report) -> None:
        named = NO_CONTEXTS if options.contexts.own else options.contexts
        super().__init__(options.base, named, options.limits, report)
        self._own = None if options.contexts.own is None else json.loads(options.contexts.own)
        self._time = options.time_predicate
        self._context_text = lru_cache(64)(self._context_text_of)

    @abstractmethod
    def _events(self, value: Any) -> Iterator[WrappedEvent | str]:
        """The events of a message, and what is wrong with parts of it.

        Raises:
            PARSER_ERRORS: the whole message is bad.
        """

    def _ready(
        self, message: MessageText, text: bytes, value: Any, refuse: Refuse
    ) -> Sequence[JsonMessage]:
        if message.refusal is not None:
            raise ValueError(message.refusal)
        if not text:
            return ()
        if value is None:
            is_read = is_small(text, self._limits)
            value = json.loads(text) if is_read else self.measured_value(text)
        ready: list[tuple[str | None, JsonMessage]] = []
        for each in value if isinstance(value, list) else [value]:
            for event in self._events(each):
                try:
                    if isinstance(event, str):
                        raise ValueError(event)
                    ready.append((event.time, self._json(message, event)))
                except PARSER_ERRORS as error:
                    refuse(message, error)
        if len(ready) > 1:
            ready.sort(key=lambda each: instant(each[0]))
        return [made for _, made in ready]

    def _json(self, message: MessageText, event: WrappedEvent) -> JsonMessage:
        nodes = [*event.nodes, *([{"@id": event.name, **event.about}] if event.about else [])]
        graph: dict[str, Any] = {"@id": event.name}
        if event.time is not None:
            graph[self._time] = {"@value": event.time, "@type": _DATE_TIME}
        graph["@graph"] = nodes
        written = json.dumps(graph)
        if '"@context"' in written:
            written = json.dumps(self._named.inlined(graph))
        text = written.encode()
        context = self._context_text(json.dumps(event.context))
        return JsonMessage(message, text, context, not is_small(text, self._limits), False)

    def _whole_context(self, given: Any) -> Any:
        """The context with which the nodes of a message with this context are read, or None."""
        return given

    def _context_text_of(self, given: str) -> bytes:
        context = self._whole_context(json.loads(given))
        if context is None:
            return b""
        return json.dumps(self._named.inlined({"@context": context})["@context"]).encode()


def instant(text: str | None) -> float:
    """The time (ms) that an xsd:dateTime says; infinite for a text that is none."""
    time_ms = None if text is None else parse_datetime(text)
    return float("inf") if time_ms is None else time_ms


def json_documents(data: IO[bytes], limits: Limits) -> Iterator[LoggedLines]:
    """The messages of a file: its lines, or else the whole of it."""
    log = logged_lines(data, limits)
    for lines in log:
        for number in range(len(lines)):
            (message,) = lines.messages(number, number + 1)
            if message.refusal is not None or _is_json(message.text):
                yield lines
                yield from log
                return
            if message.text.strip():
                text = lines.text(number)
                for more in log:
                    if len(text) > limits.event_bytes:
                        break
                    text += more.text(0)
                yield LoggedLines.one(text, message.line, limits)
                return


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def iri_part(text: str, encoded: bool = False) -> str:
    """A text as a part of an IRI, where other characters are percent-encoded.

    `encoded` says that it is a part of an IRI already, so `%` may stand in it.
    """
    return quote(text, safe="-._~:@!$&'()*+,;=/?" + "%" * encoded)
