"""Runs that wait: blocks of them by slot and edge, and heaps by threshold where they are many.

Of a plain sequence, blocks that are no heaps are in order, by falling threshold, and in front of
each lies a key that is no number: who looks for thresholds below a value from the end stops there.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels.run_arrays import (
    ANY,
    AT_LEAST,
    AT_MOST,
    CAPACITY,
    COUNT,
    EQUAL,
    GREATER,
    HEAPED,
    INCLUSIVE,
    INDEX,
    KIND,
    LESS,
    OP,
    ORIGIN,
    OWN,
    PLACE,
    REGISTER,
    SIGN,
    TESTS,
    THRESHOLDS,
    TIME,
    WASTED,
)
from spaseq.compiled.arrays import Float64s, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    device_function,
    inlined_device_function,
    lean_kernel,
)

FEW = 32
"""So many waits are looked at one after the other."""

NO_NUMBER = np.nan


@inlined_device_function
def holds(op: int, own: float, other: float) -> bool:
    if op == LESS:
        return own < other
    if op == AT_MOST:
        return own <= other
    if op == GREATER:
        return own > other
    if op == AT_LEAST:
        return own >= other
    if op == EQUAL:
        return own == other
    return own != other


@inlined_device_function
def passes(
    test: Int32s, first: int, end: int, own: Float64s, row: int, register: Float64s, run: int
) -> bool:
    """Whether a solution passes some tests against a run."""
    for i in range(first, end):
        place = test[i, OWN]
        value = own[place, row] if place >= 0 else register[run, ~place]
        if not holds(test[i, OP], value, register[run, test[i, REGISTER]]):
            return False
    return True


# --- heaps of waits, the least threshold first --------------------------------------------------


@inlined_device_function
def rise(key: Float64s, run: Int32s, place: int, at: int) -> None:
    """Move the entry `at` of the heap that begins at `place` to where it belongs, upwards."""
    own, own_run = key[place + at], run[place + at]
    while at > 0:
        above = (at - 1) >> 1
        if key[place + above] <= own:
            break
        key[place + at], run[place + at] = key[place + above], run[place + above]
        at = above
    key[place + at], run[place + at] = own, own_run


@inlined_device_function
def sink(key: Float64s, run: Int32s, place: int, count: int, at: int) -> None:
    """Move the entry `at` of a heap of `count` entries to where it belongs, downwards."""
    own, own_run = key[place + at], run[place + at]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        other = below + (below + 1 < count)  # which of two is less, cannot be foreseen: no branch
        below = other if key[place + other] < key[place + below] else below
        if key[place + below] >= own:
            break
        key[place + at], run[place + at] = key[place + below], run[place + below]
        at = below
    key[place + at], run[place + at] = own, own_run


@device_function
def heapify(key: Float64s, run: Int32s, place: int, count: int) -> None:
    for at in range(count // 2 - 1, -1, -1):
        sink(key, run, place, count, at)


@inlined_device_function
def put_in_order(key: Float64s, run: Int32s, end: int, level: float, node: int) -> None:
    """Add a wait to those in order that end before `end`."""
    at = as_nonnegative(end - 1)
    while key[at] < level:
        key[as_nonnegative(at + 1)], run[as_nonnegative(at + 1)] = key[at], run[at]
        at = as_nonnegative(at - 1)
    key[as_nonnegative(at + 1)], run[as_nonnegative(at + 1)] = level, node


@device_function
def sort(key: Float64s, run: Int32s, place: int, count: int) -> None:
    """Bring a few waits in order."""
    for at in range(place + 1, place + count):
        put_in_order(key, run, at, key[at], run[at])


@device_function
def settle(blocks: Int32s, block: int, count: int, key: Float64s, run: Int32s) -> None:
    """A block has been thinned out: its count, and its order if it is a heap."""
    blocks[block, COUNT] = count
    blocks[block, WASTED] = 0
    if blocks[block, HEAPED]:
        if 2 * count > FEW:
            heapify(key, run, blocks[block, PLACE], count)
        else:
            blocks[block, HEAPED] = 0
            sort(key, run, blocks[block, PLACE], count)


# --- what lives -----------------------------------------------------------------------------------


@device_function
def thin(
    blocks: Int32s, block: int, key: Float64s, run: Int32s, nodes: Int64s, lowest: int
) -> None:
    """Drop the waits of a block whose window is over."""
    place, kept = blocks[block, PLACE], 0
    for i in range(place, place + blocks[block, COUNT]):
        if nodes[run[i], ORIGIN] >= lowest:
            key[place + kept], run[place + kept] = key[i], run[i]
            kept += 1
    if kept < blocks[block, COUNT]:
        settle(blocks, block, kept, key, run)


@device_function
def make_room(
    blocks: Int32s,
    block: int,
    key: Float64s,
    run: Int32s,
    nodes: Int64s,
    lowest: int,
    top: int,
    indexed: bool,
) -> int:
    """Make room in a block that is full, by thinning it out or moving it to the top of the pool.

    Returns how many places of the pool that takes; if they are not there, their negative number.
    """
    full: int = blocks[block, CAPACITY]
    if full:
        thin(blocks, block, key, run, nodes, lowest)
    count: int = blocks[block, COUNT]
    if 2 * count < full:
        return 0
    size = max(4, 2 * full)
    if top + 1 + size > len(key):
        return -1 - size
    place = blocks[block, PLACE]
    key[top] = NO_NUMBER
    for w in range(count):
        key[top + 1 + w], run[top + 1 + w] = key[place + w], run[place + w]
    blocks[block, PLACE], blocks[block, CAPACITY] = top + 1, size
    if indexed and count >= FEW and not blocks[block, HEAPED]:
        blocks[block, HEAPED] = 1
        heapify(key, run, top + 1, count)
    return 1 + size


@inlined_device_function
def enter(
    blocks: Int32s,
    block: int,
    key: Float64s,
    run: Int32s,
    level: float,
    node: int,
    in_order: bool = True,
) -> None:
    """Let a run wait in a block that has room; where it is no heap, `in_order` of thresholds."""
    place, count = as_nonnegative(blocks[block, PLACE]), as_nonnegative(blocks[block, COUNT])
    blocks[block, COUNT] = count + 1
    if blocks[block, HEAPED]:
        key[place + count], run[place + count] = level, node
        rise(key, run, place, count)
    elif not in_order:
        key[place + count], run[place + count] = level, node
    else:
        put_in_order(key, run, place + count, level, node)


# --- offering solutions to waits ----------------------------------------------------------------


@inlined_device_function
def offer_in_turn(
    block: int,
    blocks: Int32s,
    key: Float64s,
    run: Int32s,
    edge: Int32s,
    e: int,
    test: Int32s,
    gap: int,
    value: float,
    own: Float64s,
    row: int,
    now: int,
    lowest: int,
    nodes: Int64s,
    register: Float64s,
    arrived: Int32s,
    arrived_row: Int32s,
    arrived_edge: Int32s,
    arrivals: int,
) -> int:
    """Offer one solution to the waits of a block that is no heap.

    Which waits take it cannot be foreseen, so each is written down as one that does and as one that
    stays, and counts as what it is.
    """
    place, kept = as_nonnegative(blocks[block, PLACE]), 0
    stays, inclusive = edge[e, KIND] == ANY, edge[e, INCLUSIVE] != 0
    first_test, end_test = edge[e, TESTS], edge[e + 1, TESTS]
    for i in range(place, place + blocks[block, COUNT]):
        threshold, waiting = key[i], as_nonnegative(run[i])
        alive = nodes[waiting, ORIGIN] >= lowest
        if gap >= 0:
            alive &= now - nodes[waiting, TIME] <= gap
        takes = alive & ((value > threshold) | (inclusive & (value == threshold)))
        if first_test < end_test:
            takes = takes and passes(test, first_test, end_test, own, row, register, waiting)
        arrived[arrivals], arrived_row[arrivals], arrived_edge[arrivals] = waiting, row, e
        arrivals += int(takes)
        key[place + kept], run[place + kept] = threshold, waiting
        kept += int(alive & (stays | (not takes)))
    blocks[block, COUNT] = kept
    return arrivals


@inlined_device_function
def offer_by_threshold(
    block: int,
    blocks: Int32s,
    key: Float64s,
    run: Int32s,
    edge: Int32s,
    e: int,
    test: Int32s,
    gap: int,
    value: float,
    own: Float64s,
    row: int,
    now: int,
    lowest: int,
    nodes: Int64s,
    register: Float64s,
    arrived: Int32s,
    arrived_row: Int32s,
    arrived_edge: Int32s,
    arrivals: int,
    stack: Int32s,
) -> int:
    """Offer one solution to the waits of a heap; only those are looked at whose threshold it
    exceeds, and their neighbours."""
    place, count = as_nonnegative(blocks[block, PLACE]), blocks[block, COUNT]
    inclusive = edge[e, INCLUSIVE]
    first_test, end_test = edge[e, TESTS], edge[e + 1, TESTS]
    if edge[e, KIND] == ANY:
        wasted, todo = 0, 1
        stack[0] = 0
        while todo:
            todo -= 1
            at = stack[todo]
            threshold, waiting = key[place + at], as_nonnegative(run[place + at])
            if value > threshold or (inclusive and value == threshold):
                if 2 * at + 1 < count:
                    stack[todo] = 2 * at + 1
                    todo += 1
                if 2 * at + 2 < count:
                    stack[todo] = 2 * at + 2
                    todo += 1
                if nodes[waiting, ORIGIN] < lowest or (
                    gap >= 0 and now - nodes[waiting, TIME] > gap
                ):
                    wasted += 1
                elif passes(test, first_test, end_test, own, row, register, waiting):
                    arrived[arrivals], arrived_row[arrivals] = waiting, row
                    arrived_edge[arrivals] = e
                    arrivals += 1
        blocks[block, WASTED] += wasted
        if blocks[block, WASTED] > count:
            thin(blocks, block, key, run, nodes, lowest)
            blocks[block, WASTED] = 0
        return arrivals
    back = 0  # waits that stay, behind the heap's end while it shrinks
    size = count
    while size:
        threshold, waiting = key[place], as_nonnegative(run[place])
        if not (value > threshold or (inclusive and value == threshold)):
            break
        size -= 1
        key[place], run[place] = key[place + size], run[place + size]
        sink(key, run, place, size, 0)
        if nodes[waiting, ORIGIN] < lowest or (gap >= 0 and now - nodes[waiting, TIME] > gap):
            continue
        if passes(test, first_test, end_test, own, row, register, waiting):
            arrived[arrivals], arrived_row[arrivals], arrived_edge[arrivals] = waiting, row, e
            arrivals += 1
        else:
            back += 1
            key[place + count - back], run[place + count - back] = threshold, waiting
    for i in range(back):
        at = place + count - back + i
        key[place + size], run[place + size] = key[at], run[at]
        rise(key, run, place, size)
        size += 1
    if 4 * size > FEW:
        blocks[block, COUNT] = size
    else:
        settle(blocks, block, size, key, run)
    return arrivals


@device_function
def offer_several(
    block: int,
    blocks: Int32s,
    key: Float64s,
    run: Int32s,
    edge: Int32s,
    e: int,
    test: Int32s,
    gap: int,
    gpm: Int32s,
    taken: int,
    own: Float64s,
    first: int,
    end: int,
    now: int,
    lowest: int,
    nodes: Int64s,
    register: Float64s,
    arrived: Int32s,
    arrived_row: Int32s,
    arrived_edge: Int32s,
    arrivals: int,
) -> int:
    """Offer the solutions of GPM `taken` among those of one instant, `first:end`, to the waits of
    a block: a wait takes each of them."""
    place, kept = as_nonnegative(blocks[block, PLACE]), 0
    stays, inclusive = edge[e, KIND] == ANY, edge[e, INCLUSIVE]
    first_test, end_test = edge[e, TESTS], edge[e + 1, TESTS]
    for i in range(place, place + blocks[block, COUNT]):
        waiting, takes = run[i], False
        if nodes[waiting, ORIGIN] < lowest or (gap >= 0 and now - nodes[waiting, TIME] > gap):
            continue
        for row in range(first, end):
            if gpm[row] == taken:
                value = value_of(edge, e, own, row)
                if (value > key[i] or (inclusive and value == key[i])) and passes(
                    test, first_test, end_test, own, row, register, waiting
                ):
                    arrived[arrivals], arrived_row[arrivals] = waiting, row
                    arrived_edge[arrivals] = e
                    arrivals += 1
                    takes = True
        if takes and not stays:
            continue
        key[place + kept], run[place + kept] = key[i], waiting
        kept += 1
    if kept < blocks[block, COUNT]:
        settle(blocks, block, kept, key, run)
    return arrivals


@device_function
def end_waits(
    block: int,
    blocks: Int32s,
    key: Float64s,
    run: Int32s,
    test: Int32s,
    first_test: int,
    end_test: int,
    own: Float64s,
    row: int,
    register: Float64s,
) -> None:
    """Drop the waits of a block behind a negated step that a solution matches."""
    if first_test == end_test:
        blocks[block, COUNT] = 0
        blocks[block, HEAPED] = 0
        return
    place, kept = blocks[block, PLACE], 0
    for i in range(place, place + blocks[block, COUNT]):
        if not passes(test, first_test, end_test, own, row, register, run[i]):
            key[place + kept], run[place + kept] = key[i], run[i]
            kept += 1
    if kept < blocks[block, COUNT]:
        settle(blocks, block, kept, key, run)


@inlined_device_function
def value_of(edge: Int32s, e: int, own: Float64s, row: int) -> float:
    """What the thresholds of an edge are compared with: the solution's number, negated where it
    must be less; 0 where there are none."""
    if edge[e, INDEX] < 0:
        return 0.0
    value: float = own[as_nonnegative(edge[e, INDEX]), row]
    return -value if edge[e, SIGN] < 0 else value


@inlined_device_function
def threshold_of(edge: Int32s, e: int, threshold: Int32s, register: Float64s, run: int) -> float:
    """The least number that exceeds all that an edge compares with; NaN if there is none."""
    if edge[e, INDEX] < 0:
        return -np.inf
    most = -np.inf
    for i in range(as_nonnegative(edge[e, THRESHOLDS]), edge[e + 1, THRESHOLDS]):
        value = register[run, as_nonnegative(threshold[i])]
        if edge[e, SIGN] < 0:
            value = -value
        if value != value:
            return np.nan
        most = max(most, value)
    return most


# --- the pool -------------------------------------------------------------------------------------


@lean_kernel
def moved_together(
    blocks: Int32s, key: Float64s, run: Int32s, new_key: Float64s, new_run: Int32s
) -> int:
    """Move the blocks of a pool one behind the other into a new one; its top."""
    new_key[0] = NO_NUMBER
    top = 1
    for block in range(blocks.shape[0]):
        place, count = blocks[block, PLACE], blocks[block, COUNT]
        for i in range(count):
            new_key[top + i], new_run[top + i] = key[place + i], run[place + i]
        blocks[block, PLACE] = top
        blocks[block, CAPACITY] = capacity(count)
        if not count:
            blocks[block, HEAPED] = 0
        if not blocks[block, HEAPED]:
            sort(new_key, new_run, top, count)  # those of old snapshots are not in order
        if count:
            top += blocks[block, CAPACITY] + 1
            new_key[top - 1] = NO_NUMBER
    return top


@lean_kernel
def pool_size(blocks: Int32s) -> int:
    """How many places the blocks need when they are moved together."""
    size = 1
    for block in range(blocks.shape[0]):
        if blocks[block, COUNT]:
            size += capacity(blocks[block, COUNT]) + 1
    return size


@inlined_device_function
def capacity(count: int) -> int:
    if count == 0:
        return 0
    size = 4
    while size < count:
        size *= 2
    return size
