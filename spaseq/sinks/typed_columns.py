"""Columns of RDF terms as Arrow columns whose type is that of the XSD datatypes in them.

| terms of a column | type |
|---|---|
| integers | `int64`; `decimal128` if one does not fit |
| decimals, with integers or without | `decimal128`, or `decimal256` for more than 38 digits |
| floats alone | `float` |
| doubles and floats, with other numbers or without | `double` |
| booleans | `bool` |
| dateTimes | `timestamp[us, UTC]`; one without a zone is in UTC |
| dates without a zone | `date32` |
| anything else, and any mixture | `string`: IRIs without brackets, lexical forms, `_:label` |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.rdf.terms.term import (
    INTEGER_TYPES,
    XSD,
    XSD_DATE_TIME,
    XSD_DATE_TIME_STAMP,
    plain_text,
    python_value,
    split_literal,
)
from spaseq.sinks.text_columns import body_of, by_form, merged

TIME = pa.timestamp("us", "UTC")

_TEXT = "text"
_KINDS = {
    **dict.fromkeys(INTEGER_TYPES, "integer"),
    XSD + "decimal": "decimal",
    XSD + "float": "float",
    XSD + "double": "double",
    XSD + "boolean": "boolean",
    XSD_DATE_TIME: "dateTime",
    XSD_DATE_TIME_STAMP: "dateTime",
    XSD + "date": "date",
}
_KIND_OF = {pa.bool_(): "boolean", TIME: "dateTime", pa.date32(): "date"}
_EXACT = {"integer", "decimal"}
_NUMBERS = {"integer", "decimal", "float", "double"}
_USUAL_ENDS = {f'"^^<{XSD}integer>': "integer", f'"^^<{XSD}double>': "double"}
"""The ends of terms whose values are mostly read without an object for each."""

_USUAL = {
    "integer": "^-?[0-9]{1,18}$",
    "double": r"^-?[0-9]{1,300}(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$",
}
_CAST_TO = {"int64": ("integer",), "double": ("integer", "double")}
_IRI = ("<", ">")

_EXACT_IN_DOUBLE = 2**53
_DIGITS_128, _DIGITS_256 = 38, 76


class ColumnType:
    """Sees all terms of a column, and then knows the column's type."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._least = self._greatest = 0
        self._digits = 1  # before the point
        self._scale = 0

    def see(self, texts: Sequence[str | None]) -> None:
        """Take terms as N-Triples texts; None is an unbound variable."""
        for text in set(texts):
            if text is None:
                continue
            kind, value = _read(text)
            self._kinds.add(kind)
            if kind == "integer":
                self._least, self._greatest = min(self._least, value), max(self._greatest, value)
            elif kind == "decimal":
                _, digits, exponent = value.as_tuple()
                scale = max(0, -int(exponent))
                self._scale = max(self._scale, scale)
                self._digits = max(self._digits, len(digits) - scale)

    def see_column(self, column: TermColumn) -> None:
        """Take a column of terms. Usual numbers are seen without an object for each."""
        column = column.compact()
        used = np.zeros(len(column.terms) + 1, np.bool_)  # the last is UNBOUND's
        used[column.codes] = True
        terms = column.terms if used[:-1].all() else column.terms.filter(pa.array(used[:-1]))
        for _, texts, form in by_form(terms):
            kind = None if form is None else _USUAL_ENDS.get(form[1])
            if kind is None or form is None:
                if form != _IRI:
                    self.see(texts.to_pylist())
                else:
                    self._kinds.add(_TEXT)
                continue
            usual = pc.match_substring_regex(body_of(texts, *form), _USUAL[kind])
            self.see(texts.filter(pc.invert(usual)).to_pylist())
            texts = texts.filter(usual)
            if len(texts):
                self._kinds.add(kind)
            if len(texts) and kind == "integer":
                numbers = pc.min_max(pc.cast(body_of(texts, *form), pa.int64())).as_py()
                self._least = min(self._least, numbers["min"])
                self._greatest = max(self._greatest, numbers["max"])

    def add(self, other: ColumnType) -> None:
        """Add the types that another object has recorded of the same column."""
        self._kinds |= other._kinds
        self._least = min(self._least, other._least)
        self._greatest = max(self._greatest, other._greatest)
        self._scale = max(self._scale, other._scale)
        self._digits = max(self._digits, other._digits)

    @property
    def arrow(self) -> pa.DataType:
        """The type of the terms that were seen."""
        kinds = self._kinds
        if kinds and kinds <= _NUMBERS:
            return self._number()
        types = {"boolean": pa.bool_(), "dateTime": TIME, "date": pa.date32()}
        return types.get(next(iter(kinds)), pa.string()) if len(kinds) == 1 else pa.string()

    def _number(self) -> pa.DataType:
        kinds = self._kinds
        if kinds == {"float"}:
            return pa.float32()
        if kinds & {"float", "double"}:
            exact = max(-self._least, self._greatest) <= _EXACT_IN_DOUBLE
            return pa.float64() if exact else pa.string()
        if kinds == {"integer"} and self._least >= -(2**63) and self._greatest < 2**63:
            return pa.int64()
        longest = max(len(str(abs(n))) for n in (self._least, self._greatest))
        return _decimal(max(self._digits, longest) + self._scale, self._scale)

    def column(self, texts: pa.Array) -> pa.Array:
        """Terms that were seen, as a column of the type."""
        if not len(texts) - texts.null_count:
            return pa.nulls(len(texts), self.arrow)
        encoded = texts.cast(pa.large_string()).dictionary_encode()
        return self._values(encoded.dictionary).take(encoded.indices)

    def _values(self, terms: pa.Array) -> pa.Array:
        """The values of distinct terms that were seen."""
        kind = self.arrow
        value, parts = value_of(kind), []
        for rows, alike, form in by_form(terms):
            usual = None if form is None else _USUAL_ENDS.get(form[1])
            if form is None or usual not in _CAST_TO.get(str(kind), ()):
                parts.append((rows, pa.array([value(text) for text in alike.to_pylist()], kind)))
                continue
            body = body_of(alike, *form)
            mine = pc.match_substring_regex(body, _USUAL[usual]).to_numpy(zero_copy_only=False)
            chosen, others = np.flatnonzero(mine), np.flatnonzero(~mine)
            parts.append((rows[chosen], pc.cast(body.take(pa.array(chosen)), kind)))
            rest = alike.take(pa.array(others)).to_pylist()
            parts.append((rows[others], pa.array([value(text) for text in rest], kind)))
        return merged(parts)


