"""The xsd:dateTime of a literal as milliseconds since the epoch, in its common forms."""

from __future__ import annotations

from spaseq.compiled.arrays import Bytes
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.vectors import byte

_PLUS, _MINUS, _DOT, _COLON, _T, _Z = (ord(c) for c in "+-.:TZ")

NO_TIME = -(2**63)
"""No time, or a form that only `spaseq.rdf.terms.times` reads."""


@inlined_device_function
def digit_at(buffer: Bytes, at: int) -> int:
    """The digit at `at`; outside 0 .. 9 if there is none."""
    return byte(buffer, at) - 48


@inlined_device_function
def _pair(buffer: Bytes, at: int) -> int:
    """The number of two digits, -1 if they are not digits."""
    tens, ones = digit_at(buffer, at), digit_at(buffer, at + 1)
    if not (0 <= tens <= 9 and 0 <= ones <= 9):
        return -1
    return tens * 10 + ones


@device_function
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01. Years start in March here, so that a leap day ends its year."""
    if month < 3:
        year -= 1
        month += 12
    before = year * 365 + year // 4 - year // 100 + year // 400
    return before + (153 * (month - 3) + 2) // 5 + day - 1 - 719_468


@inlined_device_function
def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@device_function
def _zone_ms(buffer: Bytes, at: int, close: int) -> int:
    """The offset from UTC (ms) in the nonempty text `at:close`, NO_TIME if it is not valid."""
    sign = byte(buffer, at)
    if sign == _Z:
        return 0 if at + 1 == close else NO_TIME
    hours, minutes = _pair(buffer, at + 1), _pair(buffer, at + 4)
    formed = (
        close - at == 6 and (sign == _PLUS or sign == _MINUS) and byte(buffer, at + 3) == _COLON
    )
    if not formed or hours < 0 or not 0 <= minutes <= 59 or hours * 60 + minutes > 14 * 60:
        return NO_TIME
    offset = (hours * 60 + minutes) * 60_000
    return -offset if sign == _MINUS else offset


@device_function
def date_time_ms(buffer: Bytes, at: int, close: int) -> tuple[int, int, bool]:
    """(ms since the epoch, number of fraction digits, whether there is a zone) of `at:close`.

    The time is NO_TIME if the text is not an xsd:dateTime, the year is before 1 or after 9999, or
    the hour is 24.
    """
    none = NO_TIME, 0, False
    century, rest = _pair(buffer, at), _pair(buffer, at + 2)
    year, month, day = century * 100 + rest, _pair(buffer, at + 5), _pair(buffer, at + 8)
    hour, minute, second = (
        _pair(buffer, at + 11),
        _pair(buffer, at + 14),
        _pair(buffer, at + 17),
    )
    if close - at < 19 or century < 0 or rest < 0 or year == 0:
        return none
    marks = (
        byte(buffer, at + 4) == _MINUS
        and byte(buffer, at + 7) == _MINUS
        and byte(buffer, at + 10) == _T
        and byte(buffer, at + 13) == _COLON
        and byte(buffer, at + 16) == _COLON
    )
    if not marks or not 1 <= month <= 12 or not 1 <= day <= _month_length(year, month):
        return none
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return none
    at += 19
    past = ((hour * 60 + minute) * 60 + second) * 1000
    digits, unit = 0, 100
    if at < close and byte(buffer, at) == _DOT:
        at += 1
        while at < close and 0 <= digit_at(buffer, at) <= 9:
            past += digit_at(buffer, at) * unit
            unit //= 10
            digits += 1
            at += 1
        if digits == 0:
            return none
    offset = 0
    zoned = at < close
    if zoned:
        offset = _zone_ms(buffer, at, close)
        if offset == NO_TIME:
            return none
    return _days(year, month, day) * 86_400_000 + past - offset, digits, zoned
