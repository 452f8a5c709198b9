"""Binary search for texts among sorted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.kernels_cache import inlined, kernel

Array = Any  # numba tells writable arrays from others, mypy does not


@kernel
def find_sorted(offsets: Array, data: Array, ends: Array, wanted: Array, absent: int) -> Array:
    """Codes int32 [n] of texts, `absent` for those that are not there.

    `offsets` int64 [m + 1] into `data` (UTF-8) delimit the sorted texts; `ends` int64 [n] delimit
    the ones that are looked for, which lie in `wanted` one after the other.
    """
    codes = np.empty(len(ends), np.int32)
    begin = 0
    for i in range(len(ends)):
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) >> 1
            if _precedes(data, offsets[middle], offsets[middle + 1], wanted, begin, ends[i]):
                low = middle + 1
            else:
                high = middle
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


@inlined
def _precedes(a: Array, at: int, end: int, b: Array, begin: int, stop: int) -> bool:
    """Whether a[at:end] comes before b[begin:stop]."""
    shorter = min(end - at, stop - begin)
    for j in range(shorter):
        if a[at + j] != b[begin + j]:
            return bool(a[at + j] < b[begin + j])
    return end - at < stop - begin
