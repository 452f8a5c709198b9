"""Finds rows with a solution of each required GPM near them in time, in their own partition.

The partitions are in a hash table with open addressing: `keys` int64 [slots] has their numbers, 0
where a slot is free, and `latest` int64 [slots, required GPMs] their times (ms). The number of
slots is a power of two, greater than the number of partitions.
"""

from __future__ import annotations

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, lean_kernel

NEVER = -(2**62)
"""A time (ms) before all others."""


@device_function
def _slot_of(keys: Int64s, key: int) -> int:
    """The slot of a partition, or the free one that it would get."""
    last = len(keys) - 1
    slot = (key ^ (key >> 32)) & last
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & last
    return slot


@lean_kernel
def note_latest(
    time: Int64s,
    gpm: Int32s,
    key: Int64s,
    steps: Int32s,
    length: int,
    keys: Int64s,
    latest: Int64s,
    used: Int64s,
) -> int:
    """Record rows; return the time (ms) of the last one with all required GPMs shortly before it.

    Args:
        time: [n] in ms, ascending.
        gpm: [n] the GPM of each row, -1 for a bare event.
        key: [n] the number of each row's partition.
        steps: by GPM, the number of a required GPM, or -1; the last entry is for bare events.
        length: maximum milliseconds between a row and the required ones before it.
        keys, latest: the table, with n free slots at least.
        used: [1] the number of partitions in the table.
    """
    found, required = NEVER, latest.shape[1]
    for row in range(len(time)):
        step = steps[gpm[row]]
        if step < 0:
            continue
        number = key[row] if key[row] != 0 else 1
        slot = _slot_of(keys, number)
        if keys[slot] == 0:
            keys[slot] = number
            used[0] += 1
        latest[slot, step] = time[row]
        is_possible = True
        for other in range(required):
            is_possible = is_possible and latest[slot, other] >= time[row] - length
        if is_possible:
            found = time[row]
    return found


@lean_kernel
def move_latest(
    keys: Int64s, latest: Int64s, new_keys: Int64s, new_latest: Int64s, before: int
) -> int:
    """Copy partitions to an empty table, unless their last time lies before a time (ms).

    Returns the number of these partitions.
    """
    count = 0
    for old in range(len(keys)):
        last = NEVER
        for step in range(latest.shape[1]):
            last = max(last, latest[old, step])
        if keys[old] != 0 and last >= before:
            slot = _slot_of(new_keys, keys[old])
            new_keys[slot] = keys[old]
            for step in range(latest.shape[1]):
                new_latest[slot, step] = latest[old, step]
            count += 1
    return count


FAR = 2**61
"""A time (ms) that is near no row."""


@lean_kernel
def note_near(
    direction: int,
    time: Int64s,
    step: Int32s,
    partition: Int64s,
    last: Int64s,
    length: int,
    near: Int64s,
) -> None:
    """Add to `near` the required GPMs that have a solution shortly before or after a row.

    Args:
        direction: 1 for solutions before a row or at its position, -1 for solutions after it.
        time: [n] in ms, ascending in each partition.
        step: [n] the number of a required GPM, below 62, or -1.
        partition: [n] the partition of each row.
        last: [partitions, required GPMs] scratch, filled with `FAR`.
        length: maximum milliseconds between two rows of a partition that are near each other.
        near: [n] output; bit i stands for required GPM i.
    """
    required = last.shape[1]
    row = 0 if direction > 0 else len(time) - 1
    for _ in range(len(time)):
        if step[row] >= 0:
            last[partition[row], step[row]] = time[row]
        for j in range(required):
            if abs(time[row] - last[partition[row], j]) <= length:
                near[row] |= 1 << j
        row += direction


_PLACES, _SLICES = 0x1E3779B97F4A7C15, 0x16E8FEB86659FD93
_BITS, _KEPT_BITS = 2**62 - 1, 31


@inlined_device_function
def _mark(partition: int, slice_: int, marks: int) -> int:
    """The number, among `marks`, of the mark of a partition and a slice of time."""
    mixed = (partition * _PLACES + slice_ * _SLICES) & _BITS  # the same if products are not cut off
    return (mixed >> _KEPT_BITS) & (marks - 1)


@lean_kernel
def mark_solutions(time: Int64s, partition: Int64s, width: int, marks: Bools) -> None:
    """Mark the partitions of some solutions, in slices of time that may hold rows near them.

    Args:
        time: [n] in ms.
        partition: [n] a number for the partition of each.
        width: the width of a slice (ms); rows that are near each other are not farther apart.
        marks: [a power of two, at most 2^31] output.
    """
    for row in range(len(time)):
        for step in range(-1, 2):
            marks[_mark(partition[row], time[row] // width + step, len(marks))] = True


@lean_kernel
def marked_rows(time: Int64s, partition: Int64s, width: int, marks: Bools, kept: Bools) -> None:
    """Set in `kept` [n] the rows whose mark `mark_solutions` has set."""
    for row in range(len(time)):
        kept[row] |= marks[_mark(partition[row], time[row] // width, len(marks))]
