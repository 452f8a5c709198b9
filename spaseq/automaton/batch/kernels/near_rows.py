"""Finds rows with a solution of each required GPM near them in time, in their own partition."""

from __future__ import annotations

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel

FAR = 2**61
"""A time (ms) that is near no row's."""


@lean_kernel
def note_near(
    order: Int64s,
    time: Int64s,
    step: Int32s,
    place: Int64s,
    kept: Bools,
    last: Int64s,
    length: int,
    near: Int64s,
) -> None:
    """Add to `near` the required GPMs that have a solution shortly before a row, or at its time.

    Args:
        order: [n] the rows by time. Descending order finds solutions after a row.
        time: [n] in ms.
        step: [n] the number of a required GPM, below 62, or -1.
        place: [n] the partition of each row.
        kept: [n] the rows that count.
        last: [partitions, required GPMs] scratch, filled with times that are `FAR`.
        length: the most milliseconds between two rows that are near each other.
        near: [n] output; bit i stands for required GPM i.
    """
    required = last.shape[1]
    for i in range(len(order)):
        row = order[i]
        if not kept[row]:
            continue
        if step[row] >= 0:
            last[place[row], step[row]] = time[row]
        for j in range(required):
            if abs(time[row] - last[place[row], j]) <= length:
                near[row] |= 1 << j
