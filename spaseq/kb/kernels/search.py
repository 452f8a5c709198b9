"""Binary search in sorted texts (Manber and Myers, Suffix arrays, SIAM J. Comput. 22:5, 1993)."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.decorators import inlined_device_function, kernel

Array = Any  # numba tells writable arrays from others, mypy does not


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
