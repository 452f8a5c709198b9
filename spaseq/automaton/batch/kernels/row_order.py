"""Tests whether the rows of a batch are in order."""

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
