"""Cells of rows, fields as variables, and users' types for fields of CSV and TSV.

Types are given as `volume=integer,price=decimal`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

from spaseq.errors import UsageError
from spaseq.expr.casts import CASTS
from spaseq.lang import lexical
from spaseq.lang.lexical import NamePattern
from spaseq.lang.spelling import suggested
from spaseq.rdf.terms.term import XSD, is_rdf_term

TYPES = tuple(sorted(iri.removeprefix(XSD) for iri in CASTS))
"""The local names of the datatypes."""

_COMMA = re.compile(r",(?![^()]*\))")
_WITH_FORMAT = re.compile(r"([^(]*)(=)(dateTime\(.*\))")


@dataclass(frozen=True, slots=True)
class Wrong:
    """A value that is no RDF term; a lift that reads it makes the row bad."""

    reason: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list. An element is its cells, by the suffix of the variable's name after UNNEST's.

    The key of the element itself is "", of the field `f` of an object `_f`.
    """

    elements: tuple[Mapping[str, Cell], ...]


Cell: TypeAlias = "str | Wrong | Items | None"
"""The N-Triples text of a term, None for null, a list, or a value that is no term."""

_NAME = NamePattern(lexical.VARIABLE)


@lru_cache(4096)
def variable_of(field: str) -> str:
    """The name of the variable for a field.

    >>> variable_of("unit price"), variable_of("größe"), variable_of("a.b-c")
    ('unit_price', 'größe', 'a_b_c')
    """
    return "".join(
        c if _NAME.fullmatch(f"?{'x' if i else ''}{c}") else "_" for i, c in enumerate(field)
    )


@lru_cache(4096)
def inner_name(field: str) -> str:
    """The part of a variable's name for a field of an object, with the `_` before it."""
    return "_" + variable_of("x" + field)[1:]


TWICE = Wrong("two fields have this name")
OBJECT = Wrong("an object is no term: use its fields, such as ?a_b")

MembersOf = Callable[[Any], "Iterable[tuple[str, Any]] | None"]
"""The members of an object; None for another value."""

_KNOWN = 10_000  # names of fields that are remembered


class Flattening:
    """Makes the cells of rows, for the names that are read."""

    def __init__(
        self, names: frozenset[str] | None, cell: Callable[[Any], Cell], members: MembersOf
    ) -> None:
        """`names` are the fields that are read; None for all."""
        self._names, self._cell, self._members = names, cell, members
        self._read: dict[str, bool] = {}

    def row(self, members: Iterable[tuple[str, Any]]) -> dict[str, Cell]:
        """The cells of a row, by variable."""
        out: dict[str, Cell] = {}
        for name, value in members:
            self._add(variable_of(name), value, out)
        return out

    def items(self, values: Iterable[Any]) -> Items:
        """The elements of a list."""
        elements = []
        for value in values:
            out: dict[str, Cell] = {}
            self._add("", value, out)
            elements.append(out)
        return Items(tuple(elements))

    def _add(self, name: str, value: Any, out: dict[str, Cell]) -> None:
        if self._names is None or self._reads(name, self._names):
            out[name] = self._cell(value) if name not in out else TWICE
            for inner, item in self._members(value) or ():
                self._add(name + inner_name(inner), item, out)

    def _reads(self, name: str, names: frozenset[str]) -> bool:
        read = self._read.get(name)
        if read is None:
            read = name in names or any(n.startswith(f"{name}_") for n in names)
            if len(self._read) < _KNOWN:
                self._read[name] = read
        return read


def is_term(text: str) -> bool:
    """As `is_rdf_term`, faster for literals, whose few datatypes are checked once."""
    if text[0] != '"':
        return is_rdf_term(text)
    return text[-1] != ">" or _has_valid_datatype(text[text.rfind('"') + 1 :])


@lru_cache(256)
def _has_valid_datatype(end: str) -> bool:
    return is_rdf_term(f'""{end}')


_SURROGATE = re.compile("[\ud800-\udfff]")


def has_surrogate(text: str) -> bool:
    """Whether a text has a lone surrogate, which is no character."""
    return not text.isascii() and _SURROGATE.search(text) is not None


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
