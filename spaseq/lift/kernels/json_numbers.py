"""Numbers of JSON: integers of 64 bits, and doubles that one operation gives exactly."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.vectors import byte

UNSURE, INTEGER, DOUBLE, LONG_DOUBLE = 0, 1, 2, 3
"""What a token is. The value of a `LONG_DOUBLE` is not computed here."""

_MINUS, _PLUS, _POINT, _LETTER_E = (ord(sign) for sign in "-+.e")
_MOST_DIGITS, _EXACT_DIGITS, _EXACT_POWER = 18, 15, 22
_POWERS = 10.0 ** np.arange(_EXACT_POWER + 1)


@inlined_device_function
def _digit(data: Bytes, at: int) -> int:
    """The digit at an offset; another byte gives a number that is none."""
    return byte(data, at) - 48


@device_function
def _exponent(data: Bytes, at: int) -> tuple[int, int]:
    """(power of ten, offset after it) of what follows the letter e; -1 if it is not usual."""
    down = byte(data, at) == _MINUS
    if down or byte(data, at) == _PLUS:
        at += 1
    begin, exponent = at, 0
    while 0 <= _digit(data, at) <= 9 and at < begin + 3:
        exponent = exponent * 10 + _digit(data, at)
        at += 1
    if at == begin or at == begin + 3:
        return 0, -1
    return -exponent if down else exponent, at


@device_function
def number(data: Bytes, at: int) -> tuple[int, int, int, float]:
    """(kind, offset after it, integer, double) of the number at `at`.

    A double with at most 15 digits and a power of ten of at most 22 is a product or quotient of two
    float64s, which is rounded once (W. D. Clinger, How to read floating point numbers accurately,
    1990).
    """
    negative = byte(data, at) == _MINUS
    if negative:
        at += 1
    begin, whole, power = at, 0, 0
    while 0 <= _digit(data, at) <= 9 and at <= begin + _MOST_DIGITS:
        whole = whole * 10 + _digit(data, at)
        at += 1
    digits = at - begin
    if digits == 0 or digits > _MOST_DIGITS or (digits > 1 and _digit(data, begin) == 0):
        return UNSURE, at, 0, 0.0
    kind = INTEGER
    if byte(data, at) == _POINT:
        kind, at = DOUBLE, at + 1
        point = at
        while 0 <= _digit(data, at) <= 9:
            if digits < _MOST_DIGITS:
                whole = whole * 10 + _digit(data, at)
            digits, at = digits + 1, at + 1
        power = point - at
        if power == 0:
            return UNSURE, at, 0, 0.0
    if byte(data, at) | 0x20 == _LETTER_E:
        exponent, at = _exponent(data, at + 1)
        if at < 0:
            return UNSURE, at, 0, 0.0
        kind, power = DOUBLE, power + exponent
    if kind == INTEGER:
        return INTEGER, at, -whole if negative else whole, 0.0
    if digits > _EXACT_DIGITS or power > _EXACT_POWER or power < -_EXACT_POWER:
        return LONG_DOUBLE, at, 0, 0.0
    value = whole * _POWERS[power] if power >= 0 else whole / _POWERS[-power]
    return DOUBLE, at, 0, -value if negative else value
