"""The order of a batch's rows, and the measures of windows."""

from __future__ import annotations

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel


@lean_kernel
def is_rising(
    time: Int64s, k: Int32s, part: Int32s, slot: Int32s, stream: Int32s, gpm: Int32s
) -> bool:
    """Whether each of n rows is above the row before it, by the first column that differs.

    All columns are [n]. Two equal rows are not in order.
    """
    for row in range(1, len(time)):
        before = row - 1
        if time[row] != time[before]:
            above = time[row] > time[before]
        elif k[row] != k[before]:
            above = k[row] > k[before]
        elif part[row] != part[before]:
            above = part[row] > part[before]
        elif slot[row] != slot[before]:
            above = slot[row] > slot[before]
        elif stream[row] != stream[before]:
            above = stream[row] > stream[before]
        else:
            above = gpm[row] > gpm[before]
        if not above:
            return False
    return True


@lean_kernel
def positions(
    slot: Int32s,
    time: Int64s,
    k: Int32s,
    stream: Int32s,
    seen: Int64s,
    passed: Int64s,
    ordinal: Int64s,
    before: Int64s,
    after: Int64s,
) -> None:
    """Write, for each of n rows, the number of its instant and the events before and after it.

    Args:
        slot: [n] the partition of each row. Rows are in the order of instants, then partitions.
        time, k: [n] instants. stream: [n] the events of one instant differ in their streams.
        seen: [streams] scratch.
        passed: [partitions, 2] instants and events of each partition so far; updated.
        ordinal: [n] written: the number of the row's instant in its partition.
        before: [n] written: the partition's events before the instant.
        after: [n] written: `before`, plus the events of the instant.
    """
    n = len(slot)
    seen[:] = -1
    first = 0
    while first < n:
        here = slot[first]
        count, end = 0, first
        while end < n and slot[end] == here and time[end] == time[first] and k[end] == k[first]:
            count += seen[stream[end]] != first
            seen[stream[end]] = first
            end += 1
        passed[here, 0] += 1
        for row in range(first, end):
            ordinal[row] = passed[here, 0]
            before[row] = passed[here, 1]
            after[row] = passed[here, 1] + count
        passed[here, 1] += count
        first = end
