"""Numbers of JSON: integers of 64 bits, and doubles that one operation gives exactly; and its
strings: their ends, their lengths, and their texts without escapes.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int8s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, kernel
from spaseq.rdf.kernels.escapes import BACKSLASH, encoded_size, json_escape, put_character
from spaseq.rdf.kernels.literals import QUOTE
from spaseq.rdf.kernels.vectors import WIDTH, byte, copied, first_quote_end, signed

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


@device_function
def text_end(data: Bytes, at: int) -> tuple[int, int]:
    """(offset of the closing quote, bytes without escapes) of the string that begins at `at`.

    `at` is after the opening quote. The offset is -1 if the string is not valid.
    """
    start, saved = at, 0
    while True:
        at = first_quote_end(data, at)
        stop = byte(data, at)
        if stop == QUOTE:
            return at, at - start - saved
        if stop != BACKSLASH:
            return -1, 0
        code, size = json_escape(data, at)
        if code < 0:
            return -1, 0
        saved += size - encoded_size(code)
        at += size


@kernel
def gathered(
    data: Bytes, kinds: Int8s, starts: Int64s, sizes: Int32s, escaped: int
) -> tuple[Int64s, Bytes]:
    """(offsets [n + 1], bytes) of n texts. Texts of the kind `escaped` lose their escapes.

    `sizes` [n] are the sizes of the texts without escapes.
    """
    rows = len(starts)
    offsets = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        offsets[row + 1] = offsets[row] + sizes[row]
    texts = np.empty(offsets[rows] + WIDTH, np.uint8)
    for row in range(rows):
        at, to = signed(starts[row]), offsets[row]
        if kinds[row] != escaped:
            copied(data, at, texts, to, signed(sizes[row]))
            continue
        while to < offsets[row + 1]:
            if byte(data, at) == BACKSLASH:
                code, size = json_escape(data, at)
                to = put_character(texts, to, code)
                at += size
            else:
                texts[to] = data[at]
                to, at = to + 1, at + 1
    return offsets, texts[: offsets[rows]]
