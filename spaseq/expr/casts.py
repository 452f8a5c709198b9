"""Casts by datatype IRI (SPARQL 1.1 section 17.5, XPath functions 3.1 section 19)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from functools import partial
from typing import Any

from spaseq.expr.env import ExpressionError
from spaseq.expr.numbers import (
    EXACT,
    INTEGER_RANGES,
    in_range,
    is_number,
    to_double,
    to_float32,
    write_decimal,
    write_double,
)
from spaseq.expr.temporal import DURATION_KINDS, MOMENT_KINDS, Duration, Moment, convert_moment
from spaseq.expr.values import PARSERS, Value, decode
from spaseq.rdf.terms.term import XSD, XSD_STRING, kind_of, split_literal

_SPACE = " \t\r\n"


def cast_to_string(term: str) -> str:
    """xsd:string: the text of an IRI, a number as XPath writes it, else the lexical form."""
    if kind_of(term) == "iri":
        return term[1:-1]
    value = decode(term)
    match value:
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return write_decimal(Decimal(value))
        case float():
            return _float_text(value)
    if kind_of(term) != "literal":
        raise ExpressionError("a blank node or triple term has no string")
    return split_literal(term)[0]


def _float_text(value: float) -> str:
    """A float or double as XPath casts it to a string: `1100`, `0.5`, `1.0E7`, `-0`."""
    if not value:
        return "-0" if math.copysign(1, value) < 0 else "0"
    canonical = write_double(value)
    if 1e-6 <= abs(value) < 1e6:
        return write_decimal(Decimal(canonical))
    return canonical


def cast_to_boolean(value: Value) -> bool:
    """xsd:boolean: a number is true unless it is zero or NaN."""
    if isinstance(value, bool):
        return value
    if is_number(value):
        return value == value and value != 0
    return _parsed("boolean", value)  # type: ignore[no-any-return]


def cast_to_integer(datatype: str, value: Value) -> int:
    """xsd:integer and its derived types: fractions are cut off."""
    result = _whole(value)
    if not in_range(result, datatype):
        raise ExpressionError(f"out of the range of xsd:{datatype}")
    return result


def _whole(value: Any) -> int:
    match value:
        case int():
            return int(value)
        case Decimal():
            return int(value.to_integral_value(ROUND_DOWN, EXACT))
        case float() if math.isfinite(value):
            return int(value)
        case str():
            return _parsed("integer", value)  # type: ignore[no-any-return]
    raise ExpressionError("no cast to an integer")


def cast_to_decimal(value: Any) -> Decimal:
    """xsd:decimal: the shortest decimal of a float or double, so 0.1 is `0.1`."""
    match value:
        case Decimal():
            return value
        case int():
            return Decimal(int(value))
        case float() if math.isfinite(value):
            return Decimal(write_double(value)) or Decimal(0)
    return _parsed("decimal", value)  # type: ignore[no-any-return]


def _floating(datatype: str, convert: Callable[[Any], float], value: Any) -> float:
    if isinstance(value, bool):
        return convert(int(value))
    return convert(value) if is_number(value) else _parsed(datatype, value)


def cast_to_moment(kind: str, value: Value) -> Moment:
    """A date or time type: from text, or between dateTime and its parts."""
    if isinstance(value, Moment):
        return convert_moment(kind, value)
    return _parsed(kind, value)  # type: ignore[no-any-return]


def cast_to_duration(kind: str, value: Value) -> Duration:
    """A duration type: from text, or from another one without the parts that the type lacks."""
    if isinstance(value, Duration):
        months = 0 if kind == "dayTimeDuration" else value.months
        seconds = Decimal(0) if kind == "yearMonthDuration" else value.seconds
        return Duration(kind, months, seconds)
    return _parsed(kind, value)  # type: ignore[no-any-return]


def _parsed(datatype: str, value: Value) -> Any:
    """The text of a simple literal, parsed as a lexical form of the datatype."""
    if type(value) is not str:
        raise ExpressionError(f"no cast to xsd:{datatype}")
    try:
        return PARSERS[XSD + datatype](value.strip(_SPACE))
    except (ValueError, ArithmeticError) as error:
        raise ExpressionError(f"not an xsd:{datatype}") from error


CASTS: dict[str, Callable[[Value], Value]] = {
    XSD + "boolean": cast_to_boolean,
    XSD + "decimal": cast_to_decimal,
    XSD + "double": partial(_floating, "double", to_double),
    XSD + "float": partial(_floating, "float", to_float32),
    **{XSD + name: partial(cast_to_integer, name) for name in INTEGER_RANGES},
    **{XSD + name: partial(cast_to_moment, name) for name in MOMENT_KINDS},
    **{XSD + name: partial(cast_to_duration, name) for name in DURATION_KINDS},
}
"""Casts of values by datatype IRI. `cast_to_string` is missing: it takes a term."""


def is_cast(iri: str) -> bool:
    """Whether an IRI names a cast rather than an extension function."""
    return iri in CASTS or iri == XSD_STRING


def derived_datatype(datatype: str) -> bool:
    """Whether the result of a cast needs the datatype itself, not its base type xsd:integer."""
    return datatype != f"{XSD}integer" and datatype.removeprefix(XSD) in INTEGER_RANGES
