"""Positions of events among those of their slot."""

from __future__ import annotations

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel


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
    """Count the instants and the events of each slot.

    Rows [n] are in the order of instants, then slots; events of one instant differ in their
    streams. `seen` [streams] is scratch. `passed` [slots, 2] are each slot's instants and events so
    far, and changed. Written are, for each row: the number of its instant, and how many events its
    slot has had `before` and `after` it.
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
