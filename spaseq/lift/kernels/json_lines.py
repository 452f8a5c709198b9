"""JSON lines as cells: each line is an object, and some of its fields are read.

A line is *unsure* if it is no valid JSON, or if anything in it needs a second look: a wanted field
that stands twice or is an object or list, a long number, deep nesting, half of a surrogate pair.
"""

from __future__ import annotations

from typing import NamedTuple

from spaseq.compiled.arrays import Bools, Bytes, Float64s, Int8s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, lean_kernel
from spaseq.lift.kernels import json_values
from spaseq.lift.kernels.json_values import number, text_end
from spaseq.rdf.kernels.literals import QUOTE
from spaseq.rdf.kernels.vectors import byte, same, signed

NULL, TEXT, ESCAPED, INTEGER, DOUBLE, LONG_DOUBLE, FALSE, TRUE = range(8)
"""What a cell is. Texts and long doubles are spans of the data."""

UNREAD, UNSURE_FIELD = -1, -2
"""Instead of a column: nobody reads the field; its line is unsure."""

ROOT, _SKIPPED = -1, -2
_LINE, _UNSURE, _NEW_KEY = 0, 1, 2
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _COMMA, _COLON, _LINE_FEED = map(ord, "{}[],:\n")
_TRUE, _FALSE, _NULL = map(ord, "tfn")
MOST_DEPTH = 64
LONGEST_KEY = 256


class Keys(NamedTuple):
    """The keys [n] of objects that have been seen; the last key of a line is the first guess.

    Attributes:
        texts: their bytes, as they stand in the data, one after the other.
        starts: where each begins.
        sizes: how many bytes each has.
        parents: the key [n] of the object that each stands in, or ROOT.
        columns: the column that each fills, or UNREAD, or UNSURE_FIELD.
        opens: whether something within its object is read.
    """

    texts: Bytes
    starts: Int32s
    sizes: Int32s
    parents: Int32s
    columns: Int32s
    opens: Bools


class Cells(NamedTuple):
    """The cells of c columns and n lines.

    Attributes:
        kinds: [c, n] what each is.
        wholes: [c, n] integers, and where spans begin.
        sizes: [c, n] bytes of spans; of texts, without escapes.
        doubles: [c, n] doubles.
        filled: [c] one more than the last line that filled the column.
        unsure: [n] the lines that must be read again, which have no cells.
    """

    kinds: Int8s
    wholes: Int64s
    sizes: Int32s
    doubles: Float64s
    filled: Int64s
    unsure: Bools


class ScanPlace(NamedTuple):
    """Where the kernel stands.

    Attributes:
        state: [6] the line and its offset; of a key that is not known its offset and size and the
            key of its object, and how many keys there are.
        stack: [MOST_DEPTH + 1] the keys of the objects around the offset, or ROOT, or _SKIPPED.
        lists: [MOST_DEPTH + 1] whether each is a list.
    """

    state: Int64s
    stack: Int32s
    lists: Bools


LINE, OFFSET, KEY_START, KEY_SIZE, KEY_PARENT, KEYS = range(6)
"""Places in `ScanPlace.state`."""


@device_function
def _after_space(data: Bytes, at: int) -> int:
    """The first offset from `at` on that is no space, tab or carriage return."""
    while byte(data, at) == 32 or byte(data, at) == 9 or byte(data, at) == 13:
        at += 1
    return at


@device_function
def _known_key(
    data: Bytes, at: int, size: int, parent: int, guess: int, keys: Keys, known: int
) -> int:
    """The number of a key, -1 if it is not known. `guess` is looked at first."""
    for i in range(known):
        key = guess + i
        if key >= known:
            key -= known
        if (
            signed(keys.sizes[key]) == size
            and signed(keys.parents[key]) == parent
            and same(data, at, keys.texts, signed(keys.starts[key]), size)
        ):
            return key
    return -1


@device_function
def _word_size(data: Bytes, at: int) -> int:
    """The size of `true`, `false` or `null`, 0 for anything else."""
    first, second, third = byte(data, at), byte(data, at + 1), byte(data, at + 2)
    if first == _TRUE:
        return 4 * (second == ord("r") and third == ord("u") and byte(data, at + 3) == ord("e"))
    if first == _NULL:
        return 4 * (second == ord("u") and third == ord("l") and byte(data, at + 3) == ord("l"))
    if first != _FALSE or second != ord("a") or third != ord("l"):
        return 0
    return 5 * (byte(data, at + 3) == ord("s") and byte(data, at + 4) == ord("e"))


