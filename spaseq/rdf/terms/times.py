"""Event times: from literals, and from what programs give, to milliseconds since the epoch, and
back to `xsd:dateTime`; and durations as users write them in options.

The calendar is the proleptic Gregorian calendar of XML Schema, computed in integers. It covers
years before 1 and after 9999, which Python's datetime does not. Programs give Python's, NumPy's and
pandas' times, and ISO 8601 text.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, Union

from spaseq.errors import UsageError
from spaseq.rdf.terms.term import INTEGER_TYPES, XSD_DATE_TIME, XSD_DATE_TIME_STAMP, split_literal
from spaseq.text_patterns import late_pattern

if TYPE_CHECKING:
    import numpy as np

DAY_MS = 86_400_000

LIMIT_MS = 2**62
"""Times lie closer to the epoch than this, so that adding a window never overflows int64."""

LONGEST_MS = 2**60
"""Windows, gaps and other durations are at most this long, which is 36 million years."""

UNITS = {
    "DAYS": 86_400_000,
    "HOURS": 3_600_000,
    "MINUTES": 60_000,
    "SECONDS": 1000,
    "MILLISECONDS": 1,
}
"""Milliseconds of each unit of durations, the largest first."""

Time: TypeAlias = Union[datetime, SupportsIndex, str, "np.datetime64"]
"""A time of a program: a datetime, milliseconds since the epoch, ISO 8601 text, `np.datetime64`.

A pandas Timestamp is a datetime. A time without a zone is in UTC.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO_DATE = re.compile(r"[0-9]{4}-")
_TICKS = {"ns": 1_000_000, "ps": 1_000_000_000, "fs": 10**12, "as": 10**15}
"""Ticks per millisecond, in units below the microsecond."""

_DIGITS = 20  # no longer number is short enough


