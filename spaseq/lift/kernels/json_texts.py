"""Strings of JSON: their ends, their lengths, and their texts without escapes."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int8s, Int16s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, kernel
from spaseq.rdf.kernels.escapes import BACKSLASH, LOWER_U, hex_value
from spaseq.rdf.kernels.literals import QUOTE
from spaseq.rdf.kernels.utf8 import encoded_size, put_character
from spaseq.rdf.kernels.vectors import WIDTH, byte, copied, first_quote_end, signed


def _characters() -> Int16s:
    table = np.full(256, -1, np.int16)
    table[[*b'"\\/bfnrt']] = [*b'"\\/\b\f\n\r\t']
    return table


_CHARACTERS = _characters()
"""By letter after a backslash: the character, -1 if the escape is another one."""


@device_function
def _hexadecimal(data: Bytes, at: int) -> int:
    """The number of four digits, -1 if they are none."""
    code = 0
    for i in range(at, at + 4):
        digit = hex_value(byte(data, i))
        if digit < 0:
            return -1
        code = code << 4 | digit
    return code


@device_function
def _escape(data: Bytes, at: int) -> tuple[int, int]:
    """(character, bytes) of the escape whose backslash is at `at`; -1 if it is none.

    Half of a pair of surrogates is none.
    """
    letter = byte(data, at + 1)
    if letter != LOWER_U:
        return signed(_CHARACTERS[letter]), 2
    code = _hexadecimal(data, at + 2)
    if code < 0xD800 or code > 0xDFFF:
        return code, 6
    if code > 0xDBFF or byte(data, at + 6) != BACKSLASH or byte(data, at + 7) != LOWER_U:
        return -1, 6
    low = _hexadecimal(data, at + 8)
    if low < 0xDC00 or low > 0xDFFF:
        return -1, 6
    return 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00, 12


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
        code, size = _escape(data, at)
        if code < 0:
            return -1, 0
        saved += size - encoded_size(code)
        at += size


@kernel
def gathered(
    data: Bytes, kinds: Int8s, starts: Int64s, sizes: Int32s, escaped: int
) -> tuple[Int64s, Bytes]:
    """(offsets [n + 1], bytes) of n texts; those of the kind `escaped` lose their escapes.

    `sizes` [n] are those of the texts without escapes.
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
                code, size = _escape(data, at)
                to = put_character(texts, to, code)
                at += size
            else:
                texts[to] = data[at]
                to, at = to + 1, at + 1
    return offsets, texts[: offsets[rows]]
