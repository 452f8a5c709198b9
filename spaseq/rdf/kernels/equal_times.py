"""Events with equal times, one behind the other."""

from __future__ import annotations

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel


@lean_kernel
def equal_times(times: Int64s, before: int, k: Int32s, distinct: Int64s, counts: Int64s) -> int:
    """The number of distinct times; 0 if a time is less than the one before.

    Args:
        times: int64 [n], n > 0.
        before: how many earlier events have the first time.
        k: int32 [n]: the number of earlier events with the same time.
        distinct: int64 [n]: the distinct times.
        counts: int64 [n]: the events at each of them.
    """
    last = times[0]
    size, own, number = 0, 0, before
    for i in range(len(times)):
        time = times[i]
        if time < last:
            return 0
        if time > last:
            distinct[size], counts[size] = last, own
            size, own, number, last = size + 1, 0, 0, time
        k[i] = number
        own += 1
        number += 1
    distinct[size], counts[size] = last, own
    return size + 1
