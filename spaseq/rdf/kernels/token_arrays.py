"""The arrays that the tokenizer reads and writes: its state, and columns of lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s

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
    """What followed each predicate last time, by predicate code modulo PREDICTIONS.

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
