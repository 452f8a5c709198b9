"""The order of the waiting runs in a block: by falling threshold, or a heap with the least first.

A block is sorted while it is small. The NaN in front of it ends every search from its end, because
no comparison with NaN holds. All functions take `threshold` [P] float64 and `run` [P] int32, the
pool of `run_arrays.WaitingArrays`, and the place where the block begins in it.
"""

from __future__ import annotations

from spaseq.compiled.arrays import Float64s, Int32s
from spaseq.compiled.decorators import as_nonnegative, device_function, inlined_device_function


@inlined_device_function
def sift_up(threshold: Float64s, run: Int32s, place: int, at: int) -> None:
    """Move entry `at` of a heap up to where it belongs."""
    moving, moving_run = threshold[place + at], run[place + at]
    while at > 0:
        above = (at - 1) >> 1
        if threshold[place + above] <= moving:
            break
        threshold[place + at], run[place + at] = threshold[place + above], run[place + above]
        at = above
    threshold[place + at], run[place + at] = moving, moving_run


@inlined_device_function
def sift_down(threshold: Float64s, run: Int32s, place: int, count: int, at: int) -> None:
    """Move entry `at` of a heap of `count` entries down to where it belongs."""
    moving, moving_run = threshold[place + at], run[place + at]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        # Selected without a branch, because no processor can predict which child is less.
        other = below + (below + 1 < count)
        below = other if threshold[place + other] < threshold[place + below] else below
        if threshold[place + below] >= moving:
            break
        threshold[place + at], run[place + at] = threshold[place + below], run[place + below]
        at = below
    threshold[place + at], run[place + at] = moving, moving_run


@inlined_device_function
def remove_least(threshold: Float64s, run: Int32s, place: int, left: int) -> None:
    """Remove the first entry of a heap, of which `left` others remain."""
    last = as_nonnegative(place + left)
    threshold[place], run[place] = threshold[last], run[last]
    sift_down(threshold, run, place, left, 0)


@device_function
def heapify(threshold: Float64s, run: Int32s, place: int, count: int) -> None:
    """Make a heap of the first `count` entries of a block."""
    for at in range(count // 2 - 1, -1, -1):
        sift_down(threshold, run, place, count, at)


@inlined_device_function
def insert_sorted(threshold: Float64s, run: Int32s, end: int, level: float, node: int) -> None:
    """Insert a waiting run into a sorted block whose last entry lies before `end`."""
    at = as_nonnegative(end - 1)
    while threshold[at] < level:
        after = as_nonnegative(at + 1)
        threshold[after], run[after] = threshold[at], run[at]
        at = as_nonnegative(at - 1)
    threshold[as_nonnegative(at + 1)], run[as_nonnegative(at + 1)] = level, node


@device_function
def sort(threshold: Float64s, run: Int32s, place: int, count: int) -> None:
    """Sort a block of few entries."""
    for at in range(place + 1, place + count):
        insert_sorted(threshold, run, at, threshold[at], run[at])
