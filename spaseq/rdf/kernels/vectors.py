"""Machine-level loads and searches: 8 or 32 bytes at a time, at any offset of a buffer.

A search compares 32 bytes with a few constants and packs the results into the bits of an integer,
lowest bit first. The functions say in Python what the machine code of `vector_code` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from spaseq.compiled.arrays import Bytes
from spaseq.compiled.decorators import (
    inlined_device_function,
    interpreted_as,
    machine_code,
)

WIDTH = 32
"""Bytes that a search compares in one step."""

PREFETCHED = 16
"""Distance, in texts, of prefetching in a loop over scattered texts."""

_CODE = "spaseq.rdf.kernels.vector_code"
_WORD = 2**64 - 1
_CONTROLS = bytes(range(0x20))
_NOT_ASCII = bytes(range(0x7F, 0x100))

Search: TypeAlias = "Callable[[Bytes, int], int]"


def _search(name: str, members: bytes) -> Search:
    """The search for some bytes: (buffer, at) -> bits; bit i is set if byte at + i is found."""
    pattern = _pattern(members)

    @machine_code(f"{_CODE}:{name}")
    def search(buffer: Bytes, at: int) -> int:
        places = (match.start() for match in pattern.finditer(buffer.data, at, at + WIDTH))
        return sum(1 << (place - int(at)) for place in places)

    return search


def _pattern(members: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[" + re.escape(members) + b"]")


_IRI_END = b"> " + _CONTROLS
_IRI_STOP = b'[\\]^{|}"#%<>` ' + _CONTROLS + _NOT_ASCII
_QUOTE_END = b'"\\' + _CONTROLS
_PLAIN_END = _QUOTE_END + _NOT_ASCII
_LINE_END = b"\r\n"

iri_ends = _search("iri_ends", _IRI_END)
"""`>`, and the bytes that N-Triples forbids in IRIs: space and control characters."""

iri_stops = _search("iri_stops", _IRI_STOP)
"""Bytes that are not allowed everywhere in an IRI. `#` and `%` are allowed under conditions."""

quote_ends = _search("quote_ends", _QUOTE_END)
"""The closing quote of a literal, backslash, and control characters."""

plain_ends = _search("plain_ends", _PLAIN_END)
"""The same, bytes of non-ASCII characters, and DEL."""

line_ends = _search("line_ends", _LINE_END)
"""Line feeds and carriage returns."""


@machine_code(f"{_CODE}:word")
def word(buffer: Bytes, at: int) -> np.uint64:
    """The 8 bytes from `at` on as an integer, lowest byte first."""
    return np.uint64(int.from_bytes(buffer[at : at + 8].tobytes(), "little"))


@machine_code(f"{_CODE}:byte")
def byte(buffer: Bytes, at: int) -> int:
    """The byte at `at` as int64, without numba's check for negative indices."""
    return buffer.item(at)


@machine_code(f"{_CODE}:prefetch")
def prefetch(buffer: Bytes, at: int) -> None:
    """Begin to read 128 bytes at `at` from memory; any `at` is allowed."""


@machine_code(f"{_CODE}:lowest")
def lowest(bits: int) -> int:
    """The index of the lowest set bit; at least one must be set."""
    return (int(bits) & -int(bits)).bit_length() - 1


@machine_code(f"{_CODE}:folded_product")
def folded_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The exclusive or of the two halves of a 128-bit product."""
    product = int(a) * int(b)
    return np.uint64((product & _WORD) ^ (product >> 64))


@machine_code(f"{_CODE}:differences")
def _differences(a: Bytes, at_a: int, b: Bytes, at_b: int) -> int:
    """Bits; bit i is set if the bytes at_a + i and at_b + i differ."""
    unequal = a[at_a : at_a + WIDTH] != b[at_b : at_b + WIDTH]
    return int.from_bytes(np.packbits(unequal, bitorder="little").tobytes(), "little")


@machine_code(f"{_CODE}:copy")
def _copy(source: Bytes, at: int, target: Bytes, to: int) -> None:
    """Copy 32 bytes."""
    target[to : to + WIDTH] = source[at : at + WIDTH]


signed = cast("Callable[[Any], int]", np.int64)
"""An integer of any width as int64."""


def _first(search: Search, members: bytes) -> Search:
    """(buffer, at) -> the first offset from `at` on that a search matches; there must be one."""
    find = _pattern(members).search

    def plain(buffer: Bytes, at: int) -> int:
        match = find(buffer.data, at)
        assert match is not None
        return match.start()

    @interpreted_as(plain)
    @inlined_device_function
    def first(buffer: Bytes, at: int) -> int:
        bits = search(buffer, at)
        while bits == 0:
            at += WIDTH
            bits = search(buffer, at)
        return at + lowest(bits)

    return first


first_iri_end = _first(iri_ends, _IRI_END)
first_iri_stop = _first(iri_stops, _IRI_STOP)
first_quote_end = _first(quote_ends, _QUOTE_END)
first_plain_end = _first(plain_ends, _PLAIN_END)
first_line_end = _first(line_ends, _LINE_END)


def _equal(a: Bytes, at_a: int, b: Bytes, at_b: int, size: int) -> bool:
    return a.data[at_a : at_a + size] == b.data[at_b : at_b + size]


@interpreted_as(_equal)
@inlined_device_function
def same(a: Bytes, at_a: int, b: Bytes, at_b: int, size: int) -> bool:
    """Whether two spans of `size` bytes are equal."""
    while size > WIDTH:
        if _differences(a, at_a, b, at_b) != 0:
            return False
        at_a += WIDTH
        at_b += WIDTH
        size -= WIDTH
    return _differences(a, at_a, b, at_b) & ((1 << size) - 1) == 0


@inlined_device_function
def copied(source: Bytes, at: int, target: Bytes, to: int, size: int) -> None:
    """Copy `size` bytes, and up to 31 bytes after them: both buffers must be that much longer."""
    end = at + size
    while at < end:
        _copy(source, at, target, to)
        at += WIDTH
        to += WIDTH
