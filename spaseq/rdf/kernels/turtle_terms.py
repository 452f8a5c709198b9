"""Terms of Turtle as term codes.

Terms that the text does not spell out, such as prefixed names and numbers, are written behind it
(the *heap*), and stay there if they are new.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.escapes import BACKSLASH, character, encoded_size
from spaseq.rdf.kernels.iris import iri_end
from spaseq.rdf.kernels.lines import DEFERRED, HEAP, KNOWN, LINE, TERM
from spaseq.rdf.kernels.literals import QUOTE, constant, lexical_end
from spaseq.rdf.kernels.tokenizer import term_code
from spaseq.rdf.kernels.vectors import WIDTH, byte, copied, same
from spaseq.rdf.terms.term import RDF, XSD

MADE = DEFERRED  # entry of the state: blank nodes without a label
GUESS = LINE  # entry of the state: the prefix of the last name

LONGEST_NAME = 1 << 12
"""Most bytes of an IRI, name or number that the kernel reads."""

UNREADABLE, NO_ROOM = -1, -2
"""In place of a code or an offset: a parser must read the term; the buffer is full."""

SUBJECT, VERB, OBJECT = range(3)
"""Where a term stands."""

BLANK, LETTER, _DELIMITER, _DIGIT, LABEL, _LOCAL = 1, 2, 4, 8, 16, 32
_AT_SIGN, _CARET, _LT, _GT, _DOT, _COLON, _UNDERSCORE, _A, _DASH, _PLUS = b"@^<>.:_a-+"
_PERCENT, _E = b"%e"

_TYPE, _TYPE_SIZE = constant(f"<{RDF}type>")
_BOOLEAN, _BOOLEAN_SIZE = constant(f'"^^<{XSD}boolean>')
_INTEGER, _INTEGER_SIZE = constant(f'"^^<{XSD}integer>')
_DECIMAL, _DECIMAL_SIZE = constant(f'"^^<{XSD}decimal>')
_DOUBLE, _DOUBLE_SIZE = constant(f'"^^<{XSD}double>')
_TRUE, _TRUE_SIZE = constant("true")
_FALSE, _FALSE_SIZE = constant("false")


def _classes() -> Bytes:
    table = np.zeros(256, np.uint8)
    table[list(b" \t\r\n")] = BLANK | _DELIMITER
    table[list(b",;]#")] = _DELIMITER
    table[[*range(65, 91), *range(97, 123)]] = LETTER | LABEL | _LOCAL
    table[[*range(48, 58)]] = _DIGIT | LABEL | _LOCAL
    table[list(b"_-.")] = LABEL | _LOCAL
    table[list(b":%")] = _LOCAL
    return table


_CLASSES = _classes()
_ESCAPES = np.zeros(256, np.uint8)
_ESCAPES[list(b'"\t\n\r\b\f')] = list(b'"tnrbf')
"""By byte of a long string: the letter of its escape in a literal, or 0."""


class TurtleText(NamedTuple):
    """What the kernel reads, and the table of its terms.

    Attributes:
        buffer: the text, and the heap from `state[HEAP]` on.
        end: offset after the text.
        longest: most bytes of a literal.
        seed: seed of the term hashes.
        state: see the entries AT .. KNOWN of `lines.py`, and MADE and GUESS.
        spans, slots: the term table, see `texts`.
        prefixes: the beginning of new labels, then the texts of the prefixes.
        places: int32 [n, 4]: offset and size of each prefix, with its colon, and of its IRI.
        label: size of the beginning of new labels.
    """

    buffer: Bytes
    end: int
    longest: int
    seed: np.uint64
    state: Int64s
    spans: Int32s
    slots: Int32s
    prefixes: Bytes
    places: Int32s
    label: int


@inlined_device_function
def has_room(text: TurtleText, end: int) -> bool:
    """Whether the buffer has bytes up to `end`, and some after it."""
    return end + 4 * WIDTH <= len(text.buffer)


@inlined_device_function
def is_(buffer: Bytes, at: int, kind: int) -> bool:
    """Whether the byte at `at` is of one of these kinds."""
    return bool(_CLASSES[byte(buffer, at)] & kind)


@device_function
def _is_letter(code: int) -> bool:
    """Whether any place of a name may have this character beyond ASCII; false for rare ones."""
    if code < 0x370:
        return 0xC0 <= code <= 0x2FF and code != 0xD7 and code != 0xF7
    return (code <= 0x1FFF and code != 0x37E) or 0x3001 <= code <= 0xD7FF


@inlined_device_function
def _name_end(buffer: Bytes, at: int, kind: int) -> int:
    """The offset after a local name (_LOCAL) or label (LABEL), or -1 if that is not certain."""
    first = at
    while True:
        value = byte(buffer, at)
        if _CLASSES[value] & kind:
            at += 1
        elif value >= 0x80:
            code = character(buffer, at)
            if code < 0 or not _is_letter(code):
                return -1
            at += encoded_size(code)
        else:
            break
    if value == BACKSLASH or value == _COLON or value == _PERCENT or at - first > LONGEST_NAME:
        return -1
    while at > first and byte(buffer, at - 1) == _DOT:
        at -= 1
    begin = byte(buffer, first)
    return -1 if at > first and (begin == _DASH or begin == _DOT) else at


@inlined_device_function
def prefix_end(buffer: Bytes, at: int) -> int:
    """The offset after the colon of the prefixed name at `at`, or -1 if there is none."""
    first = at
    while is_(buffer, at, LABEL):
        at += 1
    return at + 1 if byte(buffer, at) == _COLON and at - first < LONGEST_NAME else -1


@device_function
def _expanded(text: TurtleText, at: int, to: int) -> tuple[int, int]:
    """Write the IRI of the prefixed name at `at` to `to`: (the end of the name, of the IRI).

    The first is UNREADABLE or NO_ROOM if that cannot be done.
    """
    buffer, state, prefixes, places = text.buffer, text.state, text.prefixes, text.places
    colon = prefix_end(buffer, at)
    stop = _name_end(buffer, colon, _LOCAL) if colon >= 0 else -1
    if stop < 0:
        return UNREADABLE, to
    prefix, size = state[GUESS], colon - at
    for other in range(-1, len(places)):
        if other >= 0:
            prefix = other
        if prefix >= len(places) or places[prefix, 1] != size:
            continue
        if same(buffer, at, prefixes, places[prefix, 0], size):
            break
    else:
        return UNREADABLE, to
    state[GUESS] = prefix
    iri_size = places[prefix, 3]
    if not has_room(text, to + iri_size + stop - colon):
        return NO_ROOM, to
    buffer[to] = _LT
    copied(prefixes, places[prefix, 2], buffer, to + 1, iri_size)
    to += 1 + iri_size
    copied(buffer, colon, buffer, to, stop - colon)
    to += stop - colon
    buffer[to] = _GT
    return stop, to + 1


@device_function
def _heap_code(text: TurtleText, end: int) -> int:
    """The code of the term that has been written on the heap, up to `end`; see `read_term`."""
    buffer, state = text.buffer, text.state
    at, count = state[HEAP], state[TERM]
    if not has_room(text, 2 * end - at):  # for its canonical text
        return NO_ROOM
    state[HEAP] = end
    code: int = term_code(buffer, at, end, text.seed, state, text.spans, text.slots)
    if state[TERM] == count and state[KNOWN] < at and state[KNOWN + 2] < at:
        state[HEAP] = at
    return code


@device_function
def _in_place(text: TurtleText, at: int, end: int) -> int:
    """The code of the term that the text spells out at `at:end`; see `read_term`."""
    buffer, state = text.buffer, text.state
    if not has_room(text, state[HEAP] + end - at):
        return NO_ROOM
    code: int = term_code(buffer, at, end, text.seed, state, text.spans, text.slots)
    return code


@device_function
def _long_string(text: TurtleText, at: int, to: int) -> tuple[int, int]:
    """Write the string in three quotes at `at` to `to`, with one quote before it.

    Returns the offset after it, which is UNREADABLE or NO_ROOM if that cannot be done, and the
    offset after what was written.
    """
    buffer = text.buffer
    buffer[to] = QUOTE
    to += 1
    at += 3
    while at < text.end:
        if not has_room(text, to):
            return NO_ROOM, to
        value, after = byte(buffer, at), byte(buffer, at + 1)
        if value == QUOTE and after == QUOTE and byte(buffer, at + 2) == QUOTE:
            return at + 3, to
        if value == BACKSLASH:
            buffer[to] = value
            to += 1
            at += 1
            value = after
        elif _ESCAPES[value]:
            buffer[to] = BACKSLASH
            to += 1
            value = _ESCAPES[value]
        if value < 0x20:
            break
        buffer[to] = value
        to += 1
        at += 1
    return UNREADABLE, to


@device_function
def _literal(text: TurtleText, at: int) -> tuple[int, int]:
    """`read_term` of a literal in quotes."""
    buffer = text.buffer
    heap = to = text.state[HEAP]
    if byte(buffer, at + 1) == QUOTE and byte(buffer, at + 2) == QUOTE:
        stop, to = _long_string(text, at, to)
        if stop < 0:
            return stop, at
    else:
        stop = lexical_end(buffer, at) + 1
        if stop == 0:
            return UNREADABLE, at
    suffix = stop
    if byte(buffer, stop) == _CARET:
        if byte(buffer, stop + 1) != _CARET:
            return UNREADABLE, at
        stop += 2
        is_name = byte(buffer, stop) != _LT
        if not is_name:
            stop = iri_end(buffer, stop)
            if stop < 0:
                return UNREADABLE, at
    else:
        is_name = False
        if byte(buffer, stop) == _AT_SIGN:
            stop += 1
            while is_(buffer, stop, LETTER | _DIGIT) or byte(buffer, stop) == _DASH:
                stop += 1
    if max(stop - at, to - heap) > text.longest:
        return UNREADABLE, at
    if to == heap:
        if not is_name:
            return _in_place(text, at, stop), stop
        if not has_room(text, to + stop - at):
            return NO_ROOM, at
        copied(buffer, at, buffer, to, stop - at)
        to += stop - at
    else:
        if not has_room(text, to + 1 + stop - suffix):
            return NO_ROOM, at
        buffer[to] = QUOTE
        copied(buffer, suffix, buffer, to + 1, stop - suffix)
        to += 1 + stop - suffix
    if is_name:
        stop, to = _expanded(text, stop, to)
        if stop < 0:
            return stop, at
    return _heap_code(text, to), stop


@inlined_device_function
def _digits_end(buffer: Bytes, at: int) -> int:
    """The offset after the digits at `at`, of which there may be none."""
    while is_(buffer, at, _DIGIT):
        at += 1
    return at


@inlined_device_function
def _after_sign(buffer: Bytes, at: int) -> int:
    return at + (byte(buffer, at) == _DASH or byte(buffer, at) == _PLUS)


@device_function
def _bare(text: TurtleText, at: int) -> tuple[int, int]:
    """`read_term` of a number or boolean."""
    buffer, to = text.buffer, text.state[HEAP]
    suffix, size = _BOOLEAN, _BOOLEAN_SIZE
    if same(buffer, at, _TRUE, 0, _TRUE_SIZE):
        stop = at + _TRUE_SIZE
    elif same(buffer, at, _FALSE, 0, _FALSE_SIZE):
        stop = at + _FALSE_SIZE
    else:
        suffix, size = _INTEGER, _INTEGER_SIZE
        first = _after_sign(buffer, at)
        stop = _digits_end(buffer, first)
        if stop > first and byte(buffer, stop) == _DOT and is_(buffer, stop + 1, _DIGIT):
            suffix, size = _DECIMAL, _DECIMAL_SIZE
            stop = _digits_end(buffer, stop + 1)
        if stop > first and byte(buffer, stop) | 0x20 == _E:
            suffix, size = _DOUBLE, _DOUBLE_SIZE
            first = _after_sign(buffer, stop + 1)
            stop = _digits_end(buffer, first)
        if stop == first:
            return UNREADABLE, at
    is_end = byte(buffer, stop) == _DOT and is_(buffer, stop + 1, BLANK)
    if not is_end and not is_(buffer, stop, _DELIMITER):
        return UNREADABLE, at
    if stop - at > min(LONGEST_NAME, text.longest):
        return UNREADABLE, at
    if not has_room(text, to + stop - at):
        return NO_ROOM, at
    buffer[to] = QUOTE
    copied(buffer, at, buffer, to + 1, stop - at)
    to += 1 + stop - at
    copied(suffix, 0, buffer, to, size)
    return _heap_code(text, to + size), stop


@device_function
def read_term(text: TurtleText, at: int, expects: int) -> tuple[int, int]:
    """(code of the term at `at`, the offset after it); a new term is added.

    The code is UNREADABLE or NO_ROOM if the term cannot be read.
    """
    buffer = text.buffer
    value = byte(buffer, at)
    if value == _LT:
        stop = iri_end(buffer, at)
        if stop < 0 or stop - at > LONGEST_NAME:
            return UNREADABLE, at
        return _in_place(text, at, stop), stop
    if value == _UNDERSCORE and expects != VERB:
        stop = _name_end(buffer, at + 2, LABEL) if byte(buffer, at + 1) == _COLON else -1
        if stop <= at + 2:
            return UNREADABLE, at
        return _in_place(text, at, stop), stop
    if expects == OBJECT and value == QUOTE:
        return _literal(text, at)
    colon = prefix_end(buffer, at) if value == _COLON or is_(buffer, at, LETTER) else -1
    if colon >= 0:
        stop, to = _expanded(text, at, text.state[HEAP])
        if stop < 0:
            return stop, at
        return _heap_code(text, to), stop
    if expects == VERB and value == _A and is_(buffer, at + 1, BLANK):
        to = text.state[HEAP]
        if not has_room(text, to):
            return NO_ROOM, at
        copied(_TYPE, 0, buffer, to, _TYPE_SIZE)
        return _heap_code(text, to + _TYPE_SIZE), at + 1
    if expects == OBJECT:
        return _bare(text, at)
    return UNREADABLE, at


@device_function
def made_node(text: TurtleText) -> int:
    """The code of a new blank node; no other has its label."""
    buffer, state = text.buffer, text.state
    to, number = state[HEAP], state[MADE]
    if not has_room(text, to + text.label):
        return NO_ROOM
    copied(text.prefixes, 0, buffer, to, text.label)
    to += text.label
    state[MADE] = number + 1
    while number > 0:
        buffer[to] = 48 + number % 10
        number //= 10
        to += 1
    code: int = _heap_code(text, to)
    return code
