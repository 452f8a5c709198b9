"""Larger copies of arrays that have become too small."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Array


def grown(array: Array, rows: int, fill: int = 0) -> Array:
    """The array with room for `rows` rows; `fill` is in the new ones."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    if fill:
        larger[len(array) :] = fill
    return larger
