"""The dates, times and durations of XML Schema: lexical forms, instants and arithmetic.

A moment without a time zone is in UTC (XPath functions 3.1 section 10.4, implicit time zone UTC).
So moments of one kind have an order by instant. SPARQL's operators use this order for xsd:dateTime;
`instants` describes the other kinds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any

from spaseq.expr import numbers
from spaseq.expr.env import ExpressionError
from spaseq.expr.numbers import EXACT, MOST_DIGITS, bounded_result, parse_integer, write_decimal
from spaseq.rdf.terms.times import date_of, days_of, month_length
from spaseq.records import record
from spaseq.text_patterns import late_pattern

DAY_SECONDS = 86_400
_LAST_YEAR = 10**100
_FARTHEST_ZONE_SECONDS = 14 * 3600


@record
class Moment:
    """A value of xsd:dateTime, date, time or one of the Gregorian fragments.

    The fields are local time; fields that the kind lacks have filler values. `zone` is the offset
    from UTC in minutes, or None. `instant` is in seconds since the epoch; comparisons use only it.
    """

    kind: str  # local name of the datatype
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal
    zone: int | None
    instant: Decimal = field(compare=False)


@record
class Duration:
    """A value of xsd:duration or of one of its two ordered subtypes."""

    kind: str  # local name of the datatype
    months: int
    seconds: Decimal


# --- calendar ------------------------------------------------------------------------------------


def _divide(seconds: Decimal, unit: int) -> tuple[int, Decimal]:
    """Quotient, rounded down, and remainder; unlike `divmod`, exact for all lengths."""
    quotient = int(seconds.to_integral_value(ROUND_FLOOR, EXACT)) // unit
    return quotient, EXACT.subtract(seconds, Decimal(quotient * unit))


def _at(kind: str, instant: Decimal, zone: int | None) -> Moment:
    local = EXACT.add(instant, Decimal(60 * (zone or 0)))
    days, rest = _divide(local, DAY_SECONDS)
    minutes, second = _divide(rest, 60)
    return Moment(kind, *date_of(days), minutes // 60, minutes % 60, second, zone, instant)


def _moment(
    kind: str,
    year: int,
    month: int,
    day: int,
    time_of_day: Decimal,
    zone: int | None,
) -> Moment:
    whole = days_of(year, month, day) * DAY_SECONDS - 60 * (zone or 0)
    return _at(kind, EXACT.add(Decimal(whole), time_of_day), zone)


# --- lexical forms -------------------------------------------------------------------------------

_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))"  # at most nine digits
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = (
    r"(?:(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]+)?)"
    r"|(?P<midnight>24:00:00(?:\.0+)?))"
)
_ZONE = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))"

_FORMS: dict[str, re.Pattern[str]] = {
    kind: late_pattern(pattern)
    for kind, pattern in {
        "dateTime": f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}{_ZONE}?",
        "dateTimeStamp": f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}{_ZONE}",
        "date": f"{_YEAR}-{_MONTH}-{_DAY}{_ZONE}?",
        "time": f"{_TIME}{_ZONE}?",
        "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}?",
        "gYear": f"{_YEAR}{_ZONE}?",
        "gMonthDay": f"--{_MONTH}-{_DAY}{_ZONE}?",
        "gMonth": f"--{_MONTH}{_ZONE}?",
        "gDay": f"---{_DAY}{_ZONE}?",
    }.items()
}
MOMENT_KINDS = tuple(_FORMS)

_FILLER_YEAR = 1972  # a leap year, which has a 29 February


def parse_moment(kind: str, lexical: str) -> Moment:
    """The value of a lexical form of one of `MOMENT_KINDS`; ValueError for other texts."""
    match = _FORMS[kind].fullmatch(lexical) if len(lexical) <= MOST_DIGITS else None
    if match is None:
        raise ValueError(lexical)
    parts: Mapping[str, str | None] = match.groupdict()
    year = int(parts.get("year") or _FILLER_YEAR)
    month, day = int(parts.get("month") or 1), int(parts.get("day") or 1)
    if day > 28 and day > month_length(year, month):
        raise ValueError(lexical)
    kind = "dateTime" if kind == "dateTimeStamp" else kind
    zone = _parse_zone(parts["zone"])
    if parts.get("midnight"):
        end = 0 if kind == "time" else DAY_SECONDS
        return _moment(kind, year, month, day, Decimal(end), zone)
    hour, minute = int(parts.get("hour") or 0), int(parts.get("minute") or 0)
    second = Decimal(parts.get("second") or 0)
    whole = days_of(year, month, day) * DAY_SECONDS + hour * 3600 + (minute - (zone or 0)) * 60
    instant = EXACT.add(Decimal(whole), second)
    return Moment(kind, year, month, day, hour, minute, second, zone, instant)


def _parse_zone(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "Z":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    return -minutes if text[0] == "-" else minutes


def write_zone(zone: int | None) -> str:
    """The time zone at the end of a lexical form: `Z`, `-08:00` or nothing."""
    if not zone:
        return "" if zone is None else "Z"
    hours, minutes = divmod(abs(zone), 60)
    return f"{'-' if zone < 0 else '+'}{hours:02}:{minutes:02}"


def write_moment(value: Moment) -> str:
    """The lexical form of a moment, in its own time zone."""
    year = f"{'-' if value.year < 0 else ''}{abs(value.year):04}"
    whole, _, fraction = write_decimal(value.second).partition(".")
    second = f"{int(whole):02}" + (f".{fraction}" if fraction else "")
    date = f"{year}-{value.month:02}-{value.day:02}"
    time = f"{value.hour:02}:{value.minute:02}:{second}"
    text = {
        "dateTime": f"{date}T{time}",
        "date": date,
        "time": time,
        "gYearMonth": f"{year}-{value.month:02}",
        "gYear": year,
        "gMonthDay": f"--{value.month:02}-{value.day:02}",
        "gMonth": f"--{value.month:02}",
        "gDay": f"---{value.day:02}",
    }[value.kind]
    return text + write_zone(value.zone)


@lru_cache(1024)
def moment_of_ms(ms: int) -> Moment:
    """The xsd:dateTime in UTC of a number of milliseconds since the epoch."""
    return _at("dateTime", Decimal(ms).scaleb(-3, EXACT), 0)


_DURATION = late_pattern(
    r"(-)?P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)
DURATION_KINDS = ("duration", "dayTimeDuration", "yearMonthDuration")


def parse_duration(kind: str, lexical: str) -> Duration:
    """The value of a lexical form of one of `DURATION_KINDS`; ValueError for other texts."""
    match = _DURATION.fullmatch(lexical) if len(lexical) <= MOST_DIGITS else None
    if match is None or lexical.endswith(("P", "T")):
        raise ValueError(lexical)
    minus, years, months, days, _, hours, minutes, seconds = match.groups()
    has_months = years is not None or months is not None
    has_days = days is not None or match.group(5) is not None
    if (kind == "dayTimeDuration" and has_months) or (kind == "yearMonthDuration" and has_days):
        raise ValueError(lexical)
    y, mo, d, h, mi = (parse_integer(n or "0") for n in (years, months, days, hours, minutes))
    total = EXACT.add(Decimal(d * DAY_SECONDS + h * 3600 + mi * 60), Decimal(seconds or "0"))
    sign = -1 if minus else 1
    return Duration(kind, sign * (12 * y + mo), EXACT.multiply(sign, total) or Decimal(0))


def write_duration(value: Duration) -> str:
    """The canonical lexical form of a duration."""
    years, months = divmod(abs(value.months), 12)
    minutes, second = _divide(EXACT.abs(value.seconds), 60)
    days, rest = divmod(minutes, 1440)
    date = _fields((years, "Y"), (months, "M"), (days, "D"))
    time = _fields((rest // 60, "H"), (rest % 60, "M"))
    time += f"{write_decimal(second)}S" if second else ""
    sign = "-" if value.months < 0 or value.seconds < 0 else ""
    if not date and not time:
        return "P0M" if value.kind == "yearMonthDuration" else "PT0S"
    return f"{sign}P{date}" + (f"T{time}" if time else "")


def _fields(*fields: tuple[int, str]) -> str:
    return "".join(f"{number}{letter}" for number, letter in fields if number)


# --- arithmetic (XPath functions 3.1 sections 8.4 and 9.7) ---------------------------------------


def add_duration(moment: Moment, duration: Duration, sign: int = 1) -> Moment:
    """A dateTime, date or time moved by a duration; ExpressionError for other kinds."""
    if moment.kind not in ("dateTime", "date", "time"):
        raise ExpressionError(f"no arithmetic on xsd:{moment.kind}")
    if moment.kind == "time" and duration.months:
        raise ExpressionError("xsd:time plus months has no value")
    months = moment.year * 12 + moment.month - 1 + sign * duration.months
    year, month = months // 12, months % 12 + 1
    day = min(moment.day, month_length(year, month))
    time_of_day = EXACT.add(Decimal(moment.hour * 3600 + moment.minute * 60), moment.second)
    time_of_day = EXACT.add(time_of_day, EXACT.multiply(sign, duration.seconds))
    if moment.kind == "time":
        year, month, day = _FILLER_YEAR, 1, 1
        time_of_day = _divide(time_of_day, DAY_SECONDS)[1]
    elif moment.kind == "date":
        time_of_day = Decimal(_divide(time_of_day, DAY_SECONDS)[0] * DAY_SECONDS)
    if abs(year) > _LAST_YEAR or abs(time_of_day) > _LAST_YEAR * 366 * DAY_SECONDS:
        raise ExpressionError("the year has too many digits")
    return _moment(moment.kind, year, month, day, bounded_result(time_of_day), moment.zone)


def convert_moment(kind: str, moment: Moment) -> Moment:
    """A moment as another kind: a dateTime from a date, a date or a time from a dateTime."""
    if kind in (moment.kind, f"{moment.kind}Stamp"):
        return moment
    time_of_day = EXACT.add(Decimal(moment.hour * 3600 + moment.minute * 60), moment.second)
    date = moment.year, moment.month, moment.day
    match moment.kind, kind:
        case "date", "dateTime":
            return _moment(kind, *date, Decimal(0), moment.zone)
        case "dateTime", "date":
            return _moment(kind, *date, Decimal(0), moment.zone)
        case "dateTime", "time":
            return _moment(kind, _FILLER_YEAR, 1, 1, time_of_day, moment.zone)
    raise ExpressionError(f"no cast of xsd:{moment.kind} to xsd:{kind}")


def instants(a: Moment, b: Moment) -> tuple[Decimal, Decimal]:
    """The instants that `=` and `<` compare, of two moments of one kind.

    Raises:
        ExpressionError: the moments are not dateTimes, only one of them has a zone, and they are at
            most 14 hours apart: the missing zone decides which one is earlier.
    """
    unsure = a.kind != "dateTime" and (a.zone is None) != (b.zone is None)
    if unsure and abs(EXACT.subtract(a.instant, b.instant)) <= _FARTHEST_ZONE_SECONDS:
        raise ExpressionError("there is no order without the time zone")
    return a.instant, b.instant


def between(later: Moment, earlier: Moment) -> Duration:
    """`later - earlier` as a dayTimeDuration; ExpressionError unless both are of one kind."""
    if later.kind != earlier.kind or later.kind not in ("dateTime", "date", "time"):
        raise ExpressionError("these moments have no difference")
    seconds = EXACT.subtract(later.instant, earlier.instant)
    return Duration("dayTimeDuration", 0, bounded_result(seconds))


def add_durations(a: Duration, b: Duration, sign: int = 1) -> Duration:
    """The sum of two durations of one ordered subtype."""
    if a.kind != b.kind or a.kind == "duration":
        raise ExpressionError("these durations have no sum")
    seconds = EXACT.add(a.seconds, EXACT.multiply(sign, b.seconds))
    months = bounded_result(Decimal(a.months + sign * b.months))
    return Duration(a.kind, int(months), bounded_result(seconds))


def times_number(duration: Duration, factor: Any) -> Duration:
    """A duration of an ordered subtype, `factor` times as long; months are rounded."""
    if _is_infinite(duration, factor):
        raise ExpressionError("the duration is infinite")
    return _scaled(duration, factor, numbers.multiply)


def divided_by_number(duration: Duration, divisor: Any) -> Duration:
    """A duration of an ordered subtype, divided by a number; months are rounded."""
    if _is_infinite(duration, divisor):
        return Duration(duration.kind, 0, Decimal(0))
    return _scaled(duration, divisor, numbers.divide)


def ratio(a: Duration, b: Duration) -> Decimal:
    """The quotient of two durations of one ordered subtype."""
    if a.kind != b.kind or a.kind == "duration":
        raise ExpressionError("these durations have no quotient")
    if a.kind == "yearMonthDuration":
        return numbers.divide(Decimal(a.months), Decimal(b.months))  # type: ignore[return-value]
    return numbers.divide(a.seconds, b.seconds)  # type: ignore[return-value]


def _is_infinite(duration: Duration, number: Any) -> bool:
    """Whether a number is infinite; ExpressionError unless duration and number go together."""
    if duration.kind == "duration" or not numbers.is_number(number) or number != number:
        raise ExpressionError("no arithmetic on this duration and number")
    return isinstance(number, float) and math.isinf(numbers.to_double(number))


def _scaled(duration: Duration, number: Any, operation: Callable[[Any, Any], Any]) -> Duration:
    """The operation on the length of a duration and a number; a double is as it is written."""
    exact = Decimal(numbers.write_double(number)) if isinstance(number, float) else number
    if duration.kind == "yearMonthDuration":
        months = operation(Decimal(duration.months), exact)
        whole = EXACT.add(months, Decimal("0.5")).to_integral_value(ROUND_FLOOR, EXACT)
        return Duration(duration.kind, int(whole), Decimal(0))
    return Duration(duration.kind, 0, bounded_result(operation(duration.seconds, exact)))
