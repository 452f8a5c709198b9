"""Quads of lines that have a known shape: a line is compared with texts, and values between them.

A shape has the texts of a line and of the line's quads, with the line's values between them. Only
values count that a parser would not change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bools, Bytes, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, lean_kernel
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.escapes import (
    BACKSLASH,
    is_escaped,
    json_escape,
    put_character,
    put_escaped,
    wide_end,
)
from spaseq.rdf.kernels.literals import QUOTE
from spaseq.rdf.kernels.vectors import byte, copied, first_plain_end, first_quote_end, same, signed
from spaseq.rdf.terms.term import XSD

HOST, _HOST_ON, _PATH, _PATH_ON, _PATH_NEXT, NAME, _NAME_ON, URN, _URN_ON = range(9)
_NO, _YES = 9, 10
"""States in the middle of an IRI, and the kind of IRI at its end."""

TEXT, NUMBER, INTEGER, END = 11, 12, 13, 14
"""The kind of value after a text of a shape, or the rest of an IRI that begins in one of three
states: `HOST`, after `https://`; `URN`, after `urn:x:`; `NAME`, after a prefix.

A number is no -0, and has at most 15 digits and no exponent.
"""

AS_IT_IS, AS_TEXT, AS_NUMBER, AS_DOUBLE = range(4)
"""The form of a value in quads. A text gets the escapes of N-Quads in place of those of JSON. A
number becomes the rest of a literal after its quote, with the datatype that JSON-LD gives it, or
xsd:double.
"""

WRITTEN_NUMBER = 96
"""Upper bound of the bytes of a number in quads."""

LINE, OUT, UNKNOWN, SHAPE = range(4)
"""Positions in a kernel's state: the next line, the position of its quads, the number of lines
without a known shape, and the last shape found.
"""

_MINUS, _POINT, _ZERO, _LETTER_E = (ord(sign) for sign in "-.0E")
_MOST_DIGITS = 15

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"
_WORDS = {
    HOST: {_LETTERS: _HOST_ON},
    _HOST_ON: {_LETTERS: _HOST_ON, b".": HOST, b"/": _PATH, b"#": NAME, b'"': _YES},
    _PATH: {_LETTERS + b"_": _PATH_ON, b"#": NAME, b'"': _YES},
    _PATH_ON: {_LETTERS + b"_": _PATH_ON, b"./:": _PATH_NEXT, b"#": NAME, b'"': _YES},
    _PATH_NEXT: {_LETTERS + b"_": _PATH_ON},
    NAME: {_LETTERS + b"_": _NAME_ON},
    _NAME_ON: {_LETTERS + b"_": _NAME_ON, b'"': _YES},
    URN: {_LETTERS + b"_": _URN_ON},
    _URN_ON: {_LETTERS + b"_": _URN_ON, b".:/": URN, b'"': _YES},
}
"""By state and byte: the next state. These are IRIs that no parser changes, up to their quote."""


def _states() -> Bytes:
    table = np.full((len(_WORDS), 256), _NO, np.uint8)
    for state, moves in _WORDS.items():
        for letters, then in moves.items():
            table[state, [*letters]] = then
    return table.ravel()


def _datatype(name: str) -> Bytes:
    return np.frombuffer(f'"^^<{XSD}{name}>'.encode() + bytes(PAD), np.uint8).copy()


_STATES = _states()
"""[9 * 256] by state and byte: the next state."""

_INTEGER_END, _DOUBLE_END = _datatype("integer"), _datatype("double")
_INTEGER_SIZE, _DOUBLE_SIZE = len(_INTEGER_END) - PAD, len(_DOUBLE_END) - PAD
"""The text after the digits of a number in its literal."""


class ShapeTables(NamedTuple):
    """n shapes, with p parts and w writes.

    Attributes:
        texts: the bytes of all texts, one after the other, and some more.
        parts: [n + 1] the first part of each shape.
        part_starts: [p] the start of the text of a part.
        part_sizes: [p] its bytes.
        kinds: [p] the kind of value after it, or END.
        writes: [n + 1] the first write of each shape.
        write_starts: [w] the start of the text before a value.
        write_sizes: [w] its bytes.
        values: [w] the number of the line's value after it, -1 for none.
        forms: [w] the form of the value.
        rooms: [n] maximum bytes of a line's quads, without values that are copied unchanged.
        used: [n] the time when each shape was last found.
    """

    texts: Bytes
    parts: Int32s
    part_starts: Int32s
    part_sizes: Int32s
    kinds: Int32s
    writes: Int32s
    write_starts: Int32s
    write_sizes: Int32s
    values: Int32s
    forms: Int32s
    rooms: Int64s
    used: Int64s


class ShapedQuads(NamedTuple):
    """The quads of n lines.

    Attributes:
        texts: their bytes.
        ends: [n] the end of the quads of each line. They begin at the end before.
        known: [n] whether a line has a known shape; else it has no quads here.
    """

    texts: Bytes
    ends: Int64s
    known: Bools


class LineBounds(NamedTuple):
    """The limits of lines.

    Attributes:
        line: maximum bytes of a line that has a known shape.
        quads: maximum bytes of its quads.
        unknown: number of lines without a known shape after which the kernel returns.
    """

    line: int
    quads: int
    unknown: int


@inlined_device_function
def _is_space(value: int) -> bool:
    return value == 32 or 9 <= value <= 13


@inlined_device_function
def _is_digit(value: int) -> bool:
    return 48 <= value <= 57


@device_function
def _number_end(data: Bytes, at: int, may_have_point: bool) -> int:
    """The offset after the number at `at`; -1 if it is not a supported number."""
    negative = byte(data, at) == _MINUS
    if negative:
        at += 1
    begin, point, other = at, 0, False
    while _is_digit(byte(data, at)):
        other |= byte(data, at) != _ZERO
        at += 1
    if at == begin or (at > begin + 1 and byte(data, begin) == _ZERO):
        return -1
    if may_have_point and byte(data, at) == _POINT:
        point = at
        at += 1
        while _is_digit(byte(data, at)):
            other |= byte(data, at) != _ZERO
            at += 1
        if at == point + 1:
            return -1
    if at - begin - (point > 0) > _MOST_DIGITS or (negative and not other):
        return -1
    return at


@device_function
def _value_end(data: Bytes, at: int, end: int, kind: int) -> int:
    """The offset after a value of a kind that begins at `at`; -1 if there is none."""
    if kind >= NUMBER:
        return _number_end(data, at, kind == NUMBER)
    if kind == TEXT:
        while True:
            at = first_plain_end(data, at)
            if byte(data, at) == QUOTE:
                return at
            if byte(data, at) == BACKSLASH:
                code, size = json_escape(data, at)
                at = at + size if code >= 0 else -1
            else:
                at = wide_end(data, at, end) if byte(data, at) >= 0x80 else -1
            if at < 0:
                return -1
    state = kind
    while state < _NO:
        state = byte(_STATES, state << 8 | byte(data, at))
        at += 1
    return at - 1 if state == _YES else -1


@device_function
def _fits(
    data: Bytes, at: int, end: int, shape: int, shapes: ShapeTables, begins: Int64s, ends: Int64s
) -> bool:
    """Whether the line `at:end` has a shape; then `begins` and `ends` have the positions of its
    values.
    """
    first = signed(shapes.parts[shape])
    for part in range(first, signed(shapes.parts[shape + 1])):
        size, kind = signed(shapes.part_sizes[part]), signed(shapes.kinds[part])
        if at + size > end or not same(
            data, at, shapes.texts, signed(shapes.part_starts[part]), size
        ):
            return False
        at += size
        if kind == END:
            return at == end
        stop = _value_end(data, at, end, kind)
        if stop < 0:
            return False
        begins[part - first], ends[part - first] = at, stop
        at = stop
    return False


@device_function
def _put_double(data: Bytes, at: int, end: int, out: Bytes, to: int) -> int:
    """Write a number as a canonical xsd:double; return the offset after it."""
    if byte(data, at) == _MINUS:
        out[to] = _MINUS
        at, to = at + 1, to + 1
    point = at
    while point < end and byte(data, point) != _POINT:
        point += 1
    first, last = at, end - 1  # the first and last digits that are not zero
    while first < end and (byte(data, first) == _ZERO or first == point):
        first += 1
    exponent = 0
    if first == end:
        first = last = at
    else:
        while byte(data, last) == _ZERO or last == point:
            last -= 1
        exponent = point - first - (first < point)
    out[to], out[to + 1] = data[first], _POINT
    to += 2
    if first == last:
        out[to] = _ZERO
        to += 1
    for offset in range(first + 1, last + 1):
        if offset != point:
            out[to] = data[offset]
            to += 1
    out[to] = _LETTER_E
    to += 1
    if exponent < 0:
        out[to] = _MINUS
        exponent, to = -exponent, to + 1
    if exponent >= 10:
        out[to] = _ZERO + exponent // 10
        to += 1
    out[to] = _ZERO + exponent % 10
    return to + 1


@device_function
def _put_text(data: Bytes, at: int, end: int, out: Bytes, to: int) -> int:
    """Write a text with its escapes, which are never longer; return the offset after it."""
    while at < end:
        stop = first_quote_end(data, at)
        copied(data, at, out, to, stop - at)
        to, at = to + stop - at, stop
        if at < end:
            code, size = json_escape(data, at)
            at += size
            to = put_escaped(out, to, code) if is_escaped(code) else put_character(out, to, code)
    return to


@device_function
def _put_number(data: Bytes, at: int, end: int, form: int, out: Bytes, to: int) -> int:
    """Write a number as the rest of a literal, with its datatype; return the offset after it."""
    if form == AS_NUMBER:
        point = at
        while point < end and byte(data, point) != _POINT:
            point += 1
        last = end
        while last > point and (byte(data, last - 1) == _ZERO or last - 1 == point):
            last -= 1
        if last == point:  # nothing but zeros stands behind the point
            copied(data, at, out, to, point - at)
            to += point - at
            copied(_INTEGER_END, 0, out, to, _INTEGER_SIZE)
            return to + _INTEGER_SIZE
    to = _put_double(data, at, end, out, to)
    copied(_DOUBLE_END, 0, out, to, _DOUBLE_SIZE)
    return to + _DOUBLE_SIZE


@device_function
def _room(shape: int, shapes: ShapeTables, begins: Int64s, ends: Int64s) -> int:
    """Maximum bytes of the quads of a line with these values."""
    room = signed(shapes.rooms[shape])
    for write in range(signed(shapes.writes[shape]), signed(shapes.writes[shape + 1])):
        value = signed(shapes.values[write])
        if value >= 0:
            room += ends[value] - begins[value]
    return room


@device_function
def _put_quads(
    data: Bytes, shape: int, shapes: ShapeTables, begins: Int64s, ends: Int64s, out: Bytes, to: int
) -> int:
    """Write the quads of a line with these values; return the offset after them."""
    for write in range(signed(shapes.writes[shape]), signed(shapes.writes[shape + 1])):
        size = signed(shapes.write_sizes[write])
        copied(shapes.texts, signed(shapes.write_starts[write]), out, to, size)
        to += size
        value, form = signed(shapes.values[write]), signed(shapes.forms[write])
        if value >= 0:
            begin, end = begins[value], ends[value]
            if form == AS_IT_IS:
                copied(data, begin, out, to, end - begin)
                to += end - begin
            elif form == AS_TEXT:
                to = _put_text(data, begin, end, out, to)
            else:
                to = _put_number(data, begin, end, form, out, to)
    return to


@device_function
def _shape_of(
    data: Bytes, at: int, end: int, guess: int, shapes: ShapeTables, begins: Int64s, ends: Int64s
) -> int:
    """The shape of the line `at:end`, -1 if it has none; `guess` is tried first.

    `begins` and `ends` get the positions of the line's values.
    """
    count = len(shapes.rooms)
    for i in range(count):
        shape = guess + i if guess + i < count else guess + i - count
        if _fits(data, at, end, shape, shapes, begins, ends):
            return shape
    return -1


@lean_kernel
def shaped_quads(
    data: Bytes,
    ends: Int64s,
    shapes: ShapeTables,
    bounds: LineBounds,
    values: Int64s,
    quads: ShapedQuads,
    state: Int64s,
    now: int,
) -> bool:
    """Write the quads of lines that have a known shape; False if there is no room for more.

    Args:
        data: bytes with the lines, and PAD line feeds.
        ends: int64 [n], the end of each line, which is the start of the next.
        shapes: the known shapes.
        bounds: the limits of lines.
        values: int64 [2, v], room for the places of the values of a line.
        quads: the output.
        state: int64 [4], the kernel's state.
        now: the time to record for a found shape.
    """
    begins, stops = values[0], values[1]
    while state[LINE] < len(ends) and state[UNKNOWN] < bounds.unknown:
        line, out, shape = state[LINE], state[OUT], -1
        at, end = signed(ends[line - 1]) if line else 0, signed(ends[line])
        if end - at <= bounds.line:
            while at < end and _is_space(byte(data, at)):
                at += 1
            while at < end and _is_space(byte(data, end - 1)):
                end -= 1
            shape = _shape_of(data, at, end, state[SHAPE], shapes, begins, stops)
        if shape >= 0:
            room = _room(shape, shapes, begins, stops)
            if room > bounds.quads:
                shape = -1
            elif out + room + PAD > len(quads.texts):
                return False
            else:
                out = _put_quads(data, shape, shapes, begins, stops, quads.texts, out)
                shapes.used[shape], state[SHAPE] = now, shape
        quads.known[line], quads.ends[line] = shape >= 0, out
        state[LINE], state[OUT], state[UNKNOWN] = line + 1, out, state[UNKNOWN] + (shape < 0)
    return True
