"""NGSI-LD: notifications of context brokers, and entities (ETSI GS CIM 009).

An event is an entity of a notification. Normalized and concise attributes give the same triples;
key-values give the triples of JSON-LD. Times are `xsd:dateTime`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from spaseq.rdf.inputs.contexts import core_context, is_core_context
from spaseq.rdf.messages.wrapped_events import WrappedEvent, WrappedLog, instant, iri_part
from spaseq.rdf.terms.term import is_absolute_iri

_XSD = {"DateTime": "dateTime", "Date": "date", "Time": "time"}
_NULL = "urn:ngsi-ld:null"
_TYPES = {
    "value": "Property",
    "object": "Relationship",
    "languageMap": "LanguageProperty",
    "vocab": "VocabProperty",
    "json": "JsonProperty",
    "valueList": "ListProperty",
    "objectList": "ListRelationship",
}
"""The type of an attribute, by the member that has its value."""

_ATTRIBUTE_TYPES = frozenset(_TYPES.values()) | {"GeoProperty", "TemporalProperty"}
_GEOMETRIES = frozenset(
    ("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon")
)
_TIMES = "observedAt", "createdAt", "modifiedAt", "deletedAt"
_PREVIOUS = tuple(f"previous{name[0].upper()}{name[1:]}" for name in _TYPES)
_ABOUT = frozenset(
    (
        *_TYPES,
        *_PREVIOUS,
        *_TIMES,
        *("type", "@type", "id", "@id", "@context", "scope", "datasetId", "unitCode"),
        *("instanceId", "objectType", "expiresAt", "lang", "entity", "entityList"),
    )
)
"""Members of an entity or attribute that are no attributes."""


@cache
def _core_with_dates() -> dict[str, Any]:
    """The core context, whose dates and times are those of XML Schema."""
    dates = {name: f"http://www.w3.org/2001/XMLSchema#{_XSD[name]}" for name in _XSD}
    return core_context() | dates


class NgsiLog(WrappedLog):
    """Parses NGSI-LD messages: notifications, and entities by themselves."""

    def _events(self, value: Any) -> Iterator[WrappedEvent | str]:
        if not isinstance(value, dict):
            raise ValueError("an NGSI-LD message is a notification or an entity, and this is none")
        if value.get("type") != "Notification" or "data" not in value:
            yield from self._event(value, None, {}, value.get("@context"))
            return
        data = value["data"]
        entities = data if isinstance(data, list) else [data]
        given, name = value.get("@context"), value.get("id")
        for number, entity in enumerate(entities, 1):
            event_name = name if len(entities) == 1 or name is None else f"{name}#{number}"
            yield from self._event(entity, event_name, value, given)

    def _event(
        self, entity: Any, name: str | None, around: Mapping[str, Any], given: Any
    ) -> Iterator[WrappedEvent | str]:
        if not isinstance(entity, dict):
            yield "an entity of a notification is no object"
            return
        iri = entity.get("id", entity.get("@id"))
        if not isinstance(iri, str) or not is_absolute_iri(iri):
            yield f"an entity needs a URI as its id, and has {json.dumps(iri)[:100]}"
            return
        time = _time(entity, around)
        if name is None:
            name = f"{iri}#{iri_part(time or '')}"
        if not isinstance(name, str) or not is_absolute_iri(name):
            yield f"the id of a notification is a URI, and this is {json.dumps(name)[:100]}"
            return
        node = {key: value for key, value in entity.items() if key != "@context"}
        yield WrappedEvent(name, time, [_entity(node, time)], entity.get("@context", given))

    def _whole_context(self, given: Any) -> list[Any]:
        """The contexts of a message, else of its stream, followed by the core context."""
        context = self._own if given is None else given
        parts = context if isinstance(context, list) else [] if context is None else [context]
        kept = [part for part in parts if not (isinstance(part, str) and is_core_context(part))]
        return [*kept, _core_with_dates()]


def _instances(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _attributes(entity: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The instances of the attributes of an entity that are objects."""
    for key, value in entity.items():
        if key not in _ABOUT:
            yield from (each for each in _instances(value) if isinstance(each, dict))


def _time(entity: Mapping[str, Any], around: Mapping[str, Any]) -> str | None:
    """The time of an entity's event.

    It is the greatest at which an attribute was observed or deleted, else at which it was modified
    or created, else when the notification was sent. A text that is no time is kept, so that it is
    reported.
    """
    parts = [*_attributes(entity), entity]
    for keys in (("observedAt", "deletedAt"), ("modifiedAt",), ("createdAt",)):
        texts = [each[key] for each in parts for key in keys if key in each]
        if texts:
            return max(map(_text, texts), key=instant) if len(texts) > 1 else _text(texts[0])
    notified = around.get("notifiedAt")
    return None if notified is None else _text(notified)


def _text(time: Any) -> str:
    if isinstance(time, dict):
        time = time.get("@value")
    return time if isinstance(time, str) else json.dumps(time)


def _entity(entity: Mapping[str, Any], time: str | None) -> dict[str, Any]:
    """The entity with its attributes in normalized form; key-values stay unchanged."""
    if any(_is_attribute(each) for each in _attributes(entity)):
        return {
            key: value if key in _ABOUT else _normalized(value, time)
            for key, value in entity.items()
        }
    return {key: _simplified(value) for key, value in entity.items()}


def _is_attribute(value: Mapping[str, Any]) -> bool:
    """Whether an object is an attribute in normalized or concise form."""
    if any(key in value for key in _TYPES if key != "languageMap"):
        return True
    return _is_typed(value)


def _is_typed(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind in _ATTRIBUTE_TYPES


def _simplified(value: Any) -> Any:
    """A value of key-values. The value of an attribute with several instances is a list."""
    if isinstance(value, dict) and isinstance(value.get("dataset"), dict):
        return [*value["dataset"].values()]
    return value


def _normalized(value: Any, time: str | None) -> Any:
    """An attribute, or an array of its instances, in normalized form."""
    match value:
        case list() if all(isinstance(each, dict) and _is_instance(each) for each in value):
            return [_normalized(each, time) for each in value]
        case dict() if _is_instance(value):
            return _instance(value, time)
        case {"coordinates": list()} if _is_geometry(value):
            return {"type": "GeoProperty", "value": value}
    return {"type": "Property", "value": value}


def _is_geometry(value: Any) -> bool:
    form = value.get("type") if isinstance(value, dict) else None
    return isinstance(form, str) and form in _GEOMETRIES


def _is_instance(value: Mapping[str, Any]) -> bool:
    return _is_typed(value) or any(key in value for key in _TYPES)


def _instance(value: Mapping[str, Any], time: str | None) -> dict[str, Any]:
    parts = {key: each if key in _ABOUT else _normalized(each, time) for key, each in value.items()}
    member = next((key for key in _TYPES if key in value), None)
    if "type" not in parts and member is not None:
        parts["type"] = "GeoProperty" if _is_geometry(value[member]) else _TYPES[member]
    if member is not None and value[member] in (_NULL, {"@none": _NULL}, [_NULL]):
        del parts[member]
        if time is not None:
            parts.setdefault("deletedAt", time)
    return parts
