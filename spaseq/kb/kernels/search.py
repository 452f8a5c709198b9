"""Search in sorted texts: a binary one, and one by a hash table of their numbers.

The binary search compares from the prefix on that is known to be shared (Manber and Myers, Suffix
arrays, SIAM J. Comput. 22:5, 1993). The hash table is open, with linear probing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.arrays import Int32s
from spaseq.compiled.decorators import inlined_device_function, kernel
from spaseq.rdf.kernels.texts import text_hash
from spaseq.rdf.kernels.vectors import folded_product, signed, word

Array = Any  # numba distinguishes writable arrays, mypy does not

_U = np.uint64
_ODD = _U(0x9E3779B97F4A7C15)
_WORD = 8


@kernel
def find_sorted(offsets: Array, data: Array, ends: Array, wanted: Array, absent: int) -> Array:
    """The codes int32 [n] of n texts among m sorted texts, `absent` for texts that are not there.

    Sorted text i is data[offsets[i]:offsets[i + 1]] (UTF-8, uint8), with offsets int64 [m + 1]. The
    texts to find are consecutive in `wanted` (uint8) and end at `ends` int64 [n].
    """
    codes = np.empty(len(ends), np.int32)
    begin = 0
    for i in range(len(ends)):
        low, high = 0, len(offsets) - 1
        # Length of the prefix that the wanted text shares with the texts before `low` and from
        # `high` on. The texts between share at least the smaller one, so comparison starts there.
        below, above = 0, 0
        while low < high:
            middle = (low + high) >> 1
            at, end = offsets[middle], offsets[middle + 1]
            shared = _shared(data, at, end, wanted, begin, ends[i], min(below, above))
            left = ends[i] - begin - shared
            if left and (shared == end - at or data[at + shared] < wanted[begin + shared]):
                low, below = middle + 1, shared
            else:
                high, above = middle, shared
        codes[i] = absent
        if low < len(offsets) - 1 and offsets[low + 1] - offsets[low] == ends[i] - begin:
            at, same = offsets[low], True
            for j in range(ends[i] - begin):
                if data[at + j] != wanted[begin + j]:
                    same = False
                    break
            if same:
                codes[i] = low
        begin = ends[i]
    return codes


@inlined_device_function
def _shared(a: Array, at: int, end: int, b: Array, begin: int, stop: int, known: int) -> int:
    """The length of the common prefix of a[at:end] and b[begin:stop], which is at least `known`."""
    shorter = min(end - at, stop - begin)
    for j in range(known, shorter):
        if a[at + j] != b[begin + j]:
            return j
    return shorter


@kernel
def hash_slots(offsets: Array, data: Array, seed: np.uint64, slots: Int32s) -> None:
    """Enter the m texts into `slots` int32 [2^i], more than m, which are all -1."""
    mask = _U(len(slots) - 1)
    for code in range(len(offsets) - 1):
        at = offsets[code]
        slot = _hash(data, at, offsets[code + 1] - at, seed) & mask
        while slots[slot] >= 0:
            slot = (slot + _U(1)) & mask
        slots[slot] = code


@kernel
def find_hashed(
    offsets: Array,
    data: Array,
    seed: np.uint64,
    slots: Int32s,
    ends: Array,
    wanted: Array,
    absent: int,
) -> Array:
    """As `find_sorted`, by `slots` that `hash_slots` has filled."""
    codes = np.empty(len(ends), np.int32)
    mask = _U(len(slots) - 1)
    begin = 0
    for i in range(len(ends)):
        size = ends[i] - begin
        slot = _hash(wanted, begin, size, seed) & mask
        code = signed(slots[slot])
        while code >= 0 and not (
            offsets[code + 1] - offsets[code] == size
            and _same(data, offsets[code], wanted, begin, size)
        ):
            slot = (slot + _U(1)) & mask
            code = signed(slots[slot])
        codes[i] = code if code >= 0 else absent
        begin = ends[i]
    return codes


@inlined_device_function
def _hash(data: Array, at: int, size: int, seed: np.uint64) -> np.uint64:
    """The hash of the text of `size` bytes at `at`; no byte behind it is read."""
    if size >= _WORD:
        return text_hash(data, at, size, seed)
    mixed = seed
    for j in range(size):
        mixed = (mixed ^ _U(data[at + j])) * _ODD
    return folded_product(mixed, _ODD)


@inlined_device_function
def _same(a: Array, at: int, b: Array, begin: int, size: int) -> bool:
    """Whether two texts of `size` bytes are equal; no byte behind them is read."""
    if size < _WORD:
        for j in range(size):
            if a[at + j] != b[begin + j]:
                return False
        return True
    for j in range(0, size - _WORD, _WORD):
        if word(a, at + j) != word(b, begin + j):
            return False
    last = size - _WORD
    return bool(word(a, at + last) == word(b, begin + last))
