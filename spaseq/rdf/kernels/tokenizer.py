"""N-Quads and N-Triples to columns of term codes, a line at a time.

Most lines resemble the one before: the same subject and graph, the predicate that followed last
time, for some predicates the object that it had last time. Such a guess costs one comparison; where
it fails the term's end is searched and the term looked up in the table of texts. Only a text that
is not there yet is validated. A line that is not certainly well-formed is left to others as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bytes, Int32s, Int64s, UInt64s
from spaseq.compiled.decorators import device_function, inlined_device_function, lean_kernel
from spaseq.rdf.kernels.iris import CANONICAL, REWRITABLE, UNDECIDED, check_iri, iri_end
from spaseq.rdf.kernels.lines import (
    CR,
    HASH_SIGN,
    LF,
    after_space,
    is_space,
    line_end,
    next_line,
)
from spaseq.rdf.kernels.literal_values import NO_TIME, time_of
from spaseq.rdf.kernels.literals import (
    check_literal,
    lexical_end,
    literal_end,
    plain_literal_end,
    put_canonical,
)
from spaseq.rdf.kernels.tables import OFFSET, SIZE, find, put, text_hash
from spaseq.rdf.kernels.vectors import byte, same, signed

# Return values of `tokenize`.
DONE, ROWS_FULL, TERMS_FULL, DEFERRED_FULL = 0, 1, 2, 3

# Entries of its `state`, int64 [STATE].
AT = 0  # place of the next line
LINE = 1  # lines before it
ROW = 2  # rows before it
TERM = 3  # terms in the table
HEAP = 4  # where the next canonical text goes
DEFERRED = 5  # doubtful lines
BLANK = 6  # blank nodes in the table
KNOWN = 7  # four entries, see `check_literal`
STATE = 11

DEFAULT_GRAPH = -1
UNREAD = -1
"""Codes of a doubtful line."""
SKIPPED = -2
"""The object of a triple whose predicate nobody asked for."""
TIMED = -3
"""The object of a triple of the default graph that is a time: it is known, and nobody needs it."""

_QUOTE, _DOT, _LT, _UNDERSCORE, _COLON, _DASH = 34, 46, 60, 95, 58, 45
_PREDICTIONS = 256  # predicates that have predictions; a power of two


class QuadRows(NamedTuple):
    """Columns [cap] of the triples: term codes; the place and number of each one's line; and the
    time in ms, or NO_TIME, of those that have the time predicate."""

    s: Int32s
    p: Int32s
    o: Int32s
    g: Int32s
    at: Int32s
    line: Int32s
    time: Int64s


class DeferredLines(NamedTuple):
    """Columns [cap] of the doubtful lines: where each begins and ends, and its row."""

    at: Int32s
    end: Int32s
    row: Int32s


class PredictedPredicates(NamedTuple):
    """By predicate, modulo their length: what came after it last time.

    `predicate` and `object` are codes or -1. `suffix` [n, 2] is (place, size) of what a literal
    that was not kept had from its closing quote on; size 0 if there was none.
    """

    predicate: Int32s
    object: Int32s
    suffix: Int32s

    @staticmethod
    def none() -> PredictedPredicates:
        """No prediction yet."""
        codes = np.full((2, _PREDICTIONS), -1, np.int32)
        return PredictedPredicates(codes[0], codes[1], np.zeros((_PREDICTIONS, 2), np.int32))


@inlined_device_function
def _label_end(buffer: Bytes, at: int) -> int:
    """The place after a blank node whose label is in ASCII, -1 if that is not certain."""
    if byte(buffer, at + 1) != _COLON:
        return -1
    at += 2
    first = at
    while True:
        value = byte(buffer, at)
        letter = value | 0x20
        plain = 97 <= letter <= 122 or 48 <= value <= 57 or value == _UNDERSCORE
        if not plain and (at == first or (value != _DASH and value != _DOT)):
            break
        at += 1
    if at == first or byte(buffer, at - 1) == _DOT or value >= 0x80 or value == _COLON:
        return -1
    return at


@inlined_device_function
def _node_end(buffer: Bytes, at: int) -> int:
    """The place after an IRI or a blank node."""
    first = byte(buffer, at)
    if first == _LT:
        return iri_end(buffer, at)
    return _label_end(buffer, at) if first == _UNDERSCORE else -1


@inlined_device_function
def _term_end(buffer: Bytes, at: int) -> int:
    """The place after a term of any kind."""
    return literal_end(buffer, at) if byte(buffer, at) == _QUOTE else _node_end(buffer, at)


@device_function
def _check(buffer: Bytes, at: int, end: int, state: Int64s) -> int:
    first = byte(buffer, at)
    if first == _LT:
        return check_iri(buffer, at, end, state[KNOWN:])
    if first == _QUOTE:
        return check_literal(buffer, at, end, state[KNOWN:])
    state[BLANK] += 1
    return CANONICAL


@inlined_device_function
def _is_repeated(buffer: Bytes, at: int, place: int, size: int) -> bool:
    """Whether the term at a place is the one that was at another, and nothing but space follows."""
    return size > 0 and same(buffer, at, buffer, place, size) and is_space(byte(buffer, at + size))


@device_function
def _rewritten_code(
    buffer: Bytes,
    at: int,
    end: int,
    seed: np.uint64,
    state: Int64s,
    spans: Int32s,
    slots: UInt64s,
) -> int:
    """The code of the canonical text of the term at `at:end`, which is entered if it is new."""
    heap = state[HEAP]
    end = put_canonical(buffer, at, end, heap)
    size = end - heap
    hashed = text_hash(buffer, heap, size, seed)
    code = find(buffer, heap, size, hashed, buffer, spans, slots)
    if code >= 0:
        return code
    state[HEAP] = end
    new: int = state[TERM]
    put(new, heap, size, hashed, ~code, spans, slots)
    state[TERM] = new + 1
    return new


@inlined_device_function
def _code(
    buffer: Bytes,
    at: int,
    end: int,
    seed: np.uint64,
    state: Int64s,
    spans: Int32s,
    slots: UInt64s,
) -> int:
    """The code of the term at `at:end`, which is entered if it is new; -1 if it is doubtful."""
    size = end - at
    hashed = text_hash(buffer, at, size, seed)
    code = find(buffer, at, size, hashed, buffer, spans, slots)
    if code >= 0:
        return code
    verdict = _check(buffer, at, end, state)
    if verdict == CANONICAL:
        new: int = state[TERM]
        put(new, at, size, hashed, ~code, spans, slots)
        state[TERM] = new + 1
        return new
    if verdict == REWRITABLE:
        return _rewritten_code(buffer, at, end, seed, state, spans, slots)
    return -1


@lean_kernel
def tokenize(
    buffer: Bytes,
    end: int,
    graphs: bool,
    wanted: int,
    time_predicate: int,
    seed: np.uint64,
    state: Int64s,
    rows: QuadRows,
    spans: Int32s,
    slots: UInt64s,
    deferred: DeferredLines,
    predicted: PredictedPredicates,
) -> int:
    """Read lines from `state[AT]` to `end` into `rows`; what stops it before that, or DONE.

    Places are in `buffer`. Every line but blank ones and comments makes a row. The row of a line
    that is not certainly well-formed has UNREAD for all codes, and the line is among `deferred`.
    Terms are entered into `spans` and `slots`. Texts that are not canonical as they stand are
    written to `state[HEAP]` and on, where there is room for as many bytes as are read. `graphs`
    says whether a triple may have a fourth term. Triples whose predicate's code is `wanted` or more
    have SKIPPED for an object; those with the code `time_predicate` have their times read. When an
    array is full, it may be replaced by a larger copy to go on. `predicted` may be of anything.
    """
    at, line, row = state[AT], state[LINE], state[ROW]
    capacity, most_terms = len(rows.s), min(len(spans), len(slots) // 2) - 4
    successor, usual, suffix = predicted.predicate, predicted.object, predicted.suffix
    subject, subject_at, subject_size = 0, 0, 0
    graph, graph_at, graph_size = 0, 0, 0
    previous = 0
    status = DONE
    while at < end:
        begin = at
        at = after_space(buffer, at)
        value = byte(buffer, at)
        if value == HASH_SIGN:
            at = line_end(buffer, at)
            value = byte(buffer, at)
        if value == LF or value == CR:
            at = next_line(buffer, at)
            line += 1
            continue
        if row >= capacity:
            at, status = begin, ROWS_FULL
            break
        if state[TERM] > most_terms:
            at, status = begin, TERMS_FULL
            break
        while True:  # left as soon as something is not certain, and at the end
            well_formed = False

            if not _is_repeated(buffer, at, subject_at, subject_size):
                stop = _node_end(buffer, at)
                if stop < 0:
                    break
                subject = _code(buffer, at, stop, seed, state, spans, slots)
                subject_size = 0
                if subject < 0:
                    break
                subject_at, subject_size = at, stop - at
            at = after_space(buffer, at + subject_size)

            predicate = signed(successor[previous & (_PREDICTIONS - 1)])
            if predicate >= 0 and _is_repeated(
                buffer, at, spans[predicate, OFFSET], spans[predicate, SIZE]
            ):
                at += spans[predicate, SIZE]
            else:
                if byte(buffer, at) != _LT:
                    break
                stop = iri_end(buffer, at)
                if stop < 0:
                    break
                predicate = _code(buffer, at, stop, seed, state, spans, slots)
                if predicate < 0:
                    break
                successor[previous & (_PREDICTIONS - 1)] = predicate
                at = stop
            previous = predicate
            at = after_space(buffer, at)

            object_ = signed(usual[predicate & (_PREDICTIONS - 1)])
            object_at = at
            if object_ >= 0 and _is_repeated(
                buffer, at, spans[object_, OFFSET], spans[object_, SIZE]
            ):
                at += spans[object_, SIZE]
            else:
                object_ = UNREAD
                slot = predicate & (_PREDICTIONS - 1)
                if predicate >= wanted and suffix[slot, 1] > 0 and byte(buffer, at) == _QUOTE:
                    at = plain_literal_end(buffer, at, suffix[slot, 0], suffix[slot, 1])
                    object_ = SKIPPED
                    if at < 0:
                        at, object_ = object_at, UNREAD
                if object_ == UNREAD:
                    at = _term_end(buffer, at)
                    if at < 0:
                        break
            object_end = at
            at = after_space(buffer, at)

            own_graph = DEFAULT_GRAPH
            if byte(buffer, at) != _DOT:
                if not graphs:
                    break
                if not _is_repeated(buffer, at, graph_at, graph_size):
                    graph_size = 0
                    if _is_repeated(buffer, at, subject_at, subject_size):
                        stop, graph = at + subject_size, subject
                    else:
                        stop = _node_end(buffer, at)
                        if stop < 0:
                            break
                        graph = _code(buffer, at, stop, seed, state, spans, slots)
                        if graph < 0:
                            break
                    graph_at, graph_size = at, stop - at
                own_graph = graph
                at = after_space(buffer, at + graph_size)
                if byte(buffer, at) != _DOT:
                    break
            at += 1
            if byte(buffer, at) != LF:
                at = after_space(buffer, at)
                value = byte(buffer, at)
                if value == HASH_SIGN:
                    at = line_end(buffer, at)
                elif value != LF and value != CR:
                    break
            at = next_line(buffer, at)

            time = NO_TIME
            if predicate == time_predicate and byte(buffer, object_at) == _QUOTE:
                time = time_of(buffer, object_at, object_end)
            if time != NO_TIME and own_graph == DEFAULT_GRAPH and graphs:
                object_ = TIMED
            elif predicate >= wanted:
                if object_ == UNREAD:
                    verdict = _check(buffer, object_at, object_end, state)
                    if verdict == UNDECIDED:
                        break
                    if verdict == CANONICAL and byte(buffer, object_at) == _QUOTE:
                        close = lexical_end(buffer, object_at)
                        suffix[predicate & (_PREDICTIONS - 1), 0] = close
                        suffix[predicate & (_PREDICTIONS - 1), 1] = object_end - close
                object_ = SKIPPED
            elif object_ < 0:
                object_ = _code(buffer, object_at, object_end, seed, state, spans, slots)
                if object_ < 0:
                    break
                usual[predicate & (_PREDICTIONS - 1)] = object_
            well_formed = True
            break

        if well_formed:
            rows.s[row] = subject
            rows.p[row] = predicate
            rows.o[row] = object_
            rows.g[row] = own_graph
            if predicate == time_predicate:
                rows.time[row] = time
        else:
            deferred_line = state[DEFERRED]
            if deferred_line >= len(deferred.row):
                at, status = begin, DEFERRED_FULL
                break
            stop = line_end(buffer, begin)
            deferred.at[deferred_line] = begin
            deferred.end[deferred_line] = stop
            deferred.row[deferred_line] = row
            state[DEFERRED] = deferred_line + 1
            rows.s[row] = UNREAD
            rows.p[row] = UNREAD
            rows.o[row] = UNREAD
            rows.g[row] = DEFAULT_GRAPH
            at = next_line(buffer, stop)
        rows.at[row] = begin
        rows.line[row] = line
        row += 1
        line += 1
    state[AT], state[LINE], state[ROW] = at, line, row
    return status
