"""Calls kernels as Python functions, with the integers of compiled code.

Compiled code computes with 64 bits whatever the type of an array is; numpy's scalars would overflow
at 32. So elements of narrow integer arrays, and booleans, are read as Python integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Array

_NARROW = {np.dtype(t) for t in (np.bool_, np.int8, np.int16, np.int32, np.uint32)}


class _NarrowArray(np.ndarray[Any, Any]):
    """A view of an array of narrow integers whose elements are read as Python integers."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return found.item() if isinstance(found, np.generic) else found


def interpret(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result of a kernel's function. Arrays in it are plain arrays."""
    with np.errstate(over="ignore"):  # hashes wrap around
        return _plain(function(*map(_widened, arguments)))


def _widened(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.view(_NarrowArray) if argument.dtype in _NARROW else argument
    if isinstance(argument, tuple):
        return _tuple(argument, _widened)
    return int(argument) if isinstance(argument, np.int32 | np.bool_) else argument


def _plain(result: Any) -> Any:
    if isinstance(result, _NarrowArray):
        return _base(result)
    return _tuple(result, _plain) if isinstance(result, tuple) else result


def _base(array: _NarrowArray) -> Array:
    return array.view(np.ndarray)


def _tuple(values: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    changed = map(change, values)
    return type(values)(*changed) if hasattr(values, "_fields") else tuple(changed)
