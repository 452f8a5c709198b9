"""Lines of N-Quads and N-Triples: their ends, a test for statements, and the tokenizer's arrays.

These arrays are its state, and columns of lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.compiled.decorators import inlined_device_function, lean_kernel
from spaseq.rdf.kernels.vectors import byte, first_line_end

# Results of `tokenize`: all lines are read, or an array is full.
DONE, ROWS_FULL, TERMS_FULL, DEFERRED_FULL = 0, 1, 2, 3

# Entries of the state, int64 [STATE].
AT = 0  # offset of the next line
LINE = 1  # number of lines before it
ROW = 2  # number of rows before it
TERM = 3  # number of terms in the table
HEAP = 4  # offset for the next rewritten text
DEFERRED = 5  # number of deferred lines
BLANK = 6  # number of blank nodes in the table
KNOWN = 7  # four entries: `known` of `check_literal`
SCALE = 11  # how many ms an integer time counts
SECONDS = 12  # an integer time of ms that seems to be seconds, or 0
KEEPS_TIMES = 13  # whether the terms of times in the default graph are needed
STATE = 14

DEFAULT_GRAPH = -1
UNREAD = -1
"""All codes of a deferred line."""
SKIPPED = -2
"""Object of a triple whose predicate no query names."""
TIMED = -3
"""Object of a timestamp in the default graph: its time is known, and its term is not needed."""

PREDICTIONS = 256
"""Number of predicates with predictions; a power of two."""

_TAB, LF, CR, _SPACE, HASH_SIGN = 9, 10, 13, 32, 35


class QuadRows(NamedTuple):
    """Columns [cap] of the quads.

    `s`, `p`, `o`, `g` are term codes; `at` and `line` are offset and number of the line. `time` is
    the time in ms, or NO_TIME; it is set only in rows with the time predicate.
    """

    s: Int32s
    p: Int32s
    o: Int32s
    g: Int32s
    at: Int32s
    line: Int32s
    time: Int64s


class DeferredLines(NamedTuple):
    """Columns [cap] of the lines that a parser must read: offsets at:end, and the row."""

    at: Int32s
    end: Int32s
    row: Int32s


class PredictedPredicates(NamedTuple):
    """The terms that followed each predicate last time, by predicate code modulo PREDICTIONS.

    `predicate` [PREDICTIONS] is the next predicate and `object` [PREDICTIONS] the object, codes or
    -1. `suffix` [PREDICTIONS, 2] is (offset, size) of the closing quote, language tag or datatype
    of a literal that was not kept; size 0 if there was none.
    """

    predicate: Int32s
    object: Int32s
    suffix: Int32s

    @staticmethod
    def none() -> PredictedPredicates:
        """No prediction yet."""
        codes = np.full((2, PREDICTIONS), -1, np.int32)
        return PredictedPredicates(codes[0], codes[1], np.zeros((PREDICTIONS, 2), np.int32))


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