def in_largest_unit(ms: int) -> tuple[int, str]:
    """A duration in the largest of the units that leaves no rest."""
    return next((ms // length, unit) for unit, length in UNITS.items() if ms % length == 0)


TIME_UNITS = {"ms": 1, "s": 1000}
"""Milliseconds per integer time, by the name of a stream's unit."""

LIKELY_SECONDS = range(315_532_800, 2_524_608_000)
"""Integer times that are seconds in the years 1980 to 2049, and milliseconds early in 1970."""

UNTIMED = 253_395_323_001_987
"""The time (ms) of an event that its stream's clock will replace.

It lies in the year 9999 and has the common form of a dateTime, which is read fast. A real event
with this time would be bad, because it is too far ahead of every clock.
"""

_DATETIME = late_pattern(
    r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_DATE = late_pattern(r"(-?)([1-9][0-9]{4,8}|[0-9]{4})-([0-9]{2})-([0-9]{2})")
_INTEGER = late_pattern(r"[+-]?[0-9]{1,19}")
_UTC = f'Z"^^<{XSD_DATE_TIME}>'
_SECONDS = {f"{second:02}": second * 1000 for second in range(60)}
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_time(text: str) -> int | None:
    """Milliseconds since the epoch from a literal's N-Triples text, or None if it is not a time.

    Times are `xsd:dateTime`, `xsd:dateTimeStamp` and the integer types, which count milliseconds
    (docs/meaning.md#events-and-streams). A dateTime without a zone is in UTC. Digits below the
    millisecond are cut off.

    >>> parse_time('"1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
    1500
    """
    if text.endswith(_UTC) and (second := _SECONDS.get(text[18 : -len(_UTC)])) is not None:
        minute = _minute(text[1:18])  # events of one minute share this
        if minute is not None:
            return minute + second
    if text[:1] != '"':
        return None
    lexical, datatype, _ = split_literal(text)
    lexical = lexical.strip("\t\n\r ")
    if datatype in INTEGER_TYPES:
        ms = int(lexical) if _INTEGER.fullmatch(lexical) else None
    elif datatype in (XSD_DATE_TIME, XSD_DATE_TIME_STAMP):
        ms = parse_datetime(lexical, zone_required=datatype == XSD_DATE_TIME_STAMP)
    else:
        return None
    return ms if ms is not None and abs(ms) < LIMIT_MS else None


def parse_datetime(lexical: str, zone_required: bool = False) -> int | None:
    """Milliseconds since the epoch from the lexical form of an `xsd:dateTime`, or None."""
    match = _DATETIME.fullmatch(lexical)
    if match is None:
        return None
    date, hour, minute, second, fraction, zone = match.groups()
    days = _days_of(date)
    clock = _clock_ms(int(hour), int(minute), int(second), fraction)
    shift = 0 if zone is None and not zone_required else _zone_ms(zone)
    if days is None or clock is None or shift is None:
        return None
    return days * DAY_MS + clock - shift


@lru_cache(maxsize=4096)
def _minute(text: str) -> int | None:
    """The start of the minute `YYYY-MM-DDThh:mm:` in UTC; None for 24:00, which has one second."""
    return None if text[11:13] == "24" else parse_datetime(f"{text}00Z")


def _clock_ms(hour: int, minute: int, second: int, fraction: str | None) -> int | None:
    """Milliseconds since midnight; 24:00:00 is the next midnight and 23:59:59 the last second."""
    ms = int(fraction[:3].ljust(3, "0")) if fraction else 0
    past = (hour * 60 + minute) * 60_000 + second * 1000 + ms
    midnight = hour == 24 and past == DAY_MS and not (fraction or "").strip("0")
    if midnight or (hour < 24 and minute < 60 and second < 60):
        return past
    return None


def _zone_ms(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        return None
    ms = (hours * 60 + minutes) * 60_000
    return -ms if zone[0] == "-" else ms


@lru_cache(maxsize=4096)
def _days_of(date: str) -> int | None:
    """Days from the epoch to `[-]YYYY-MM-DD`; None if there is no such day."""
    match = _DATE.fullmatch(date)
    if match is None:
        return None
    sign, *fields = match.groups()
    year, month, day = map(int, fields)
    year = -year if sign else year
    if not (1 <= month <= 12 and 1 <= day <= month_length(year, month)):
        return None
    return days_of(year, month, day)


def month_length(year: int, month: int) -> int:
    """Number of days of a month."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if leap and month == 2 else _MONTH_DAYS[month - 1]


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the proleptic Gregorian calendar with a year 0.

    Years start in March here, so that a leap day ends its year.
    """
    if month < 3:
        year, month = year - 1, month + 12
    before = year * 365 + year // 4 - year // 100 + year // 400
    return before + (153 * (month - 3) + 2) // 5 + day - 1 - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """The inverse of `days_of`: (year, month, day)."""
    era, of_era = divmod(days + 719_468, 146_097)  # 400 years
    years = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    year = era * 400 + years
    return (year + 1, month - 9, day) if month >= 10 else (year, month + 3, day)


def format_time(ms: int) -> str:
    """The `xsd:dateTime` in UTC of a time in milliseconds, without a fraction of zero.

    >>> format_time(1406879400000)
    '2014-08-01T07:50:00Z'
    """
    seconds, fraction = divmod(ms, 1000)
    # Events of one second share its text, and so do the events of an answer.
    return _second_text(seconds) + FRACTIONS[fraction]


FRACTIONS = ("Z", *(f".{fraction:03}Z" for fraction in range(1, 1000)))
"""The text after a second, by its milliseconds."""


@lru_cache(maxsize=4096)
def _second_text(seconds: int) -> str:
    """`YYYY-MM-DDThh:mm:ss` in UTC of a time in seconds."""
    days, past = divmod(seconds, 86_400)
    year, month, day = date_of(days)
    minutes, second = divmod(past, 60)
    hour, minute = divmod(minutes, 60)
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"


def time_literal(ms: int) -> str:
    """The N-Triples text of `format_time(ms)` as `xsd:dateTime`."""
    return f'"{format_time(ms)}"^^<{XSD_DATE_TIME}>'


def canonical_time(ms: int) -> str:
    """The N-Triples text of a time as canonical `xsd:dateTime`: what expressions compute.

    >>> canonical_time(1500)
    '"1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    """
    text = format_time(ms)
    if "." in text:
        text = text[:-1].rstrip("0") + "Z"
    return f'"{text}"^^<{XSD_DATE_TIME}>'


def time_ms(when: Time, scale: int = 1) -> int:
    """Milliseconds since the epoch of a time; digits below the millisecond are cut off.

    An integer counts `scale` milliseconds.

    Raises:
        UsageError: it is no time, or too far from the epoch.

    >>> time_ms("2014-08-01T07:50:00Z") == time_ms(datetime(2014, 8, 1, 7, 50))
    True
    """
    if type(when) is int and -LIMIT_MS < when * scale < LIMIT_MS:  # the usual case
        return when * scale
    try:
        time = _ms(when, scale)
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise UsageError(_no_time(when)) from None
    if abs(time) >= LIMIT_MS:
        shown = f"{time} ms" if time.bit_length() < 128 else f"of {time.bit_length()} bits"
        raise UsageError(f"a time {shown} is too far from the epoch")
    return time


def _ms(when: Any, scale: int = 1) -> int:
    if isinstance(when, datetime):
        aware = when if when.utcoffset() is not None else when.replace(tzinfo=UTC)
        return index((aware - _EPOCH) // timedelta(milliseconds=1))
    if isinstance(when, str):
        return _ms_of_text(when.strip())
    if type(when).__name__ in ("bool", "bool_"):  # NumPy's, too, which 1.26 takes for an integer
        raise TypeError
    if type(when).__name__ == "datetime64" and type(when).__module__ == "numpy":
        return _ms_of_numpy(when)
    return index(when) * scale


def _ms_of_text(text: str) -> int:
    """The time of an `xsd:dateTime`, or of ISO 8601 text with dashes: a date, a space for the T."""
    ms = parse_datetime(text)
    if ms is not None:
        return ms
    if _ISO_DATE.match(text) is None:
        raise ValueError
    return _ms(datetime.fromisoformat(text))


def _ms_of_numpy(when: np.datetime64) -> int:
    """Milliseconds of a NumPy time, in Python's integers, which do not overflow."""
    if str(when) == "NaT":
        raise ValueError
    match = re.fullmatch(r"datetime64\[(\d*)(\w+)\]", str(when.dtype))
    if match is None:
        raise ValueError
    unit, count = match[2], int(match[1] or 1)
    ticks = int(when.astype("int64")) * count
    if unit in _TICKS:
        return ticks // _TICKS[unit]
    if unit in ("Y", "M"):  # of different lengths
        return int(when.astype("datetime64[D]").astype("int64")) * 86_400_000
    sizes = {"W": 604_800_000, "D": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
    return ticks * sizes[unit] if unit in sizes else ticks // 1000


def _no_time(when: object) -> str:
    """The message about a value that is no time, with a hint."""
    shown = f"{str(when)[:50]!r}"
    known = "a time is a datetime, milliseconds as int, ISO 8601 text or np.datetime64"
    if isinstance(when, float) or type(when).__name__.startswith("float"):
        return (
            f"{known}, not the float {shown}: "
            "say int(t) if it is milliseconds, round(t * 1000) if it is seconds"
        )
    if isinstance(when, date) and not isinstance(when, datetime):
        return f"{known}, not the date {shown}: say its time of day, or str(date) for midnight"
    if isinstance(when, str):
        return f"{known}, and the text {shown} is none, such as '2014-08-01T07:50:00Z'"
    return f"{known}, not {shown}"


def milliseconds(text: str) -> int:
    """`5 SECONDS` as milliseconds; UsageError if the text is no duration."""
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+?)[sS]?\s*", text)
    unit = UNITS.get(f"{match[2].upper()}S") if match else None
    if match is None or unit is None:
        raise UsageError(f"{text!r}: expected a duration such as '5 SECONDS'")
    digits = match[1].lstrip("0") or "0"
    if len(digits) > _DIGITS or int(digits) * unit > LONGEST_MS:
        raise UsageError(f"{text[:40]!r}: longer than 36 million years (2**60 milliseconds)")
    return int(digits) * unit


def duration_text(ms: int) -> str:
    """Milliseconds as text that `milliseconds` reads, in the largest unit that needs no fraction.

    >>> duration_text(90_000), duration_text(7_200_000), duration_text(1_500)
    ('90 SECONDS', '2 HOURS', '1500 MILLISECONDS')
    """
    amount, unit = in_largest_unit(ms)
    return f"{amount} {unit}"
