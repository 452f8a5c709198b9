"""A quick check of IRIs: which are certainly valid and absolute (RFC 3987)."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.escapes import (
    BACKSLASH,
    LOWER_U,
    UPPER_U,
    character,
    encoded_size,
    escaped,
    hex_value,
)
from spaseq.rdf.kernels.vectors import byte, first_iri_end, first_iri_stop, same

UNDECIDED, CANONICAL, REWRITABLE = 0, 1, 2
"""Verdicts on the text of a term: a parser must decide; it is canonical; rewriting makes it so."""

_GT, _SLASH, _HASH, _PERCENT = ord(">"), ord("/"), ord("#"), ord("%")
_COLON, _QUESTION = ord(":"), ord("?")
_LETTER, _DIGIT, _SCHEME, _HOST = 1, 2, 4, 8


def _classes() -> Bytes:
    table = np.zeros(256, np.uint8)
    letters = [*range(65, 91), *range(97, 123)]
    digits = [*range(48, 58)]
    table[letters] = _LETTER | _SCHEME | _HOST
    table[digits] = _DIGIT | _SCHEME | _HOST
    table[[ord(c) for c in "+-."]] |= _SCHEME
    table[[ord(c) for c in "-._~"]] |= _HOST
    return table


_CLASSES = _classes()


@inlined_device_function
def iri_end(buffer: Bytes, at: int) -> int:
    """The offset after the `>` of the IRI whose `<` is at `at`, -1 if it does not end well."""
    end = first_iri_end(buffer, at + 1)
    return end + 1 if byte(buffer, end) == _GT else -1


@device_function
def _head_end(buffer: Bytes, at: int) -> int:
    """The offset after scheme, colon and authority; -1 if they are not certainly valid."""
    if not _CLASSES[byte(buffer, at)] & _LETTER:
        return -1
    while _CLASSES[byte(buffer, at)] & _SCHEME:
        at += 1
    if byte(buffer, at) != _COLON:
        return -1
    at += 1
    if byte(buffer, at) != _SLASH or byte(buffer, at + 1) != _SLASH:
        return at
    at += 2
    while _CLASSES[byte(buffer, at)] & _HOST:
        at += 1
    if byte(buffer, at) == _COLON:
        at += 1
        while _CLASSES[byte(buffer, at)] & _DIGIT:
            at += 1
    end = byte(buffer, at)
    if end != _SLASH and end != _QUESTION and end != _HASH and end != _GT:
        return -1
    return at


@inlined_device_function
def _is_ucschar(code: int) -> bool:
    """Whether every part of an IRI may contain this non-ASCII character (RFC 3987, 2.2)."""
    if code < 0x10000:
        return 0xA0 <= code <= 0xD7FF or 0xF900 <= code <= 0xFDCF or 0xFDF0 <= code <= 0xFFEF
    return code & 0xFFFF <= 0xFFFD and not 0xE0000 <= code < 0xE1000 and code < 0xF0000


@device_function
def _tail_is_valid(buffer: Bytes, at: int, end: int) -> int:
    """Verdict on path, query and fragment, from `at` to the `>` at `end`."""
    in_fragment = False
    verdict = CANONICAL
    while True:
        at = first_iri_stop(buffer, at)
        if at >= end:
            return verdict if at == end else UNDECIDED
        stop = byte(buffer, at)
        if stop == _HASH and not in_fragment:
            in_fragment = True
            at += 1
        elif stop == _PERCENT:
            if hex_value(byte(buffer, at + 1)) < 0 or hex_value(byte(buffer, at + 2)) < 0:
                return UNDECIDED
            at += 3
        elif stop >= 0x80:
            code = character(buffer, at)
            if code < 0 or not _is_ucschar(code):
                return UNDECIDED
            at += encoded_size(code)
        elif stop == BACKSLASH:
            letter = byte(buffer, at + 1)
            code, at = escaped(buffer, at)
            # An escaped ASCII character may have a meaning in the IRI, so a parser decides.
            if (letter != LOWER_U and letter != UPPER_U) or code < 0x80 or not _is_ucschar(code):
                return UNDECIDED
            verdict = REWRITABLE
        else:
            return UNDECIDED


@device_function
def check_iri(buffer: Bytes, at: int, end: int, known: Int64s) -> int:
    """Verdict on the IRI `<...>` at `at:end`.

    `known` [2] is (offset, size) of a valid beginning, from `<` to the first `/` of the path, or
    has size 0. Most IRIs of a stream begin alike, so a known beginning is not checked again.
    """
    if known[1] > 0 and same(buffer, at, buffer, known[0], known[1]):
        return _tail_is_valid(buffer, at + known[1], end - 1)
    path = _head_end(buffer, at + 1)
    if path < 0 or path > end - 1:
        return UNDECIDED
    if byte(buffer, path) == _SLASH and byte(buffer, path - 1) != _COLON:
        known[0] = at
        known[1] = path + 1 - at
    return _tail_is_valid(buffer, path, end - 1)
