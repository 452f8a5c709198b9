r"""Escapes of N-Triples (`\uXXXX`, `\UXXXXXXXX`, `\n`): reading, and writing canonical text."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int16s
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.utf8 import character, encoded_size, put_character
from spaseq.rdf.kernels.vectors import byte, signed

BACKSLASH, LOWER_U, UPPER_U = ord("\\"), ord("u"), ord("U")
DEL = 0x7F


def _table(pairs: dict[str, str]) -> Int16s:
    table = np.full(128, -1, np.int16)
    for key, value in pairs.items():
        table[ord(key)] = ord(value)
    return table


_NAMES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
_NAME_OF = _table(_NAMES)
"""By code point: its escape letter in a canonical literal, -1 if there is none."""
_NAMED = _table({name: char for char, name in _NAMES.items()} | {"'": "'"})
"""By letter after a backslash: the escaped code point, -1 if the escape is not valid."""
_HEX = b"0123456789ABCDEF"
_DIGITS = np.frombuffer(_HEX, np.uint8).copy()


@inlined_device_function
def hex_value(digit: int) -> int:
    """The value of a hexadecimal digit, -1 for any other byte."""
    if 48 <= digit <= 57:
        return digit - 48
    letter = digit | 0x20
    return letter - 87 if 97 <= letter <= 102 else -1


@device_function
def escaped(buffer: Bytes, at: int) -> tuple[int, int]:
    """(code point, offset after it) of the escape with its backslash at `at`; -1 if not valid.

    IRIs allow numeric escapes only; the caller checks that.
    """
    letter = byte(buffer, at + 1)
    if letter != LOWER_U and letter != UPPER_U:
        code = -1 if letter > 127 else signed(_NAMED[letter])
        return code, at + 2
    end = at + (6 if letter == LOWER_U else 10)
    code = 0
    for i in range(at + 2, end):
        digit = hex_value(byte(buffer, i))
        if digit < 0:
            return -1, end
        code = code << 4 | digit
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return -1, end
    return code, end


@inlined_device_function
def is_escaped(code: int) -> bool:
    """Whether a canonical literal escapes this code point."""
    if code < 0x80:
        return code < 0x20 or code == DEL or code == 0x22 or code == BACKSLASH
    return code == 0xFFFE or code == 0xFFFF


@device_function
def put_escaped(buffer: Bytes, at: int, code: int) -> int:
    """Write a code point at `at` as its canonical escape; return the offset after it."""
    buffer[at] = BACKSLASH
    name = -1 if code > 127 else signed(_NAME_OF[code])
    if name >= 0:
        buffer[at + 1] = name
        return at + 2
    buffer[at + 1] = LOWER_U
    for i in range(4):
        buffer[at + 2 + i] = _DIGITS[code >> (12 - 4 * i) & 15]
    return at + 6


@device_function
def put_unescaped(buffer: Bytes, at: int, end: int, target: int, in_literal: bool) -> int:
    """Copy the valid text `at:end` to `target` without escapes; return the offset after the copy.

    In a literal, characters that need an escape get the canonical one. The copy is never longer
    than the text.
    """
    while at < end:
        value = byte(buffer, at)
        if value != BACKSLASH:
            buffer[target] = value
            at += 1
            target += 1
            continue
        code, at = escaped(buffer, at)
        if in_literal and is_escaped(code):
            target = put_escaped(buffer, target, code)
        else:
            target = put_character(buffer, target, code)
    return target


@device_function
def wide_end(buffer: Bytes, at: int, end: int) -> int:
    """The end of a run of non-ASCII characters that are canonical in a literal, or -1."""
    while at < end and byte(buffer, at) >= 0x80:
        code = character(buffer, at)
        if code < 0 or is_escaped(code):
            return -1
        at += encoded_size(code)
    return at
