"""Escapes in strings of JSON."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int16s
from spaseq.compiled.decorators import device_function
from spaseq.rdf.kernels.escapes import BACKSLASH, LOWER_U, hex_value
from spaseq.rdf.kernels.vectors import byte, signed


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
def json_escape(data: Bytes, at: int) -> tuple[int, int]:
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
