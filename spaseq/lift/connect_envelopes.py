"""Envelopes of Kafka Connect's JSON converter: `{"schema": ..., "payload": ...}`.

A row in an envelope is its payload. The schema gives the types of values without a JSON type:
decimals, dates and times of Kafka Connect and of Debezium. Values that Debezium marks as
unavailable are unbound.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext
from typing import Any

from spaseq.expr.numbers import write_decimal, write_double
from spaseq.lift.cells import Wrong
from spaseq.lift.python_values import python_cell
from spaseq.rdf.terms.term import XSD, literal_text

NAMES = frozenset(("schema", "payload"))
"""The members of an envelope."""

_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
_UNAVAILABLE = "__debezium_unavailable_value"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SCALE = 10_000
_FLOATS = {"float": "float", "float32": "float", "double": "double", "float64": "double"}


class Typed(str):
    """A value as the N-Triples text of its literal."""


def is_envelope(names: list[str]) -> bool:
    """Whether an object with these members is an envelope."""
    return len(names) == 2 and NAMES.issuperset(names) and names[0] != names[1]


def typed(value: Any, schema: Any) -> Any:
    """A value with the types of its schema; objects are lists of (name, value).

    Values are `Typed`, or `Wrong` if they are none of their type; others stay as they are.
    """
    if value is None or not isinstance(schema, list):
        return value
    said = dict(schema)
    name, kind = said.get("name"), said.get("type")
    convert = _OF_NAMES.get(name) if isinstance(name, str) else None
    try:
        if convert is not None:
            return convert(value, said)
        if isinstance(kind, str) and kind in _FLOATS:
            return _typed(write_double(float(value)), _FLOATS[kind])
    except (ValueError, TypeError, KeyError, ArithmeticError):
        return Wrong(f"it is no {name or kind}, as its schema says")
    if kind == "struct" and isinstance(value, list):
        return _struct(value, said)
    if kind == "array" and isinstance(value, list):
        return [typed(item, said.get("items")) for item in value]
    return None if value == _UNAVAILABLE else value


def _struct(value: list[tuple[str, Any]], said: dict[str, Any]) -> Any:
    """An object, by the schemas of its members."""
    fields = said.get("fields")
    schemas = dict[str, Any]()
    for field in fields if isinstance(fields, list) else ():
        named = dict(field).get("field")
        if isinstance(named, str):
            schemas[named] = field
    return type(value)((name, typed(item, schemas.get(name))) for name, item in value)


def _typed(text: str, datatype: str) -> Typed:
    return Typed(literal_text(text, f"{XSD}{datatype}"))


def _unscaled(value: str, scale: int) -> Typed:
    """A decimal: base64 of a big-endian integer in two's complement, and digits after the point."""
    if abs(scale) > _MOST_SCALE:
        raise ValueError("a scale that is too large")
    number = int.from_bytes(b64decode(value, validate=True), "big", signed=True)
    with localcontext() as exact:
        exact.prec = len(str(number)) + _MOST_SCALE
        return _typed(write_decimal(Decimal(number).scaleb(-scale)), "decimal")


def _decimal(value: Any, said: dict[str, Any]) -> Typed:
    return _unscaled(value, int(dict(said["parameters"])["scale"]))


def _scaled_decimal(value: Any, said: dict[str, Any]) -> Typed:
    parts = dict(value)
    return _unscaled(parts["value"], int(parts["scale"]))


def _date(value: Any, said: dict[str, Any]) -> Typed:
    return Typed(python_cell(date.fromordinal(_EPOCH.toordinal() + int(value))))


def _instant(units: int) -> Callable[[Any, dict[str, Any]], Typed]:
    """Reads times since 1970, given the number of units in a second."""

    def read(value: Any, said: dict[str, Any]) -> Typed:
        moment = _EPOCH + timedelta(microseconds=int(value) * 1_000_000 // units)
        return Typed(python_cell(moment))

    return read


def _clock(units: int) -> Callable[[Any, dict[str, Any]], Typed]:
    """Reads times of day, given the number of units in a second."""

    def read(value: Any, said: dict[str, Any]) -> Typed:
        moment = datetime.min + timedelta(microseconds=int(value) * 1_000_000 // units)
        if moment.date() != date.min:
            raise ValueError("more than a day")
        return Typed(python_cell(moment.time()))

    return read


def _zoned(value: Any, said: dict[str, Any]) -> Typed:
    datetime.fromisoformat(value)
    return _typed(value, "dateTime")


def _zoned_time(value: Any, said: dict[str, Any]) -> Typed:
    time.fromisoformat(value)
    return _typed(value, "time")


_OF_NAMES: dict[str, Callable[[Any, dict[str, Any]], Typed]] = {
    f"{_CONNECT}Decimal": _decimal,
    "io.debezium.data.VariableScaleDecimal": _scaled_decimal,
    f"{_CONNECT}Date": _date,
    f"{_DEBEZIUM}Date": _date,
    f"{_CONNECT}Timestamp": _instant(1_000),
    f"{_DEBEZIUM}Timestamp": _instant(1_000),
    f"{_DEBEZIUM}MicroTimestamp": _instant(1_000_000),
    f"{_DEBEZIUM}NanoTimestamp": _instant(1_000_000_000),
    f"{_CONNECT}Time": _clock(1_000),
    f"{_DEBEZIUM}Time": _clock(1_000),
    f"{_DEBEZIUM}MicroTime": _clock(1_000_000),
    f"{_DEBEZIUM}NanoTime": _clock(1_000_000_000),
    f"{_DEBEZIUM}ZonedTimestamp": _zoned,
    f"{_DEBEZIUM}ZonedTime": _zoned_time,
}
"""The functions from values to literals, by the name of the schema."""
