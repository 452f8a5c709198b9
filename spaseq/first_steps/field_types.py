"""Types of fields, found in their values: the form of their texts, their meaning, and their cast in
SPARQL. Times have the forms of ISO 8601 or of spreadsheets, or are seconds or milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from spaseq.records import record

_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TWO, _ONE = "[0-9]{2}", "[0-9]{1,2}"
_ENDS = (
    (" ([0-9]{2}:[0-9]{2}:[0-9]{2})", "T$4Z", " %H:%M:%S"),
    (" ([0-9]{2}:[0-9]{2})", "T$4:00Z", " %H:%M"),
    ("", "", ""),
)

_ENOUGH = 0.7
"""The share of values that have a type if their field has it."""

_FIRST = 20
"""Number of values that decide for which types the others are tested."""

_FIRST_MS, _LAST_MS = 10**11, 10**13
_FIRST_S, _LAST_S = 10**8, 10**10
_EURO = "€|EUR|CHF"
_MONEY = f"{_EURO}|[$£]|USD|GBP"


@record
class FieldType:
    """A type of fields.

    Attributes:
        name: "text", "integer", "number", "time" or "clock", a time of day.
        pattern: of the texts of its values.
        cast: the SPARQL expression for the term; `{0}` is the field.
        strptime: the format that Python reads such times with; "iso", "s" or "ms" for others.
        day: of times without a time of day, the expression for the ISO date.
        decimal: the decimal sign of numbers.
    """

    name: str
    pattern: str
    cast: str
    strptime: str = ""
    day: str = ""
    decimal: str = "."

    def term(self, field: str) -> str:
        """The expression for the term of a field."""
        return self.cast.replace("{0}", f"?{field}")

    def term_with(self, field: str, clock: FieldType, clock_field: str) -> str:
        """The expression for a date with the time of day in another field."""
        day = self.day.replace("{0}", f"?{field}")
        return f'xsd:dateTime(CONCAT({day}, "T", {clock.term(clock_field)}, "Z"))'

    def value(self, text: str) -> Any:
        """The value of a text: a number, a time in ms, or the text; None if it has none."""
        if re.fullmatch(self.pattern, text, re.DOTALL) is None:
            return None
        match self.name:
            case "integer" | "number":
                other = "." if self.decimal == "," else ","
                digits = re.sub(r"[^-+0-9.,eE]|EUR", "", text).replace(other, "")
                return Decimal(digits.replace(self.decimal, "."))
            case "time":
                return self._milliseconds(text)
            case "clock":
                hours, minutes, *seconds = map(int, text.split(":"))
                return 1000 * (3600 * hours + 60 * minutes + sum(seconds))
        return text

    def _milliseconds(self, text: str) -> int | None:
        if self.strptime in ("s", "ms"):
            return int(Decimal(text) * (1000 if self.strptime == "s" else 1))
        try:
            if self.strptime == "iso":
                moment = datetime.fromisoformat(text.replace(" UTC", "Z").replace(" +", "+"))
            else:
                moment = datetime.strptime(text, self.strptime)
        except ValueError:
            return None
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _dates(
    sign: str, parts: Sequence[str], codes: Sequence[str], order: str, short: bool = False
) -> Iterator[FieldType]:
    """Dates of three parts with a sign between them, with a time of day or without.

    The lift first fills up days, months and hours of one digit where they may be `short`.
    """
    given = "{0}"
    if short:
        given = f'REPLACE({given}, "^([0-9])[{sign}]", "0$1{sign}")'
        given = f'REPLACE({given}, "[{sign}]([0-9])[{sign}]", "{sign}0$1{sign}")'
    for end, made, code in _ENDS:
        day = f"[{sign}]".join(f"({part})" for part in parts)
        text = given
        if short and end:
            text = f'REPLACE({text}, " ([0-9]):", " 0$1:")'
        iso = f'REPLACE({text}, "^{day}{end}$", "{order}{made}")'
        seen = (day + end).replace(_TWO, _ONE) if short else day + end
        yield FieldType(
            "time",
            seen,
            f"xsd:dateTime({iso})" if end else f'xsd:dateTime(CONCAT({iso}, "T00:00:00Z"))',
            sign.join(codes) + code,
            "" if end else iso,
        )


_YEAR, _SHORT_YEAR = "[0-9]{4}", "[0-6][0-9]"
TIMES = (
    FieldType(
        "time", rf"{_ISO}T[0-9:.]+(Z|[+-][0-9]{{2}}:[0-9]{{2}})?", "xsd:dateTime({0})", "iso"
    ),
    FieldType(
        "time", rf"{_ISO}[T ][0-9:.]{{8,}} ?[+-][0-9]{{2}}:?[0-9]{{2}}",
        'xsd:dateTime(REPLACE({0}, "^([^ T]+).([0-9:.]+) ?([+-][0-9]{2}):?([0-9]{2})$", '
        '"$1T$2$3:$4"))',
        "iso",
    ),
    FieldType(
        "time", rf"{_ISO} [0-9:.]{{8,}} UTC",
        'xsd:dateTime(REPLACE({0}, "^([^ ]+) ([^ ]+) UTC$", "$1T$2Z"))', "iso",
    ),
    FieldType(
        "time", rf"{_ISO} [0-9:.]{{8,}}(Z|[+-][0-9]{{2}}:[0-9]{{2}})?",
        'xsd:dateTime(REPLACE({0}, " ", "T"))', "iso",
    ),
    FieldType(
        "time", rf"{_ISO} [0-9]{{2}}:[0-9]{{2}}",
        'xsd:dateTime(CONCAT(REPLACE({0}, " ", "T"), ":00Z"))', "iso",
    ),
    FieldType("time", _ISO, 'xsd:dateTime(CONCAT(STR({0}), "T00:00:00Z"))', "iso", "STR({0})"),
    *(
        kind
        for short in (False, True)
        for sign, codes, order in (
            (".", ("%d", "%m", "%Y"), "$3-$2-$1"),
            ("/", ("%m", "%d", "%Y"), "$3-$1-$2"),
            ("/", ("%d", "%m", "%Y"), "$3-$2-$1"),
        )
        for kind in _dates(sign, (_TWO, _TWO, _YEAR), codes, order, short)
    ),
    *_dates("/", (_YEAR, _TWO, _TWO), ("%Y", "%m", "%d"), "$1-$2-$3"),
    *_dates(".", (_TWO, _TWO, _SHORT_YEAR), ("%d", "%m", "%y"), "20$3-$2-$1"),
    *_dates("/", (_TWO, _TWO, _SHORT_YEAR), ("%m", "%d", "%y"), "20$3-$1-$2"),
    *_dates("/", (_TWO, _TWO, _SHORT_YEAR), ("%d", "%m", "%y"), "20$3-$2-$1"),
)  # fmt: skip
"""The likelier ones first."""

_HOUR = "([01][0-9]|2[0-3])"
CLOCKS = (
    FieldType("clock", f"{_HOUR}:[0-5][0-9]:[0-5][0-9]", "STR({0})"),
    FieldType("clock", f"{_HOUR}:[0-5][0-9]", 'CONCAT({0}, ":00")'),
    FieldType(
        "clock", "([0-9]|1[0-9]|2[0-3]):[0-5][0-9]",
        'CONCAT(REPLACE({0}, "^([0-9]):", "0$1:"), ":00")',
    ),
)  # fmt: skip
"""Times of day, beside a date in another field."""

SECONDS = FieldType("time", "[0-9]{9,10}", "xsd:integer({0}) * 1000", "s")
FRACTIONS = FieldType(
    "time", "[0-9]{9,10}([.][0-9]+)?", "xsd:integer(xsd:decimal({0}) * 1000)", "s"
)  # fmt: skip
MILLISECONDS = FieldType("time", "[0-9]{12,13}", "xsd:integer({0})", "ms")


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
