"""Binary search for texts among sorted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.compiled.decorators import inlined_device_function, kernel

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
        # How much of the text that is looked for the ones before `low` and from `high` on share:
        # what lies between them shares no less, and is compared from there (Manber and Myers).
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
    """How long the common beginning of a[at:end] and b[begin:stop] is, at least `known`."""
    shorter = min(end - at, stop - begin)
    for j in range(known, shorter):
        if a[at + j] != b[begin + j]:
            return j
    return shorter
