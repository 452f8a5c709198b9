"""Values of numeric and dateTime literals, where they can be had fast and exactly.

A decimal number is a mantissa and a power of ten. As float64, both are exact if the mantissa is
below 2^53 and the exponent within 22, and then one division or multiplication rounds correctly
(Clinger, How to read floating point numbers accurately, PLDI 1990). All else is left UNKNOWN.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Float64s, Int8s, Int32s
from spaseq.compiled.decorators import device_function, inlined_device_function, kernel
from spaseq.rdf.kernels.literals import QUOTE, constant, lexical_end
from spaseq.rdf.kernels.tables import OFFSET, SIZE
from spaseq.rdf.kernels.vectors import byte, same, signed, word
from spaseq.rdf.terms.number_kinds import (
    DATE_TIME,
    DOUBLE,
    EXACT,
    FLOAT,
    OTHER,
    ROUNDED,
    SHORT,
    UNKNOWN,
)
from spaseq.rdf.terms.vocabulary import XSD

# Datatypes that are known here; other ones of XML Schema; none of XML Schema.
_NONE, _INTEGER, _INT, _DECIMAL, _DOUBLE, _FLOAT, _DATE_TIME, _STAMP, _XSD = range(9)

_PREFIX, _PREFIX_SIZE = constant(f'"^^<{XSD}')
_STAMP_TEXT, _STAMP_SIZE = constant("dateTimeStamp>")


def _name(text: str) -> np.uint64:
    """The first 8 bytes of a datatype's name and the `>` after it."""
    return np.uint64(int.from_bytes(f"{text}>".encode()[:8].ljust(8, b"\0"), "little"))


_NAMES = tuple(_name(n) for n in ("integer", "long", "int", "decimal", "double", "float"))
_N_INTEGER, _N_LONG, _N_INT, _N_DECIMAL, _N_DOUBLE, _N_FLOAT = _NAMES
_N_DATE_TIME = _name("dateTime")
_U = np.uint64

_SPARSE = 16  # so many times fewer codes than terms are read one by one
_MANTISSA = 2**53
_MAX_EXPONENT = 22
_SHORT = 10**15
_POWERS = np.array([10.0**i for i in range(_MAX_EXPONENT + 1)])
_FIVES = np.array([5**i for i in range(_MAX_EXPONENT + 1)], np.int64)
_FLOAT_MANTISSA, _FLOAT_EXPONENT = 2**24, 10
_INT_LIMIT = 2**31
_MOST_DIGITS = 18

_PLUS, _MINUS, _DOT, _COLON, _T, _Z, _E = (ord(c) for c in "+-.:TZe")
NO_TIME = -(2**63)
"""No time, or none that is certain."""


@device_function
def _datatype(buffer: Bytes, close: int, end: int) -> int:
    """Which datatype the literal has whose last quote is at `close`."""
    size = end - close - _PREFIX_SIZE  # of the name with the bracket
    if size < 1 or not same(buffer, close, _PREFIX, 0, _PREFIX_SIZE):
        return _NONE
    at = close + _PREFIX_SIZE
    name = word(buffer, at)
    if size < 8:
        name &= (_U(1) << (_U(size) * _U(8))) - _U(1)
    if name == _N_INTEGER or name == _N_LONG:
        return _INTEGER if size == 8 or size == 5 else _XSD
    if name == _N_DECIMAL:
        return _DECIMAL if size == 8 else _XSD
    if name == _N_DOUBLE:
        return _DOUBLE
    if name == _N_FLOAT:
        return _FLOAT
    if name == _N_INT:
        return _INT
    if name == _N_DATE_TIME and size == 9:
        return _DATE_TIME
    if size == _STAMP_SIZE and same(buffer, at, _STAMP_TEXT, 0, _STAMP_SIZE):
        return _STAMP
    return _XSD


@inlined_device_function
def _digit(buffer: Bytes, at: int) -> int:
    """The digit at a place; not within 0 .. 9 if there is none."""
    return byte(buffer, at) - 48


@inlined_device_function
def _pair(buffer: Bytes, at: int) -> int:
    """The number that two digits make, -1 if they are no digits."""
    tens, ones = _digit(buffer, at), _digit(buffer, at + 1)
    if not (0 <= tens <= 9 and 0 <= ones <= 9):
        return -1
    return tens * 10 + ones


@device_function
def _decimal(buffer: Bytes, at: int, close: int) -> tuple[bool, int, int]:
    """(negative, mantissa, exponent) of the number at `at:close`; the mantissa is -1 if it is none
    or not below 2^53."""
    negative = byte(buffer, at) == _MINUS
    if negative or byte(buffer, at) == _PLUS:
        at += 1
    mantissa, exponent, digits, point = 0, 0, 0, 0
    while at < close:
        digit = _digit(buffer, at)
        if 0 <= digit <= 9:
            mantissa = mantissa * 10 + digit
            digits += 1
            exponent -= point
        elif digit == _DOT - 48 and point == 0:
            point = 1
        else:
            break
        at += 1
    if digits == 0 or digits > _MOST_DIGITS or mantissa >= _MANTISSA:
        return negative, -1, 0
    if at < close:
        written, end = _exponent(buffer, at, close)
        if end != close:
            return negative, -1, 0
        exponent += written
    return negative, mantissa, exponent


@device_function
def _exponent(buffer: Bytes, at: int, close: int) -> tuple[int, int]:
    """(the exponent written as `e-7`, the place after it, -1 if it is none)."""
    if byte(buffer, at) | 0x20 != _E:
        return 0, -1
    at += 1
    negative = byte(buffer, at) == _MINUS
    if negative or byte(buffer, at) == _PLUS:
        at += 1
    first, value = at, 0
    while at < close and 0 <= _digit(buffer, at) <= 9:
        value = value * 10 + _digit(buffer, at)
        at += 1
    if at == first or at - first > 4:
        return 0, -1
    return -value if negative else value, at


