"""CloudEvents 1.0 in structured mode: objects, and arrays of them.

An event's graph has its data, and what its envelope says of it.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

import pyoxigraph as ox

from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.message_formats import format_of_media
from spaseq.rdf.messages.wrapped_events import WrappedEvent, WrappedLog, iri_part
from spaseq.rdf.terms.term import is_absolute_iri

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


class CloudEventLog(WrappedLog):
    """Parses CloudEvents; those of a batch one by one."""

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
        """The source as an IRI: a relative one is resolved, or stands behind a URN."""
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
