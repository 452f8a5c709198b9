"""Texts in byte arrays: codes by a hash table, in order of first appearance; gathering, joining,
search.

A few codes out of many are renumbered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.arrays import Bools, Bytes, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    inlined_device_function,
    kernel,
    lean_kernel,
)
from spaseq.rdf.kernels.vectors import (
    PREFETCHED,
    WIDTH,
    copied,
    folded_product,
    prefetch,
    same,
    signed,
    word,
)

OFFSET, SIZE, HASH = 0, 1, 2

_U = np.uint64
_K1, _K2 = _U(0x9E3779B97F4A7C15), _U(0xD6E8FEB86659FD93)
_HALF, _EMPTY, _BYTE = _U(32), _U(0), _U(8)
_POSITIVE = 2**31 - 1

FULLEST = 5, 8
"""The part of the slots that texts may take, as a fraction."""

Array = Any  # numba tells writable arrays from others, mypy does not

CONSTANT, OWN = -1, -2
"""Pieces without a column of places: one text for all rows, and text i for row i."""


@inlined_device_function
def text_hash(buffer: Bytes, at: int, size: int, seed: np.uint64) -> np.uint64:
    """A 32-bit hash, as uint64, of a text of at least one byte.

    It folds 128-bit products of 64-bit words, as wyhash does. The random seed prevents input that
    is made to collide.
    """
    mixed = seed ^ _U(size) * _K1
    while size > 16:
        mixed = folded_product(word(buffer, at) ^ seed, word(buffer, at + 8) ^ mixed)
        at += 16
        size -= 16
    if size > 8:
        first, second = word(buffer, at), word(buffer, at + size - 8)
    else:
        first, second = word(buffer, at) << (_U(8 - size) * _BYTE), _EMPTY
    mixed = folded_product(first ^ seed, second ^ mixed)
    return folded_product(mixed ^ _K2, _K1) >> _HALF


@inlined_device_function
def find(
    text: Bytes, at: int, size: int, hashed: np.uint64, buffer: Bytes, spans: Int32s, slots: Int32s
) -> int:
    """The code of a text, or ~slot (negative) of the empty slot for it."""
    mask = len(slots) - 1
    slot = signed(hashed) & mask
    tag = signed(hashed) & _POSITIVE & ~mask
    while True:
        entry = signed(slots[as_nonnegative(slot)])
        if entry == 0:
            return ~slot
        if entry & ~mask == tag:
            code: int = as_nonnegative((entry & mask) - 1)
            if spans[code, SIZE] == size and same(text, at, buffer, spans[code, OFFSET], size):
                return code
        slot = (slot + 1) & mask


@inlined_device_function
def put(
    code: int, at: int, size: int, hashed: np.uint64, slot: int, spans: Int32s, slots: Int32s
) -> None:
    """Add a text as `code`, in the slot that `find` returned as ~slot."""
    spans[code, OFFSET] = at
    spans[code, SIZE] = size
    spans[code, HASH] = np.int32(hashed)
    slots[slot] = _entry(code, signed(hashed), len(slots) - 1)


@inlined_device_function
def _entry(code: int, hashed: int, mask: int) -> int:
    """The entry in the slot of a text."""
    return (hashed & _POSITIVE & ~mask) | (code + 1)


@lean_kernel
def fill_slots(spans: Int32s, count: int, slots: Int32s) -> None:
    """Enter the first `count` texts into slots that are all empty."""
    mask = len(slots) - 1
    for code in range(count):
        hashed = signed(spans[code, HASH])
        slot = hashed & mask
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = _entry(code, hashed, mask)


@kernel
def add_texts(
    ends: Int64s, at: int, count: int, seed: np.uint64, buffer: Bytes, spans: Int32s, slots: Int32s
) -> Int32s:
    """The codes [n] of n consecutive texts in the buffer, from `at`, ending at `ends` [n].

    New texts get codes from `count` on, the number of texts so far.
    """
    codes = np.empty(len(ends), np.int32)
    for i in range(len(ends)):
        size = ends[i] - at
        hashed = text_hash(buffer, at, size, seed)
        code = find(buffer, at, size, hashed, buffer, spans, slots)
        if code < 0:
            put(count, at, size, hashed, ~code, spans, slots)
            code = count
            count += 1
        codes[i] = code
        at = ends[i]
    return codes


@kernel
def find_texts(
    texts: Bytes,
    ends: Int64s,
    seed: np.uint64,
    buffer: Bytes,
    spans: Int32s,
    slots: Int32s,
    absent: int,
) -> Int32s:
    """The codes [n] of n consecutive texts in their own padded buffer, ending at `ends` [n]."""
    codes = np.empty(len(ends), np.int32)
    at = 0
    for i in range(len(ends)):
        size = ends[i] - at
        hashed = text_hash(texts, at, size, seed)
        code = find(texts, at, size, hashed, buffer, spans, slots)
        codes[i] = absent if code < 0 else code
        at = ends[i]
    return codes


@kernel
def compacted(codes: Int32s, limit: int) -> tuple[Int32s, Int32s]:
    """(distinct codes in order of first appearance, index of each of codes [n] among them [n]).

    Codes are below `limit`. The index of a negative code is -1.
    """
    place = np.full(limit, -1, np.int32)
    used, places = np.empty(len(codes), np.int32), np.empty(len(codes), np.int32)
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        if code < 0:
            places[i] = -1
            continue
        if place[code] < 0:
            place[code] = count
            used[count] = code
            count += 1
        places[i] = place[code]
    return used[:count], places


@kernel
def compacted_parts(codes: Int32s, ends: Int64s, limit: int) -> tuple[Int32s, Int64s, Int32s]:
    """`compacted` of each part of codes [n]; `ends` [parts] are the ends of the parts.

    Returns:
        (the distinct codes of all parts, the end of each part's codes among them [parts], index of
        each code among those of its part [n]).
    """
    place, part_of = np.empty(limit, np.int32), np.full(limit, -1, np.int32)
    used, places = np.empty(len(codes), np.int32), np.empty(len(codes), np.int32)
    used_ends = np.empty(len(ends), np.int64)
    count = first = 0
    for part in range(len(ends)):
        begin = count
        for i in range(first, ends[part]):
            code = codes[i]
            if code < 0:
                places[i] = -1
                continue
            if part_of[code] != part:
                part_of[code] = part
                place[code] = count - begin
                used[count] = code
                count += 1
            places[i] = place[code]
        first = ends[part]
        used_ends[part] = count
    return used[:count], used_ends, places


@kernel
def gather(buffer: Bytes, spans: Int32s, codes: Int32s, inner: int) -> tuple[Int64s, Bytes]:
    """(offsets [n + 1], bytes) of the texts of codes [n], without `inner` bytes at either end.

    At least 31 bytes of the buffer must follow each text.
    """
    offsets = np.empty(len(codes) + 1, np.int64)
    total = 0
    for i in range(len(codes)):
        offsets[i] = total
        total += spans[codes[i], SIZE] - 2 * inner
    offsets[len(codes)] = total
    texts = np.empty(total + WIDTH, np.uint8)
    for i in range(len(codes)):
        following = codes[min(i + PREFETCHED, len(codes) - 1)]
        prefetch(buffer, signed(spans[following, OFFSET]))
        at, to = signed(spans[codes[i], OFFSET]) + inner, offsets[i]
        copied(buffer, at, texts, to, offsets[i + 1] - to)
    return offsets, texts[:total]


@kernel
def joined_texts(
    data: Bytes, offsets: Int64s, first: Int64s, column: Int64s, places: Array, rows: int
) -> tuple[Int64s, Bytes]:
    """(offsets [rows + 1], bytes) of m texts for each row, one after the other.

    Text i is data[offsets[i]:offsets[i + 1]]; at least 31 bytes follow the last one. Piece p of a
    row is the text `first[p]` further than its place: the row's in `places` int32 [c, rows] at
    `column[p]`, which is negative for no text; or see CONSTANT and OWN.
    """
    begins = np.empty(rows + 1, np.int64)
    total = 0
    for row in range(rows):
        begins[row] = total
        for piece in range(len(first)):
            at = _text(first, column, places, piece, row)
            if at >= 0:
                total += offsets[at + 1] - offsets[at]
    begins[rows] = total
    texts = np.empty(total + WIDTH, np.uint8)
    to = 0
    for row in range(rows):
        for piece in range(len(first)):
            at = _text(first, column, places, piece, row)
            if at >= 0:
                size = offsets[at + 1] - offsets[at]
                copied(data, offsets[at], texts, to, size)
                to += size
    return begins, texts[:total]


@inlined_device_function
def _text(first: Int64s, column: Int64s, places: Array, piece: int, row: int) -> int:
    """The number of a piece's text, negative for no text."""
    own, place = column[piece], 0
    if own != CONSTANT:
        place = row if own == OWN else signed(places[own, row])
    return signed(first[piece] + place) if place >= 0 else -1


@kernel
def holding_any(data: Bytes, ends: Int64s, wanted: Bools) -> Bools:
    """[n] whether text i, which is data[ends[i]:ends[i + 1]], has a byte of those `wanted`.

    `wanted` bool [256] says it by byte.
    """
    found = np.zeros(len(ends) - 1, np.bool_)
    for row in range(len(found)):
        has = False
        for at in range(ends[row], ends[row + 1]):
            has |= wanted[data[at]]
        found[row] = has
    return found
