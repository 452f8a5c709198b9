"""The types that a user gives to fields of CSV and TSV: `volume=integer,price=decimal`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from spaseq.errors import UsageError
from spaseq.expr.casts import CASTS
from spaseq.lang.spelling import suggested
from spaseq.lift.cells import variable_of
from spaseq.rdf.terms.term import XSD

TYPES = tuple(sorted(iri.removeprefix(XSD) for iri in CASTS))
"""The local names of the datatypes."""


_COMMA = re.compile(r",(?![^()]*\))")
_WITH_FORMAT = re.compile(r"([^(]*)(=)(dateTime\(.*\))")


def time_format(datatype: str) -> str | None:
    """The format in `dateTime(FORMAT)`, in the codes of strptime; None for other types."""
    return datatype[len("dateTime(") : -1] if datatype.startswith("dateTime(") else None


def read_time(text: str, form: str) -> datetime | None:
    """The time in a text, in UTC without a zone; None if it is not of the format.

    >>> read_time("05.01.2026 09:30", "%d.%m.%Y %H:%M")
    datetime.datetime(2026, 1, 5, 9, 30)
    """
    try:
        moment = datetime.strptime(text, form)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def time_term(time: datetime) -> str:
    """The literal of a time in UTC."""
    text = time.isoformat()
    text = text.rstrip("0") if "." in text else text
    return f'"{text}Z"^^<{XSD}dateTime>'


def _check_format(name: str, form: str) -> None:
    """UsageError if strptime does not know a code, or there is none."""
    try:
        datetime.strptime("", form)
    except ValueError as error:
        if "does not match" in str(error):
            return
    raise UsageError(f"the field {name} has a format of times that has unknown codes: {form!r}")


def field_types(text: str) -> tuple[tuple[str, str], ...]:
    """(variable, datatype) of each field that a text names.

    Raises:
        UsageError: the text is no list of assignments, or names an unknown type.

    >>> field_types("volume=integer, unit price=decimal")
    (('volume', 'integer'), ('unit_price', 'decimal'))
    >>> field_types("at=dateTime(%d.%m.%Y, %H:%M)")
    (('at', 'dateTime(%d.%m.%Y, %H:%M)'),)
    """
    pairs = {}
    for part in filter(None, map(str.strip, _COMMA.split(text))):
        match = _WITH_FORMAT.fullmatch(part)
        name, equals, datatype = part.rpartition("=") if match is None else match.groups()
        if not equals or not name.strip():
            raise UsageError(f"--types {part}: expected FIELD=TYPE")
        pairs[name.strip()] = datatype.strip()
    return checked_types(pairs)


def checked_types(types: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """(variable, datatype) of each field.

    Raises:
        UsageError: a type is unknown.
    """
    for name, datatype in types.items():
        if datatype.startswith("dateTime(") and datatype.endswith(")"):
            _check_format(name, time_format(datatype) or "")
        elif datatype not in TYPES:
            near = suggested(datatype, TYPES)
            hint = f"; did you mean {near}?" if near else f"; types are {', '.join(TYPES)}"
            raise UsageError(f"the field {name} has the unknown type {datatype!r}{hint}")
    return tuple((variable_of(name), datatype) for name, datatype in types.items())
