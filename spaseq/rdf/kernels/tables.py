"""A hash table of distinct texts, whose codes are in order of first appearance.

The table has three arrays. The texts lie anywhere in a byte buffer. `spans` int32 [cap, 3] has
(offset, size, hash) of each text. `slots` uint64 [2^i], at most half full, is an open-addressing
hash table with linear probing: `hash << 32 | code + 1`, or 0 for an empty slot.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bytes, Int32s, Int64s, UInt64s
from spaseq.compiled.decorators import inlined_device_function, kernel, lean_kernel
from spaseq.rdf.kernels.vectors import folded_product, same, signed, word

OFFSET, SIZE, HASH = 0, 1, 2

_U = np.uint64
_K1, _K2 = _U(0x9E3779B97F4A7C15), _U(0xD6E8FEB86659FD93)
_HALF, _LOW, _ONE, _EMPTY, _BYTE = _U(32), _U(0xFFFFFFFF), _U(1), _U(0), _U(8)


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
    text: Bytes, at: int, size: int, hashed: np.uint64, buffer: Bytes, spans: Int32s, slots: UInt64s
) -> int:
    """The code of a text, or ~slot (negative) of the empty slot for it."""
    mask = _U(len(slots) - 1)
    slot = hashed & mask
    while True:
        entry = slots[slot]
        if entry == _EMPTY:
            return ~signed(slot)
        if entry >> _HALF == hashed:
            code = (entry & _LOW) - _ONE
            if spans[code, SIZE] == size and same(text, at, buffer, spans[code, OFFSET], size):
                return signed(code)
        slot = (slot + _ONE) & mask


@inlined_device_function
def put(
    code: int, at: int, size: int, hashed: np.uint64, slot: int, spans: Int32s, slots: UInt64s
) -> None:
    """Add a text as `code`, in the slot that `find` returned as ~slot."""
    spans[code, OFFSET] = at
    spans[code, SIZE] = size
    spans[code, HASH] = np.int32(hashed)
    slots[slot] = hashed << _HALF | _U(code + 1)


@lean_kernel
def fill_slots(spans: Int32s, count: int, slots: UInt64s) -> None:
    """Enter the first `count` texts into slots that are all empty."""
    mask = _U(len(slots) - 1)
    for code in range(count):
        hashed = _U(signed(spans[code, HASH]) & 0xFFFFFFFF)
        slot = hashed & mask
        while slots[slot] != _EMPTY:
            slot = (slot + _ONE) & mask
        slots[slot] = hashed << _HALF | _U(code + 1)


@kernel
def add_texts(
    ends: Int64s, at: int, count: int, seed: np.uint64, buffer: Bytes, spans: Int32s, slots: UInt64s
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
    slots: UInt64s,
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