def _decimal(digits: int, scale: int) -> pa.DataType:
    if digits <= _DIGITS_128:
        return pa.decimal128(_DIGITS_128, scale)
    return pa.decimal256(_DIGITS_256, scale) if digits <= _DIGITS_256 else pa.string()


def value_of(kind: pa.DataType) -> Callable[[str], Any]:
    """The function from a term to a value of a type."""
    if pa.types.is_string(kind):
        return plain_text
    if pa.types.is_floating(kind):
        return lambda text: float(_read(text)[1])
    if pa.types.is_decimal(kind):
        return lambda text: Decimal(_read(text)[1])
    return lambda text: _read(text)[1]


def fitting_values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Terms as a column of a type; a term without a value of that type is null."""
    encoded = texts.cast(pa.string()).dictionary_encode()
    values = pa.array([_fitting(text, kind) for text in encoded.dictionary.to_pylist()], kind)
    return values.take(encoded.indices)


def _fitting(text: str, kind: pa.DataType) -> Any:
    """The value of a term in a type; None if it has none there."""
    if pa.types.is_string(kind):
        return plain_text(text)
    term_kind, value = _read(text)
    if pa.types.is_floating(kind):
        if term_kind not in _NUMBERS:
            return None
        return float(str(value) if term_kind == "integer" else value)  # a text may be infinite
    if pa.types.is_integer(kind):
        return value if term_kind == "integer" and -(2**63) <= value < 2**63 else None
    if pa.types.is_decimal(kind):
        return Decimal(value) if term_kind in _EXACT and _has_room(Decimal(value), kind) else None
    return value if term_kind == _KIND_OF[kind] else None


def _has_room(value: Decimal, kind: pa.DataType) -> bool:
    """Whether a decimal type holds a value without rounding it."""
    _, digits, exponent = value.as_tuple()
    fraction = max(0, -int(exponent))
    room: int = kind.precision - kind.scale
    return fraction <= kind.scale and len(digits) + int(exponent) <= room


@lru_cache(maxsize=1 << 14)  # values repeat in many answers
def _read(text: str) -> tuple[str, Any]:
    """The kind of a term and its value; a literal without a Python value is text."""
    if text[0] != '"':
        return _TEXT, None
    lexical, datatype, _ = split_literal(text)
    kind = _KINDS.get(datatype, _TEXT)
    if kind == _TEXT:
        return _TEXT, None
    value = python_value(lexical, datatype)
    if isinstance(value, str):
        return _TEXT, None
    if isinstance(value, datetime):
        return kind, value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, date) and len(lexical.strip()) > len("2014-08-01"):
        return _TEXT, None  # it has a zone
    return kind, value
