"""Characters of texts: UTF-8 (RFC 3629), and the escapes of N-Triples and of JSON's strings.

Characters beyond ASCII are read one at a time. Escapes of N-Triples (`\\uXXXX`, `\\UXXXXXXXX`,
`\\n`) are read, and written in canonical text.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int16s
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.vectors import byte, signed

BACKSLASH, LOWER_U, UPPER_U = ord("\\"), ord("u"), ord("U")
DEL = 0x7F


@inlined_device_function
def is_continuation(value: int) -> bool:
    """Whether a byte is a continuation byte."""
    return value & 0xC0 == 0x80


@device_function
def character(buffer: Bytes, at: int) -> int:
    """The code point of the multi-byte character at `at`, -1 if it is not valid.

    Overlong forms, surrogates and values beyond U+10FFFF are not valid (RFC 3629).
    """
    first = byte(buffer, at)
    second, third, fourth = byte(buffer, at + 1), byte(buffer, at + 2), byte(buffer, at + 3)
    if not is_continuation(second):
        return -1
    if 0xC2 <= first <= 0xDF:
        return (first & 0x1F) << 6 | second & 0x3F
    if not is_continuation(third):
        return -1
    if 0xE0 <= first <= 0xEF:
        code = (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
        return -1 if code < 0x800 or 0xD800 <= code <= 0xDFFF else code
    if is_continuation(fourth) and 0xF0 <= first <= 0xF4:
        high = (first & 0x07) << 18 | (second & 0x3F) << 12
        code = high | (third & 0x3F) << 6 | fourth & 0x3F
        return code if 0x10000 <= code <= 0x10FFFF else -1
    return -1


@inlined_device_function
def encoded_size(code: int) -> int:
    """The number of bytes of a code point in UTF-8."""
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4


@device_function
def put_character(buffer: Bytes, at: int, code: int) -> int:
    """Write a code point at `at`; return the offset after it."""
    size = encoded_size(code)
    if size == 1:
        buffer[at] = code
        return at + 1
    for i in range(size - 1, 0, -1):
        buffer[at + i] = 0x80 | code & 0x3F
        code >>= 6
    lead = 0xC0 if size == 2 else 0xE0 if size == 3 else 0xF0
    buffer[at] = lead | code
    return at + size


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
