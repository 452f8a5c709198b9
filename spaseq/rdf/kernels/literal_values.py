"""Values of numeric and dateTime literals, where a fast exact conversion exists.

A decimal number is a mantissa and a power of ten. Both are exact in float64 if the mantissa is
below 2^53 and the exponent at most 22; then one multiplication or division rounds correctly
(Clinger, How to read floating point numbers accurately, PLDI 1990). All other numbers stay UNKNOWN.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Float64s, Int8s, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    device_function,
    inlined_device_function,
    lean_kernel,
)
from spaseq.rdf.kernels.date_times import NO_TIME, date_time_ms, digit_at
from spaseq.rdf.kernels.lines import SCALE, SECONDS
from spaseq.rdf.kernels.literals import QUOTE, constant, lexical_end
from spaseq.rdf.kernels.texts import OFFSET, SIZE
from spaseq.rdf.kernels.vectors import PREFETCHED, byte, prefetch, same, signed, word
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
from spaseq.rdf.terms.term import XSD
from spaseq.rdf.terms.times import LIKELY_SECONDS, LIMIT_MS

# Datatypes: not of XML Schema, the supported ones, and others of XML Schema.
_NONE, _INTEGER, _INT, _DECIMAL, _DOUBLE, _FLOAT, _DATE_TIME, _STAMP, _XSD = range(9)

_FIRST_SECOND, _END_SECOND = LIKELY_SECONDS.start, LIKELY_SECONDS.stop

_PREFIX, _PREFIX_SIZE = constant(f'"^^<{XSD}')
_STAMP_TEXT, _STAMP_SIZE = constant("dateTimeStamp>")


def _name(text: str) -> np.uint64:
    """The first 8 bytes of a datatype's local name and the `>` after it, as an integer."""
    return np.uint64(int.from_bytes(f"{text}>".encode()[:8].ljust(8, b"\0"), "little"))


_NAMES = tuple(_name(n) for n in ("integer", "long", "int", "decimal", "double", "float"))
_N_INTEGER, _N_LONG, _N_INT, _N_DECIMAL, _N_DOUBLE, _N_FLOAT = _NAMES
_N_DATE_TIME = _name("dateTime")
_U = np.uint64

CONVERTED = 2  # kind + CONVERTED is positive
_MANTISSA = 2**53
_MAX_EXPONENT = 22
_SHORT = 10**15
_POWERS = np.array([10.0**i for i in range(_MAX_EXPONENT + 1)])
_FIVES = np.array([5**i for i in range(_MAX_EXPONENT + 1)], np.int64)
_FLOAT_MANTISSA, _FLOAT_EXPONENT = 2**24, 10
_INT_LIMIT = 2**31
_MOST_DIGITS = 18

_PLUS, _MINUS, _DOT, _E = (ord(c) for c in "+-.e")


@device_function
def _datatype(buffer: Bytes, close: int, end: int) -> int:
    """The datatype of the literal that ends at `end` with its closing quote at `close`."""
    size = end - close - _PREFIX_SIZE  # of the name and `>`
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


@device_function
def _decimal(buffer: Bytes, at: int, close: int) -> tuple[bool, int, int]:
    """(negative, mantissa, exponent) of the number at `at:close`.

    The mantissa is -1 if the text is not a number or the mantissa is not below 2^53.
    """
    negative = byte(buffer, at) == _MINUS
    if negative or byte(buffer, at) == _PLUS:
        at += 1
    mantissa, exponent, digits, point = 0, 0, 0, 0
    while at < close:
        digit = digit_at(buffer, at)
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
    """(exponent in the form `e-7`, offset after it), or (0, -1) if there is none."""
    if byte(buffer, at) | 0x20 != _E:
        return 0, -1
    at += 1
    negative = byte(buffer, at) == _MINUS
    if negative or byte(buffer, at) == _PLUS:
        at += 1
    first, value = at, 0
    while at < close and 0 <= digit_at(buffer, at) <= 9:
        value = value * 10 + digit_at(buffer, at)
        at += 1
    if at == first or at - first > 4:
        return 0, -1
    return -value if negative else value, at


@device_function
def _has_only_digits(buffer: Bytes, at: int, close: int) -> bool:
    if byte(buffer, at) == _MINUS or byte(buffer, at) == _PLUS:
        at += 1
    while at < close:
        if not 0 <= digit_at(buffer, at) <= 9:
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
    """(float64 value, kind) of the lexical form `at:close` of a numeric datatype."""
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
def _number_of(buffer: Bytes, at: int, end: int) -> tuple[float, int]:
    """(float64 value, kind) of the term at `at:end`; dateTimes are in seconds since the epoch."""
    if byte(buffer, at) != QUOTE:
        return np.nan, OTHER
    close = lexical_end(buffer, at)
    datatype = _datatype(buffer, close, end)
    if datatype == _DATE_TIME or datatype == _STAMP:
        ms, digits, zoned = date_time_ms(buffer, at + 1, close)
        if ms == NO_TIME or digits > 3 or (datatype == _STAMP and not zoned):
            return np.nan, UNKNOWN
        return ms / 1000.0, DATE_TIME
    if datatype == _XSD:
        return np.nan, UNKNOWN
    if datatype == _NONE:
        return np.nan, OTHER
    return _number(buffer, at + 1, close, datatype)


@lean_kernel
def numbers(
    buffer: Bytes,
    spans: Int32s,
    codes: Int32s,
    known: Float64s,
    states: Int8s,
    values: Float64s,
    kinds: Int8s,
) -> None:
    """Write values [n] and kinds [n] of codes [n]; see `spaseq.rdf.terms.number_kinds`.

    A negative code is OTHER. `known` and `states` cache conversions by code: the value, and the
    kind + CONVERTED, or 0.
    """
    for i in range(len(codes)):
        following = codes[min(i + PREFETCHED, len(codes) - 1)]
        if following >= 0 and states[as_nonnegative(following)] == 0:
            prefetch(buffer, signed(spans[as_nonnegative(following), OFFSET]))
        if codes[i] < 0:
            values[i], kinds[i] = np.nan, OTHER
            continue
        code = as_nonnegative(codes[i])
        if states[code] == 0:
            at = signed(spans[code, OFFSET])
            known[code], kind = _number_of(buffer, at, at + spans[code, SIZE])
            states[code] = kind + CONVERTED
        values[i], kinds[i] = known[code], states[code] - CONVERTED


@device_function
def time_of(buffer: Bytes, at: int, end: int, state: Int64s) -> int:
    """Milliseconds since the epoch of the literal at `at:end` as an event time, or NO_TIME.

    `state` is the tokenizer's; its SECONDS gets an integer of ms that seems to be seconds.

    NO_TIME says only that it is not in a common form; there are others
    (docs/meaning.md#events-and-streams).
    """
    close = lexical_end(buffer, at)
    datatype = _datatype(buffer, close, end)
    at += 1
    if datatype == _DATE_TIME or datatype == _STAMP:
        ms, _, zoned = date_time_ms(buffer, at, close)
        return ms if zoned or datatype == _DATE_TIME else NO_TIME
    if datatype == _INTEGER and _has_only_digits(buffer, at, close):
        negative, mantissa, _ = _decimal(buffer, at, close)
        scale = state[SCALE]
        if mantissa >= 0 and mantissa < LIMIT_MS // scale:
            if scale == 1 and not negative and _FIRST_SECOND <= mantissa < _END_SECOND:
                state[SECONDS] = mantissa
            return int(-mantissa if negative else mantissa) * int(scale)
    return NO_TIME
