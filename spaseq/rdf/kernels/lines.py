"""Lines of N-Quads and N-Triples: where they end, and which hold a statement."""

from __future__ import annotations

from spaseq.compiled.arrays import Bytes
from spaseq.compiled.decorators import inlined_device_function, lean_kernel
from spaseq.rdf.kernels.vectors import WIDTH, byte, line_ends, lowest

_TAB, LF, CR, _SPACE, HASH_SIGN = 9, 10, 13, 32, 35


@inlined_device_function
def is_space(value: int) -> bool:
    """Whether a byte is white space that ends no line."""
    return value == _SPACE or value == _TAB


@inlined_device_function
def after_space(buffer: Bytes, at: int) -> int:
    """The first place from a place on that is no space or tab."""
    while is_space(byte(buffer, at)):
        at += 1
    return at


@inlined_device_function
def line_end(buffer: Bytes, at: int) -> int:
    """The place of the first line feed or carriage return from a place on."""
    bits = line_ends(buffer, at)
    while bits == 0:
        at += WIDTH
        bits = line_ends(buffer, at)
    return at + lowest(bits)


@inlined_device_function
def next_line(buffer: Bytes, end: int) -> int:
    """The place after a line end, which may be LF, CR LF or CR."""
    if byte(buffer, end) == CR and byte(buffer, end + 1) == LF:
        return end + 2
    return end + 1


@lean_kernel
def last_line_end(buffer: Bytes, at: int, end: int) -> int:
    """The place after the last line that certainly ends before `end`; `at` if there is none.

    A carriage return as the last byte may be half of a line end.
    """
    place = end
    while place > at:
        value = byte(buffer, place - 1)
        if value == LF or (value == CR and place < end):
            return place
        place -= 1
    return at


@lean_kernel
def last_event_end(buffer: Bytes, at: int, end: int, size: int) -> int:
    """The place after the last line of `at:end` before which there are n times `size` statements.

    Lines end before `end`. A statement is what is neither blank nor a comment.
    """
    complete, count = at, 0
    while at < end:
        value = byte(buffer, after_space(buffer, at))
        at = next_line(buffer, line_end(buffer, at))
        if value != LF and value != CR and value != HASH_SIGN:
            count += 1
            if count == size:
                count = 0
        if count == 0:
            complete = at
    return complete