@device_function
def _has_only_digits(buffer: Bytes, at: int, close: int) -> bool:
    if byte(buffer, at) == _MINUS or byte(buffer, at) == _PLUS:
        at += 1
    while at < close:
        if not 0 <= _digit(buffer, at) <= 9:
            return False
        at += 1
    return True


@device_function
def _has_exponent(buffer: Bytes, at: int, close: int) -> bool:
    while at < close:
        if byte(buffer, at) | 0x20 == _E:
            return True
        at += 1
    return False


@inlined_device_function
def _scaled(mantissa: int, exponent: int) -> float:
    value = np.float64(mantissa)
    power: float = _POWERS[abs(exponent)]
    return value * power if exponent > 0 else value / power


@device_function
def _number(buffer: Bytes, at: int, close: int, datatype: int) -> tuple[float, int]:
    """(value, kind) of the lexical form `at:close` of a numeric datatype."""
    negative, mantissa, exponent = _decimal(buffer, at, close)
    if mantissa < 0 or not -_MAX_EXPONENT <= exponent <= _MAX_EXPONENT:
        return np.nan, UNKNOWN
    if datatype == _FLOAT:
        if mantissa >= _FLOAT_MANTISSA or not -_FLOAT_EXPONENT <= exponent <= _FLOAT_EXPONENT:
            return np.nan, UNKNOWN
        power = np.float32(_POWERS[abs(exponent)])
        single = np.float32(mantissa)
        single = single * power if exponent > 0 else single / power
        return -np.float64(single) if negative else np.float64(single), FLOAT
    value = _scaled(mantissa, exponent)
    if datatype == _DOUBLE:
        return -value if negative else value, DOUBLE
    if datatype == _DECIMAL:
        if _has_exponent(buffer, at, close):
            return np.nan, UNKNOWN
    elif not _has_only_digits(buffer, at, close):
        return np.nan, UNKNOWN
    if negative and mantissa > 0:
        value = -value
    if datatype == _INT and not -_INT_LIMIT <= value < _INT_LIMIT:
        return np.nan, UNKNOWN
    if exponent < 0 and mantissa % _FIVES[-exponent] != 0:
        return value, SHORT if mantissa < _SHORT else ROUNDED
    return value, EXACT


@device_function
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01; years are counted from March, so that a leap day ends its year."""
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
    """The offset from UTC that `at:close` gives, NO_TIME if it is none; at least one byte."""
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
def _moment(buffer: Bytes, at: int, close: int) -> tuple[int, int, bool]:
    """(ms since the epoch, digits of the fraction, whether a zone is given) of `at:close`.

    The time is NO_TIME for what is no xsd:dateTime, for years before 1 and after 9999, and 24:00.
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
        while at < close and 0 <= _digit(buffer, at) <= 9:
            past += _digit(buffer, at) * unit
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


@device_function
def _number_of(buffer: Bytes, at: int, end: int) -> tuple[float, int]:
    """(value, kind) of the term at `at:end`."""
    if byte(buffer, at) != QUOTE:
        return np.nan, OTHER
    close = lexical_end(buffer, at)
    datatype = _datatype(buffer, close, end)
    if datatype == _DATE_TIME or datatype == _STAMP:
        ms, digits, zoned = _moment(buffer, at + 1, close)
        if ms == NO_TIME or digits > 3 or (datatype == _STAMP and not zoned):
            return np.nan, UNKNOWN
        return ms / 1000.0, DATE_TIME
    if datatype == _XSD:
        return np.nan, UNKNOWN
    if datatype == _NONE:
        return np.nan, OTHER
    return _number(buffer, at + 1, close, datatype)


@kernel
def numbers(buffer: Bytes, spans: Int32s, count: int, codes: Int32s) -> tuple[Float64s, Int8s]:
    """(values, kinds) [n] of terms; see `spaseq.rdf.terms.number_kinds`. A negative code is OTHER.

    Codes are below `count`. Of many codes, each distinct one is read once.
    """
    values = np.full(len(codes), np.nan)
    kinds = np.zeros(len(codes), np.int8)
    many = len(codes) * _SPARSE > count
    first = np.zeros(count if many else 0, np.int32)  # where a code came first, from 1 on
    for i in range(len(codes)):
        code = codes[i]
        if code < 0:
            continue
        if many and first[code] > 0:
            values[i], kinds[i] = values[first[code] - 1], kinds[first[code] - 1]
            continue
        at = signed(spans[code, OFFSET])
        values[i], kinds[i] = _number_of(buffer, at, at + spans[code, SIZE])
        if many:
            first[code] = i + 1
    return values, kinds


@device_function
def time_of(buffer: Bytes, at: int, end: int) -> int:
    """Milliseconds since the epoch of the literal at `at:end` as the time of an event, or NO_TIME.

    NO_TIME only says that it is not one of the common forms; LANGUAGE section 1 has others.
    """
    close = lexical_end(buffer, at)
    datatype = _datatype(buffer, close, end)
    at += 1
    if datatype == _DATE_TIME or datatype == _STAMP:
        ms, _, zoned = _moment(buffer, at, close)
        return ms if zoned or datatype == _DATE_TIME else NO_TIME
    if datatype == _INTEGER and _has_only_digits(buffer, at, close):
        negative, mantissa, _ = _decimal(buffer, at, close)
        if mantissa >= 0:
            return -mantissa if negative else mantissa
    return NO_TIME
