"""JSON messages that wrap events in another form: NGSI-LD and CloudEvents.

Each event of a message becomes JSON-LD, which `JsonLog` parses. CloudEvents 1.0 come in structured
mode: objects, and arrays of them. An event's graph has its data, and the attributes of its
envelope.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any
from urllib.parse import quote, urljoin

import pyoxigraph as ox

from spaseq.limits import Limits
from spaseq.rdf.documents.document_events import PARSER_ERRORS
from spaseq.rdf.inputs.contexts import NO_CONTEXTS
from spaseq.rdf.inputs.formats import Format, format_of_media
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.messages.json_log import JsonLog, JsonMessage, Refuse, is_small
from spaseq.rdf.messages.message_lines import MessageText, Report
from spaseq.rdf.messages.message_quads import LoggedLines, logged_lines
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.rdf.terms.times import parse_datetime

_DATE_TIME = "http://www.w3.org/2001/XMLSchema#dateTime"

VOCABULARY = "urn:spaseq:cloudevents:"
"""The properties of an event: this, and the name of an attribute of its envelope."""

_TEXTS = {
    Format.NQUADS: ox.RdfFormat.N_QUADS,
    Format.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
}
_BODY = frozenset(("data", "data_base64", "datacontenttype"))
_ATTRIBUTE = re.compile(r"[a-z0-9]+")
_NEEDED = "specversion", "id", "source", "type"


@dataclass(frozen=True, slots=True)
class WrappedEvent:
    """An event as JSON-LD.

    Attributes:
        name: its IRI.
        time: the text of an xsd:dateTime; None: the time of the message's arrival, if it has one.
        nodes: its graph.
        context: the context of the message, as in JSON-LD, or None.
        about: values of the event itself by property, which are in its graph, too.
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
        """The events of a message, and the errors of its parts.

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

    `encoded` says that it is a part of an IRI already, so it may contain `%`.
    """
    return quote(text, safe="-._~:@!$&'()*+,;=/?" + "%" * encoded)


class CloudEventLog(WrappedLog):
    """Parses CloudEvents; the events of a batch one by one."""

    def _events(self, value: Any) -> Iterator[WrappedEvent | str]:
        if not isinstance(value, dict):
            yield "a CloudEvent is an object, and this is none"
            return
        given = {name: value.get(name) for name in _NEEDED}
        missing = [name for name, each in given.items() if not isinstance(each, str) or not each]
        if missing:
            yield f"a CloudEvent needs {', '.join(missing)} as text"
            return
        if not value["specversion"].startswith("1."):
            yield f"CloudEvents of version {value['specversion'][:20]} are not known, only 1.0"
            return
        source = self._source(value["source"])
        try:
            nodes, said = self._data(value)
        except (ValueError, SyntaxError) as error:
            yield f"the data of a CloudEvent cannot be read: {error}"
            return
        about = {
            f"{VOCABULARY}{name}": {"@id": source} if name == "source" else each
            for name, each in value.items()
            if name not in _BODY and _ATTRIBUTE.fullmatch(name) and _is_plain(each)
        }
        own = iri_part(value["id"]).replace("&", "%26")  # so that no two sources share a name
        name = f"{source}{'&' if '#' in source else '#'}{own}"
        if said is not None:
            about[f"{VOCABULARY}data"] = said
        time = value.get("time")
        text = time if time is None or isinstance(time, str) else json.dumps(time)
        yield WrappedEvent(name, text, nodes, self._own if nodes else None, about)

    def _source(self, source: str) -> str:
        """The source as an IRI: a relative one is resolved, or follows a URN."""
        if is_absolute_iri(source):
            return source
        if self._base is not None:
            return urljoin(self._base, iri_part(source, True))
        return f"urn:spaseq:cloudevents:source:{iri_part(source, True)}"

    def _data(self, event: Mapping[str, Any]) -> tuple[list[Any], Any]:
        """The data as nodes, or else as the value of a property; None for none."""
        media = event.get("datacontenttype") or "application/json"
        if not isinstance(media, str) or not isinstance(event.get("data_base64", ""), str):
            raise ValueError("datacontenttype and data_base64 are text")
        if "data" in event and "data_base64" in event:
            raise ValueError("data and data_base64 exclude each other")
        name = media.partition(";")[0].strip().lower()
        form = None if name == "text/plain" else format_of_media(media)
        is_json = form is Format.JSONLD or name.endswith("json")
        data = event.get("data")
        if "data_base64" in event:
            body = b64decode(event["data_base64"], validate=True)
            data = json.loads(body) if is_json else None
        elif "data" not in event or (data is None and not is_json):
            return [], None
        else:
            body = str(data).encode()
        if form in _TEXTS:
            return self._triples(body, _TEXTS[form]), None
        if is_json:
            return self._json_data(data)
        return [], body.decode() if name.startswith("text/") else None

    def _triples(self, body: bytes, form: ox.RdfFormat) -> list[Any]:
        """The triples of all graphs of a text, as nodes."""
        quads = ox.parse(body, form, base_iri=self._base)
        text = ox.serialize((quad.triple for quad in quads), format=ox.RdfFormat.JSON_LD)
        nodes: list[Any] = json.loads(text or b"[]")
        return nodes

    def _json_data(self, data: Any) -> tuple[list[Any], Any]:
        """JSON as nodes where it is JSON-LD, or the stream has a context; else as a value."""
        nodes = data if isinstance(data, list) else [data]
        if all(isinstance(node, dict) for node in nodes) and (
            self._own is not None or all("@context" in node or _is_expanded(node) for node in nodes)
        ):
            if any("@graph" in node for node in nodes):
                return self._triples(self._whole(nodes), ox.RdfFormat.JSON_LD), None
            return nodes, None
        return [], {"@value": data, "@type": "@json"}

    def _whole(self, nodes: list[Any]) -> bytes:
        """JSON-LD of nodes with graphs, in which all contexts stand."""
        context = {} if self._own is None else {"@context": self._own}
        wrapped = [{**context, **node} if "@context" not in node else node for node in nodes]
        return json.dumps(self._named.inlined(wrapped)).encode()


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _is_expanded(node: Mapping[str, Any]) -> bool:
    return all(key.startswith("@") or is_absolute_iri(key) for key in node)
