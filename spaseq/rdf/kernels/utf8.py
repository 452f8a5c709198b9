"""UTF-8, one character at a time, for non-ASCII text (RFC 3629)."""

from __future__ import annotations

from spaseq.compiled.arrays import Bytes
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.vectors import byte


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
