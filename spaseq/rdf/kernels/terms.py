"""Terms of N-Quads and N-Triples: where they end, and their codes in the table of texts."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.iris import CANONICAL, REWRITABLE, check_iri, iri_end
from spaseq.rdf.kernels.lines import is_space
from spaseq.rdf.kernels.literals import check_literal, literal_end, put_canonical
from spaseq.rdf.kernels.tables import find, put, text_hash
from spaseq.rdf.kernels.token_arrays import BLANK, HEAP, KNOWN, TERM
from spaseq.rdf.kernels.vectors import byte, same

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
