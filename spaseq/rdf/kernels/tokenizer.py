"""The tokenizer: N-Quads and N-Triples to columns of term codes, line by line.

Most lines resemble the line before: the same subject and graph, the same next predicate as last
time, for some predicates the same object. The tokenizer predicts each term; a correct prediction
costs one comparison. Otherwise it finds the end of the term and looks the term up in the table of
texts. It validates only new texts. Lines that are not certainly well-formed are left to a parser.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, lean_kernel
from spaseq.rdf.kernels.date_times import NO_TIME
from spaseq.rdf.kernels.iris import CANONICAL, REWRITABLE, UNDECIDED, check_iri, iri_end
from spaseq.rdf.kernels.lines import (
    AT,
    BLANK,
    CR,
    DEFAULT_GRAPH,
    DEFERRED,
    DEFERRED_FULL,
    DONE,
    HASH_SIGN,
    HEAP,
    KEEPS_TIMES,
    KNOWN,
    LF,
    LINE,
    PREDICTIONS,
    ROW,
    ROWS_FULL,
    SKIPPED,
    TERM,
    TERMS_FULL,
    TIMED,
    UNREAD,
    DeferredLines,
    PredictedPredicates,
    QuadRows,
    after_space,
    is_space,
    line_end,
    next_line,
)
from spaseq.rdf.kernels.literal_values import time_of
from spaseq.rdf.kernels.literals import (
    check_literal,
    lexical_end,
    literal_end,
    plain_literal_end,
    put_canonical,
)
from spaseq.rdf.kernels.texts import OFFSET, SIZE, find, put, text_hash
from spaseq.rdf.kernels.vectors import byte, same, signed

_QUOTE, _DOT, _LT, _UNDERSCORE, _COLON, _DASH = (ord(c) for c in '".<_:-')


@inlined_device_function
def _label_end(buffer: Bytes, at: int) -> int:
    """The offset after a blank node with an ASCII label, -1 if it is not certainly valid."""
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
def node_end(buffer: Bytes, at: int) -> int:
    """The offset after an IRI or blank node, -1 if it does not end well."""
    first = byte(buffer, at)
    if first == _LT:
        return iri_end(buffer, at)
    return _label_end(buffer, at) if first == _UNDERSCORE else -1


@inlined_device_function
def term_end(buffer: Bytes, at: int) -> int:
    """The offset after a term of any kind, -1 if it does not end well."""
    return literal_end(buffer, at) if byte(buffer, at) == _QUOTE else node_end(buffer, at)


@device_function
def check_term(buffer: Bytes, at: int, end: int, state: Int64s) -> int:
    """Verdict on a new term at `at:end`; counts blank nodes."""
    first = byte(buffer, at)
    if first == _LT:
        return check_iri(buffer, at, end, state[KNOWN:])
    if first == _QUOTE:
        return check_literal(buffer, at, end, state[KNOWN:])
    state[BLANK] += 1
    return CANONICAL


@inlined_device_function
def is_repeated(buffer: Bytes, at: int, earlier: int, size: int) -> bool:
    """Whether the `size` bytes at `at` equal an earlier term, and white space follows."""
    return (
        size > 0 and same(buffer, at, buffer, earlier, size) and is_space(byte(buffer, at + size))
    )


@inlined_device_function
def _added(
    at: int, size: int, hashed: np.uint64, slot: int, state: Int64s, spans: Int32s, slots: Int32s
) -> int:
    """Add a new term and return its code."""
    code: int = state[TERM]
    put(code, at, size, hashed, slot, spans, slots)
    state[TERM] = code + 1
    return code


@device_function
def _rewritten_code(
    buffer: Bytes, at: int, end: int, seed: np.uint64, state: Int64s, spans: Int32s, slots: Int32s
) -> int:
    """The code of the canonical text of the REWRITABLE term at `at:end`; a new text is added."""
    heap = state[HEAP]
    end = put_canonical(buffer, at, end, heap)
    hashed = text_hash(buffer, heap, end - heap, seed)
    code = find(buffer, heap, end - heap, hashed, buffer, spans, slots)
    if code < 0:
        state[HEAP] = end
        code = _added(heap, end - heap, hashed, ~code, state, spans, slots)
    return code


@inlined_device_function
def term_code(
    buffer: Bytes, at: int, end: int, seed: np.uint64, state: Int64s, spans: Int32s, slots: Int32s
) -> int:
    """The code of the term at `at:end`; -1 if it is new and UNDECIDED. A new term is added."""
    size = end - at
    hashed = text_hash(buffer, at, size, seed)
    code = find(buffer, at, size, hashed, buffer, spans, slots)
    if code >= 0:
        return code
    verdict = check_term(buffer, at, end, state)
    if verdict == CANONICAL:
        return _added(at, size, hashed, ~code, state, spans, slots)
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
    slots: Int32s,
    deferred: DeferredLines,
    predicted: PredictedPredicates,
) -> int:
    """Read lines from `state[AT]` to `end` into `rows`; return DONE or the array that is full.

    Each line other than blank lines and comments becomes a row. The row of a line that is not
    certainly well-formed has UNREAD codes, and the line is added to `deferred`. When an array is
    full, the caller replaces it by a larger copy and calls again.

    Args:
        buffer: the text, and from `state[HEAP]` on the rewritten texts of terms that are not
            canonical. They need no more bytes than the lines that are read.
        end: offset after the last line.
        graphs: whether a statement may have a fourth term.
        wanted: triples whose predicate has this code or a larger one have SKIPPED as object.
        time_predicate: code of the predicate whose objects are read as times.
        seed: seed of the term hashes.
        state: see the entries AT .. KNOWN of `lines.py`.
        rows: the quads.
        spans, slots: the term table, see `tables`.
        deferred: the lines for a parser.
        predicted: predictions, from this chunk or any other.
    """
    at, line, row = state[AT], state[LINE], state[ROW]
    keeps_times = state[KEEPS_TIMES]
    capacity, most_terms = len(rows.s), len(spans) - 4
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
        while True:  # runs once; break where the line is not certainly well-formed
            well_formed = False

            if not is_repeated(buffer, at, subject_at, subject_size):
                stop = node_end(buffer, at)
                if stop < 0:
                    break
                subject = term_code(buffer, at, stop, seed, state, spans, slots)
                subject_size = 0
                if subject < 0:
                    break
                subject_at, subject_size = at, stop - at
            at = after_space(buffer, at + subject_size)

            predicate = signed(successor[previous & (PREDICTIONS - 1)])
            if predicate >= 0 and is_repeated(
                buffer, at, spans[predicate, OFFSET], spans[predicate, SIZE]
            ):
                at += spans[predicate, SIZE]
            else:
                if byte(buffer, at) != _LT:
                    break
                stop = iri_end(buffer, at)
                if stop < 0:
                    break
                predicate = term_code(buffer, at, stop, seed, state, spans, slots)
                if predicate < 0:
                    break
                successor[previous & (PREDICTIONS - 1)] = predicate
                at = stop
            previous = predicate
            at = after_space(buffer, at)

            object_ = signed(usual[predicate & (PREDICTIONS - 1)])
            object_at = at
            if object_ >= 0 and is_repeated(
                buffer, at, spans[object_, OFFSET], spans[object_, SIZE]
            ):
                at += spans[object_, SIZE]
            else:
                object_ = UNREAD
                slot = predicate & (PREDICTIONS - 1)
                if predicate >= wanted and suffix[slot, 1] > 0 and byte(buffer, at) == _QUOTE:
                    at = plain_literal_end(buffer, at, suffix[slot, 0], suffix[slot, 1])
                    object_ = SKIPPED
                    if at < 0:
                        at, object_ = object_at, UNREAD
                if object_ == UNREAD:
                    at = term_end(buffer, at)
                    if at < 0:
                        break
            object_end = at
            at = after_space(buffer, at)

            own_graph = DEFAULT_GRAPH
            if byte(buffer, at) != _DOT:
                if not graphs:
                    break
                if not is_repeated(buffer, at, graph_at, graph_size):
                    graph_size = 0
                    if is_repeated(buffer, at, subject_at, subject_size):
                        stop, graph = at + subject_size, subject
                    else:
                        stop = node_end(buffer, at)
                        if stop < 0:
                            break
                        graph = term_code(buffer, at, stop, seed, state, spans, slots)
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
                time = time_of(buffer, object_at, object_end, state)
            if time != NO_TIME and own_graph == DEFAULT_GRAPH and graphs and not keeps_times:
                object_ = TIMED
            elif predicate >= wanted:
                if object_ == UNREAD:
                    verdict = check_term(buffer, object_at, object_end, state)
                    if verdict == UNDECIDED:
                        break
                    if verdict == CANONICAL and byte(buffer, object_at) == _QUOTE:
                        close = lexical_end(buffer, object_at)
                        suffix[predicate & (PREDICTIONS - 1), 0] = close
                        suffix[predicate & (PREDICTIONS - 1), 1] = object_end - close
                object_ = SKIPPED
            elif object_ < 0:
                object_ = term_code(buffer, object_at, object_end, seed, state, spans, slots)
                if object_ < 0:
                    break
                usual[predicate & (PREDICTIONS - 1)] = object_
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
