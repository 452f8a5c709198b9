"""Types of fields, found in their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from spaseq.first_steps.field_type import FieldType
from spaseq.first_steps.time_types import CLOCKS, FRACTIONS, MILLISECONDS, SECONDS, TIMES

_ENOUGH = 0.7
"""The share of values that have a type if their field has it."""

_FIRST = 20
"""A type that none of so many values has is not looked for in the others."""

_FIRST_MS, _LAST_MS = 10**11, 10**13
_FIRST_S, _LAST_S = 10**8, 10**10
_EURO = "€|EUR|CHF"
_MONEY = f"{_EURO}|[$£]|USD|GBP"


def _grouped(decimal: str, money: str = "") -> FieldType:
    """Numbers with thousands apart, perhaps with one of some currencies; without groups, too."""
    group = "." if decimal == "," else ","
    digits = rf"[+-]?([0-9]{{1,3}}([{group}][0-9]{{3}})+|[0-9]+)([{decimal}][0-9]+)?"
    given = "{0}"
    if money:
        digits = rf"(({money})[ \u00a0]?)?{digits}([ \u00a0]?({money}))?"
        given = f'REPLACE({given}, "[ \u00a0]|{money}", "")'
    for _ in range(2):  # matches do not overlap, so one pass leaves every other sign
        given = f'REPLACE({given}, "([0-9])[{group}]([0-9]{{3}})", "$1$2")'
    if decimal == ",":
        given = f'REPLACE({given}, ",", ".")'
    return FieldType("number", digits, f"xsd:decimal({given})", decimal=decimal)


TEXT = FieldType("text", ".*", "{0}")
INTEGER = FieldType("integer", "-?(0|[1-9][0-9]{0,17})", "xsd:integer({0})")
NUMBER = FieldType("number", r"[+-]?[0-9]*\.?[0-9]+", "xsd:decimal({0})")
_EXPONENT = r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?"
_FLOAT = FieldType("number", _EXPONENT, "xsd:decimal({0})")
_NUMBERS = (
    INTEGER,
    NUMBER,
    FieldType("number", _EXPONENT, "xsd:double({0})"),
    FieldType("number", "[+-]?[0-9]+,[0-9]+", 'xsd:decimal(REPLACE({0}, ",", "."))', decimal=","),
    _grouped(","),
    _grouped("."),
    _grouped(",", _EURO),
    _grouped(".", _MONEY),
)
_KINDS = (*TIMES, *CLOCKS, *_NUMBERS)
_LIKE_TIME = re.compile(
    r"(?i)(^|_)(ts|t|at|time|timestamp|date|epoch|ms|sec|seconds)(_|$|[A-Z])|time"
)


def text_of(value: Any) -> str:
    """The text of a value of JSON or Arrow, as STR of its term."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)


def type_of(name: str, values: Sequence[Any]) -> FieldType:
    """The type that most values of a field have; of several, the first."""
    texts = [text_of(v) for v in values]
    if all(isinstance(v, float) for v in values):
        return FRACTIONS if _are_seconds(name, [*map(Decimal, texts)]) else _FLOAT
    likely = [kind for kind in _KINDS if any(kind.value(t) is not None for t in texts[:_FIRST])]
    by_kind = {kind: [v for t in texts if (v := kind.value(t)) is not None] for kind in likely}
    best = max(likely, key=lambda kind: len(by_kind[kind]), default=TEXT)
    if best is TEXT or len(by_kind[best]) < _ENOUGH * len(texts):
        return TEXT
    if best in (INTEGER, NUMBER) and _are_seconds(name, by_kind[best]):
        return SECONDS if best is INTEGER else FRACTIONS
    if best is INTEGER and _are_times(name, by_kind[best], _FIRST_MS, _LAST_MS):
        return MILLISECONDS
    return best


def _are_seconds(name: str, values: Sequence[Decimal]) -> bool:
    return _are_times(name, values, _FIRST_S, _LAST_S)


def _are_times(name: str, values: Sequence[Decimal], first: int, last: int) -> bool:
    """Whether numbers are likely to be times: by the field's name, and by where they lie."""
    return bool(_LIKE_TIME.search(name)) and all(first < value < last for value in values)
