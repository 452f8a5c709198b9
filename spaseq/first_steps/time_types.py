"""The types of fields that are times: ISO, those of spreadsheets, seconds and milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.first_steps.field_type import FieldType

_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TWO, _ONE = "[0-9]{2}", "[0-9]{1,2}"
_ENDS = (
    (" ([0-9]{2}:[0-9]{2}:[0-9]{2})", "T$4Z", " %H:%M:%S"),
    (" ([0-9]{2}:[0-9]{2})", "T$4:00Z", " %H:%M"),
    ("", "", ""),
)


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
