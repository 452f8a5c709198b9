"""Blocks of waiting runs in their pool: enter, remove, grow, compact.

A block holds the runs that wait at one edge for one slot. Once `few` runs wait, and a threshold
decides which of them a solution satisfies, the block is a heap.

A block is sorted while it is small. The NaN in front of it ends every search from its end, because
no comparison with NaN holds. All functions take `threshold` [P] float64 and `run` [P] int32, the
pool of `run_arrays.WaitingArrays`, and the start of the block in it.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels.run_arrays import (
    CAPACITY,
    COUNT,
    EXPIRED,
    HEAPED,
    ORIGIN,
    PLACE,
    WaitingArrays,
)
from spaseq.compiled.arrays import Float64s, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    device_function,
    inlined_device_function,
    lean_kernel,
)


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


NO_THRESHOLD = np.nan


@device_function
def settle(waiting: WaitingArrays, block: int, count: int) -> None:
    """Write the count of a block that was thinned out, and restore the order of a heap."""
    blocks, place = waiting.block, waiting.block[block, PLACE]
    blocks[block, COUNT] = count
    blocks[block, EXPIRED] = 0
    if blocks[block, HEAPED]:
        if 2 * count > waiting.few[0]:
            heapify(waiting.threshold, waiting.run, place, count)
        else:
            blocks[block, HEAPED] = 0
            sort(waiting.threshold, waiting.run, place, count)


@device_function
def drop_expired(waiting: WaitingArrays, block: int, node: Int64s, lowest: int) -> None:
    """Drop the waiting runs of a block that began before the measure `lowest`."""
    threshold, run = waiting.threshold, waiting.run
    place, kept = waiting.block[block, PLACE], 0
    for i in range(place, place + waiting.block[block, COUNT]):
        if node[run[i], ORIGIN] >= lowest:
            threshold[place + kept], run[place + kept] = threshold[i], run[i]
            kept += 1
    if kept < waiting.block[block, COUNT]:
        settle(waiting, block, kept)


@device_function
def make_room(
    waiting: WaitingArrays, block: int, node: Int64s, lowest: int, top: int, indexed: bool
) -> int:
    """Make room in a full block: drop its expired runs, or move it to the top of the pool.

    `indexed` says whether a threshold decides which of its runs a solution satisfies.

    Returns:
        The number of pool places used; negative if the pool lacks that many.
    """
    blocks, threshold, run = waiting.block, waiting.threshold, waiting.run
    full: int = blocks[block, CAPACITY]
    if full:
        drop_expired(waiting, block, node, lowest)
    count: int = blocks[block, COUNT]
    if 2 * count < full:
        return 0
    size = max(4, 2 * full)
    if top + 1 + size > len(threshold):
        return -1 - size
    place = blocks[block, PLACE]
    threshold[top] = NO_THRESHOLD
    for i in range(count):
        threshold[top + 1 + i], run[top + 1 + i] = threshold[place + i], run[place + i]
    blocks[block, PLACE], blocks[block, CAPACITY] = top + 1, size
    if indexed and count >= waiting.few[0] and not blocks[block, HEAPED]:
        blocks[block, HEAPED] = 1
        heapify(threshold, run, top + 1, count)
    return 1 + size


@inlined_device_function
def enter(
    waiting: WaitingArrays, block: int, level: float, node: int, is_sorted: bool = True
) -> None:
    """Let a run with the threshold `level` wait in a block that has room.

    A block that is no heap is kept sorted if `is_sorted`.
    """
    blocks, threshold, run = waiting.block, waiting.threshold, waiting.run
    place, count = as_nonnegative(blocks[block, PLACE]), as_nonnegative(blocks[block, COUNT])
    blocks[block, COUNT] = count + 1
    if blocks[block, HEAPED]:
        threshold[place + count], run[place + count] = level, node
        sift_up(threshold, run, place, count)
    elif not is_sorted:
        threshold[place + count], run[place + count] = level, node
    else:
        insert_sorted(threshold, run, place + count, level, node)


@lean_kernel
def compact_pool(
    block: Int32s, threshold: Float64s, run: Int32s, new_threshold: Float64s, new_run: Int32s
) -> int:
    """Copy the blocks of a pool, without gaps between them, into a new one; its top.

    The arrays are `run_arrays.WaitingArrays`; the new ones have at least `pool_size` places.
    """
    new_threshold[0] = NO_THRESHOLD
    top = 1
    for b in range(block.shape[0]):
        place, count = block[b, PLACE], block[b, COUNT]
        for i in range(count):
            new_threshold[top + i], new_run[top + i] = threshold[place + i], run[place + i]
        block[b, PLACE] = top
        block[b, CAPACITY] = _capacity(count)
        if not count:
            block[b, HEAPED] = 0
        if count:
            top += block[b, CAPACITY] + 1
            new_threshold[top - 1] = NO_THRESHOLD
    return top


@lean_kernel
def pool_size(block: Int32s) -> int:
    """Number of places that the blocks need without gaps between them."""
    size = 1
    for b in range(block.shape[0]):
        if block[b, COUNT]:
            size += _capacity(block[b, COUNT]) + 1
    return size


@inlined_device_function
def _capacity(count: int) -> int:
    """The capacity of a block with a number of runs: a power of two from 4 on, or 0."""
    if count == 0:
        return 0
    size = 4
    while size < count:
        size *= 2
    return size
