"""Python values of typed literals."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from spaseq.rdf.terms.vocabulary import INTEGER_TYPES, XSD, XSD_DATE_TIME, XSD_DATE_TIME_STAMP

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_ZONE = r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?"
_DATE = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){_ZONE}")
_DATETIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?" + _ZONE
)
_SPACE = "\t\n\r "  # XML Schema's whiteSpace="collapse" removes these


def python_value(lexical: str, datatype: str) -> Any:
    """The Python value of a lexical form, or the form itself if there is no such value.

    A dateTime with a zone becomes an aware datetime, one without a zone a naive one. Digits beyond
    the microsecond are cut off. `xsd:date` becomes a date without its zone.
    """
    convert = _CONVERSIONS.get(datatype)
    if convert is None:
        return lexical
    try:
        return convert(lexical.strip(_SPACE))
    except (ValueError, OverflowError):
        return lexical


def _require(pattern: re.Pattern[str], lexical: str) -> re.Match[str]:
    match = pattern.fullmatch(lexical)
    if match is None:
        raise ValueError(lexical)
    return match


def _integer(lexical: str) -> int:
    return int(_require(_INTEGER, lexical).group())


def _decimal(lexical: str) -> Decimal:
    return Decimal(_require(_DECIMAL, lexical).group())


def _double(lexical: str) -> float:
    return float(_require(_DOUBLE, lexical).group())


def _boolean(lexical: str) -> bool:
    values = {"true": True, "1": True, "false": False, "0": False}
    if lexical not in values:
        raise ValueError(lexical)
    return values[lexical]


def _zone(z: str | None, sign: str | None, hours: str, minutes: str) -> timezone | None:
    if z is None and sign is None:
        return None
    if z is not None:
        return UTC
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if sign == "-" else offset)


def _date(lexical: str) -> date:
    year, month, day, *_ = _require(_DATE, lexical).groups()
    return date(int(year), int(month), int(day))


def _datetime(lexical: str) -> datetime:
    *fields, fraction, z, sign, zh, zm = _require(_DATETIME, lexical).groups()
    year, month, day, hour, minute, second = map(int, fields)
    midnight = (hour, minute, second) == (24, 0, 0) and not (fraction or "").strip("0")
    micros = int((fraction or "")[:6].ljust(6, "0"))
    at = datetime(
        year, month, day, 0 if midnight else hour, minute, second, micros, _zone(z, sign, zh, zm)
    )
    return at + timedelta(days=1) if midnight else at


_CONVERSIONS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGER_TYPES, _integer),
    XSD + "decimal": _decimal,
    XSD + "double": _double,
    XSD + "float": _double,
    XSD + "boolean": _boolean,
    XSD_DATE_TIME: _datetime,
    XSD_DATE_TIME_STAMP: _datetime,
    XSD + "date": _date,
}