@device_function
def _value(data: Bytes, at: int, column: int, line: int, cells: Cells) -> int:
    """Read a value that is no object or list into its cell; return the offset after it, or -1."""
    first = byte(data, at)
    kind, whole, size, double = NULL, 0, 0, 0.0
    if first == QUOTE:
        end, size = text_end(data, at + 1)
        if end < 0:
            return -1
        kind = TEXT if size == end - at - 1 else ESCAPED
        whole, end = at + 1, end + 1
    elif first == 45 or 48 <= first <= 57:
        found, end, whole, double = number(data, at)
        if found == json_values.UNSURE:
            return -1
        kind = INTEGER + found - json_values.INTEGER
        if kind == LONG_DOUBLE:
            whole, size = at, end - at
    else:
        end = at + _word_size(data, at)
        if end == at:
            return -1
        kind = TRUE if first == _TRUE else FALSE if first == _FALSE else NULL
    if column >= 0:
        cells.kinds[column, line] = kind
        cells.wholes[column, line] = whole
        cells.sizes[column, line] = size
        cells.doubles[column, line] = double
    return end


@device_function
def _object(
    data: Bytes, at: int, line: int, deepest: int, keys: Keys, cells: Cells, place: ScanPlace
) -> tuple[int, int]:
    """(result, offset after the object) of the object whose brace is at `at`."""
    depth, guess, known = 0, 0, signed(place.state[KEYS])
    place.stack[0], place.lists[0] = ROOT, False
    at = _after_space(data, at + 1)
    if byte(data, at) == _CLOSE:
        return _LINE, at + 1
    while True:
        column, opens, key = UNREAD, False, _SKIPPED
        if not place.lists[depth]:
            if byte(data, at) != QUOTE:
                return _UNSURE, at
            start, parent = at + 1, signed(place.stack[depth])
            end, _ = text_end(data, start)
            if end < 0:
                return _UNSURE, at
            if parent != _SKIPPED:
                key = _known_key(data, start, end - start, parent, guess, keys, known)
                if key < 0 and (known == len(keys.sizes) or end - start > LONGEST_KEY):
                    return _UNSURE, at
                if key < 0:
                    place.state[KEY_START], place.state[KEY_SIZE] = start, end - start
                    place.state[KEY_PARENT] = parent
                    return _NEW_KEY, at
                guess = key + 1
                column, opens = signed(keys.columns[key]), keys.opens[key]
            at = _after_space(data, end + 1)
            if byte(data, at) != _COLON:
                return _UNSURE, at
            at = _after_space(data, at + 1)
        if column == UNSURE_FIELD or (column >= 0 and cells.filled[column] > line):
            return _UNSURE, at
        if column >= 0:
            cells.filled[column] = line + 1
        first = byte(data, at)
        if first == _OPEN or first == _OPEN_LIST:
            depth += 1
            if column >= 0 or depth > deepest:
                return _UNSURE, at
            listed = first == _OPEN_LIST
            place.stack[depth] = key if opens and not listed else _SKIPPED
            place.lists[depth] = listed
            at = _after_space(data, at + 1)
            if byte(data, at) != (_CLOSE_LIST if listed else _CLOSE):
                continue
        else:
            at = _value(data, at, column, line, cells)
            if at < 0:
                return _UNSURE, at
            at = _after_space(data, at)
        while byte(data, at) == (_CLOSE_LIST if place.lists[depth] else _CLOSE):
            at += 1
            if depth == 0:
                return _LINE, at
            depth -= 1
            at = _after_space(data, at)
        if byte(data, at) != _COMMA:
            return _UNSURE, at
        at = _after_space(data, at + 1)


@lean_kernel
def scan_lines(
    data: Bytes, end: int, deepest: int, longest: int, keys: Keys, cells: Cells, place: ScanPlace
) -> bool:
    """Read lines up to the offset `end`, where a line ends; False if a key is not known.

    `place` says where to begin and what key it is. Objects that are nested more than `deepest`
    levels, and lines of more than `longest` bytes, are unsure.
    """
    line, start = signed(place.state[LINE]), signed(place.state[OFFSET])
    while start < end:
        result, at = _UNSURE, _after_space(data, start)
        if byte(data, at) == _OPEN:
            result, at = _object(data, at, line, deepest, keys, cells, place)
        if result == _NEW_KEY:
            place.state[LINE], place.state[OFFSET] = line, start
            for column in range(len(cells.filled)):
                cells.filled[column] = min(cells.filled[column], line)
            return False
        at = _after_space(data, max(at, start))
        if result == _UNSURE or byte(data, at) != _LINE_FEED or at - start >= longest:
            cells.unsure[line] = True
            for column in range(len(cells.filled)):
                cells.kinds[column, line] = NULL
            at = start
            while byte(data, at) != _LINE_FEED:
                at += 1
        start, line = at + 1, line + 1
    place.state[LINE], place.state[OFFSET] = line, start
    return True
