"""Literals: their end, a quick check whether they are canonical, and rewriting them."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function
from spaseq.rdf.kernels.escapes import (
    BACKSLASH,
    LOWER_U,
    UPPER_U,
    escaped,
    put_unescaped,
    wide_end,
)
from spaseq.rdf.kernels.iris import CANONICAL, REWRITABLE, UNDECIDED, check_iri, iri_end
from spaseq.rdf.kernels.lines import is_space
from spaseq.rdf.kernels.vectors import WIDTH, byte, first_plain_end, first_quote_end, same
from spaseq.rdf.terms.term import RDF, XSD_STRING

QUOTE, _AT, _CARET, _LT, _DASH = ord('"'), ord("@"), ord("^"), ord("<"), ord("-")
_APOSTROPHE = ord("'")


def constant(text: str) -> tuple[Bytes, int]:
    """(UTF-8 bytes with padding for wide loads, size in bytes) of a text to compare with."""
    encoded = text.encode()
    return np.frombuffer(encoded + b"\n" * WIDTH, np.uint8).copy(), len(encoded)


_STRING, _STRING_SIZE = constant(f"<{XSD_STRING}>")
_RDF, _RDF_SIZE = constant(f"<{RDF}")


@inlined_device_function
def lexical_end(buffer: Bytes, at: int) -> int:
    """The offset of the closing quote of the literal whose first quote is at `at`, or -1."""
    at += 1
    while True:
        at = first_quote_end(buffer, at)
        stop = byte(buffer, at)
        if stop == QUOTE:
            return at
        if stop != BACKSLASH or byte(buffer, at + 1) < 0x20:
            return -1
        at += 2


@inlined_device_function
def plain_literal_end(buffer: Bytes, at: int, suffix: int, size: int) -> int:
    """The offset after an ASCII literal without escapes, or -1 if it is not one.

    From its closing quote on it must equal the `size` bytes at `suffix`, which come from a valid
    literal, and white space must follow.
    """
    at = first_plain_end(buffer, at + 1)
    end = at + size
    if byte(buffer, at) != QUOTE or not same(buffer, at, buffer, suffix, size):
        return -1
    return end if is_space(byte(buffer, end)) else -1


@inlined_device_function
def _is_tag_character(value: int) -> bool:
    letter = value | 0x20
    return 97 <= letter <= 122 or 48 <= value <= 57 or value == _DASH


@inlined_device_function
def literal_end(buffer: Bytes, at: int) -> int:
    """The offset after a literal with language tag or datatype, -1 if it does not end well."""
    at = lexical_end(buffer, at)
    if at < 0:
        return -1
    at += 1
    after = byte(buffer, at)
    if after == _CARET:
        if byte(buffer, at + 1) != _CARET or byte(buffer, at + 2) != _LT:
            return -1
        return iri_end(buffer, at + 2)
    if after == _AT:
        at += 1
        while _is_tag_character(byte(buffer, at)):
            at += 1
    return at


@device_function
def _check_lexical(buffer: Bytes, at: int, close: int) -> int:
    """Verdict on the lexical form between the quotes at `at` and `close`."""
    verdict = CANONICAL
    at += 1
    while at < close:
        at = first_plain_end(buffer, at)
        if at >= close:
            break
        stop = byte(buffer, at)
        if stop == BACKSLASH:
            code, after = escaped(buffer, at)
            if code < 0:
                return UNDECIDED
            letter = byte(buffer, at + 1)
            if letter == LOWER_U or letter == UPPER_U or letter == _APOSTROPHE:
                verdict = REWRITABLE
            at = after
        elif stop >= 0x80:
            at = wide_end(buffer, at, close)
            if at < 0:
                return UNDECIDED
        else:  # a control character: its canonical escape would be longer than the text
            return UNDECIDED
    return verdict


@inlined_device_function
def _letters(buffer: Bytes, at: int) -> int:
    """The number of ASCII letters from `at` on."""
    count = 0
    while 97 <= byte(buffer, at + count) | 0x20 <= 122:
        count += 1
    return count


@device_function
def _check_tag(buffer: Bytes, at: int, end: int) -> int:
    """Verdict on a language tag: CANONICAL for forms like `en`, `en-GB`, `es-419`, `zh-Hans-CN`."""
    size = _letters(buffer, at)
    if size < 2 or size > 3:
        return UNDECIDED
    at += size
    if byte(buffer, at) == _DASH and _letters(buffer, at + 1) == 4:
        at += 5
    if at < end and byte(buffer, at) == _DASH:
        size = _letters(buffer, at + 1)
        if size == 0:
            while 48 <= byte(buffer, at + 1 + size) <= 57:
                size += 1
            size = 2 if size == 3 else 0
            at += 1
        if size != 2:
            return UNDECIDED
        at += 3
    return CANONICAL if at == end else UNDECIDED


@device_function
def _has_upper(buffer: Bytes, at: int, end: int) -> bool:
    while at < end:
        if 65 <= byte(buffer, at) <= 90:
            return True
        at += 1
    return False


@device_function
def _check_datatype(buffer: Bytes, at: int, end: int, known: Int64s) -> int:
    """Verdict on a datatype IRI; `known` [4] is as for `check_literal`."""
    size = end - at
    if known[3] == size and same(buffer, at, buffer, known[2], size):
        return CANONICAL
    if size == _STRING_SIZE and same(buffer, at, _STRING, 0, size):
        return REWRITABLE
    if size >= _RDF_SIZE and same(buffer, at, _RDF, 0, _RDF_SIZE):
        return UNDECIDED  # rdf:langString needs a language tag
    verdict = check_iri(buffer, at, end, known)
    if verdict == REWRITABLE:
        return UNDECIDED  # the rewritten IRI may be one of the above
    if verdict == CANONICAL:
        known[2] = at
        known[3] = size
    return verdict


@device_function
def check_literal(buffer: Bytes, at: int, end: int, known: Int64s) -> int:
    """Verdict on the literal at `at:end`, whose end `literal_end` found.

    `known` [4] is (offset, size) as for `check_iri`, then (offset, size) of a CANONICAL datatype.
    """
    close = lexical_end(buffer, at)
    lexical = _check_lexical(buffer, at, close)
    suffix = CANONICAL
    if end > close + 1:
        if byte(buffer, close + 1) == _AT:
            suffix = _check_tag(buffer, close + 2, end)
            if suffix == CANONICAL and _has_upper(buffer, close + 2, end):
                suffix = REWRITABLE
        else:
            suffix = _check_datatype(buffer, close + 3, end, known)
    if lexical == UNDECIDED or suffix == UNDECIDED:
        return UNDECIDED
    return CANONICAL if lexical == CANONICAL and suffix == CANONICAL else REWRITABLE


@device_function
def put_canonical(buffer: Bytes, at: int, end: int, target: int) -> int:
    """Write the canonical text of a REWRITABLE term at `target`; return the offset after it."""
    if byte(buffer, at) == _LT:
        return put_unescaped(buffer, at, end, target, False)
    close = lexical_end(buffer, at)
    buffer[target] = QUOTE
    target = put_unescaped(buffer, at + 1, close, target + 1, True)
    buffer[target] = QUOTE
    target += 1
    after = close + 1
    if end - after - 2 == _STRING_SIZE and same(buffer, after + 2, _STRING, 0, _STRING_SIZE):
        return target
    is_tag = byte(buffer, after) == _AT
    while after < end:
        value = byte(buffer, after)
        buffer[target] = value | 0x20 if is_tag and 65 <= value <= 90 else value
        after += 1
        target += 1
    return target
