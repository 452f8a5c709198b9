"""Kernels that rely on their caller for what they read."""

from __future__ import annotations

from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.compiled.decorators import as_nonnegative, assume, lean_kernel
from spaseq.rdf.kernels.vectors import word


@lean_kernel
def element(numbers: Int64s, place: int) -> int:
    """An element."""
    found: int = numbers[place]
    return found


@lean_kernel
def promised(numbers: Int64s, place: int) -> int:
    """An element, at a place that is promised not to be negative."""
    found: int = numbers[as_nonnegative(place)]
    return found


@lean_kernel
def first_word(buffer: Bytes, at: int) -> int:
    """Eight bytes."""
    return int(word(buffer, at))


@lean_kernel
def square(numbers: Int64s) -> int:
    """The square of the length, which is promised to be 3."""
    assume(len(numbers) == 3)
    return len(numbers) ** 2
