"""The cells of Python values. Other libraries and formats make Python values first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from spaseq.expr.numbers import MOST_DIGITS, Float, write_decimal, write_double
from spaseq.expr.temporal import Duration, write_duration
from spaseq.lift.cells import OBJECT, Cell, Flattening, Wrong, has_surrogate
from spaseq.rdf.terms.term import XSD, literal_text

_MOST_BITS = 13_000  # of integers, which Python writes in up to 4,300 digits


def members(value: Any) -> Iterable[tuple[str, Any]] | None:
    """The fields of an object; None for other values."""
    if isinstance(value, Mapping):
        return ((str(name), item) for name, item in value.items())
    return None


def python_cell(value: Any) -> Cell:
    """The cell of a Python value; a date or time is its own XSD type."""
    kind = type(value)
    if value is None or kind.__name__ in ("NAType", "NaTType"):
        return None
    if kind.__module__ == "numpy" and hasattr(value, "item"):
        value = Float(value) if kind.__name__ in ("float32", "float16") else value.item()
    match value:
        case Wrong():
            return value
        case bool():
            return literal_text(str(value).lower(), f"{XSD}boolean")
        case str():
            wrong = has_surrogate(value)
            return Wrong("a lone surrogate is no character") if wrong else literal_text(value)
        case int():
            if value.bit_length() > _MOST_BITS:
                return Wrong("the integer is too long")
            return f'"{int(value)}"^^<{XSD}integer>'
        case Float():
            return f'"{write_double(value)}"^^<{XSD}float>'
        case float():
            return f'"{write_double(float(value))}"^^<{XSD}double>'
        case UUID():
            return literal_text(str(value))
        case Mapping():
            return OBJECT
        case list() | tuple():
            return _ELEMENTS.items(value)
    return _other_cell(value)


def _other_cell(value: Any) -> Cell:
    match value:
        case Decimal() if value.is_finite() and abs(value.adjusted()) < MOST_DIGITS:
            return f'"{write_decimal(value)}"^^<{XSD}decimal>'
        case datetime():
            moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
            try:
                moment = moment.astimezone(UTC)
            except OverflowError:
                return Wrong("a year outside 1 to 9999")
            return f'"{_fraction(moment.replace(tzinfo=None), 26)}Z"^^<{XSD}dateTime>'
        case date():
            return f'"{value.isoformat()}"^^<{XSD}date>'
        case time() if value.tzinfo is None:
            return f'"{_fraction(value, 15)}"^^<{XSD}time>'
        case timedelta():
            micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
            return python_cell(Duration("dayTimeDuration", 0, Decimal(micros).scaleb(-6)))
        case Duration():
            return f'"{write_duration(value)}"^^<{XSD}dayTimeDuration>'
    return Wrong(f"{type(value).__name__} is no term")


def _fraction(moment: Any, most: int) -> str:
    """ISO text cut to microseconds, without zeros at the end of the fraction."""
    text = str(moment.isoformat())[:most]
    return text.rstrip("0").rstrip(".") if "." in text else text


_ELEMENTS = Flattening(None, python_cell, members)
