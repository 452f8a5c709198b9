"""Lines of N-Quads and N-Triples: where they end, and which contain a statement."""

from __future__ import annotations

from spaseq.compiled.arrays import Bytes
from spaseq.compiled.decorators import inlined_device_function, lean_kernel
from spaseq.rdf.kernels.vectors import byte, first_line_end

_TAB, LF, CR, _SPACE, HASH_SIGN = 9, 10, 13, 32, 35


@inlined_device_function
def is_space(value: int) -> bool:
    """Whether a byte is a space or tab."""
    return value == _SPACE or value == _TAB


@inlined_device_function
def after_space(buffer: Bytes, at: int) -> int:
    """The first offset from `at` on that is not a space or tab."""
    while is_space(byte(buffer, at)):
        at += 1
    return at


@inlined_device_function
def line_end(buffer: Bytes, at: int) -> int:
    """The offset of the first line feed or carriage return from `at` on."""
    return first_line_end(buffer, at)


@inlined_device_function
def next_line(buffer: Bytes, end: int) -> int:
    """The offset after the line end at `end`, which is LF, CR LF or CR."""
    if byte(buffer, end) == CR and byte(buffer, end + 1) == LF:
        return end + 2
    return end + 1


@lean_kernel
def last_line_end(buffer: Bytes, at: int, end: int) -> int:
    """The offset after the last line that certainly ends before `end`; `at` if there is none.

    A carriage return as the last byte may be half of a CR LF.
    """
    offset = end
    while offset > at:
        value = byte(buffer, offset - 1)
        if value == LF or (value == CR and offset < end):
            return offset
        offset -= 1
    return at


@lean_kernel
def last_event_end(buffer: Bytes, at: int, end: int, size: int) -> int:
    """The offset after the last complete event of `size` statements in the whole lines of `at:end`.

    Lines other than blank lines and comments are statements. Blank lines and comments after the
    event belong to it. `at` if no event is complete.
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
