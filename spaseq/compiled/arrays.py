"""Names for the types of numpy arrays: one alias per dtype, for the whole package.

An alias gives the dtype only; the shape is in the docstring of its user. Importing this module
loads numpy but not numba.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""An array of any dtype."""

Arrays: TypeAlias = tuple[Array, ...]
"""Arrays that travel together, as a kernel's arguments in a row."""

Bools: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Int8s: TypeAlias = npt.NDArray[np.int8]
Int16s: TypeAlias = npt.NDArray[np.int16]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Float64s: TypeAlias = npt.NDArray[np.float64]
Objects: TypeAlias = npt.NDArray[np.object_]

Indices: TypeAlias = npt.NDArray[np.intp]
"""Positions in another array, as numpy returns and takes them."""


def grown(array: Array, rows: int, fill: int = 0) -> Array:
    """The array with room for `rows` rows; `fill` is in the new ones."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    if fill:
        larger[len(array) :] = fill
    return larger
