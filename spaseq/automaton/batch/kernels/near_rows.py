"""Finds rows with a solution of each required GPM near them in time, in their own partition."""

from __future__ import annotations

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel

FAR = 2**61
"""A time (ms) that is near no row's."""


@lean_kernel
def note_near(
    direction: int,
    time: Int64s,
    step: Int32s,
    place: Int64s,
    last: Int64s,
    length: int,
    near: Int64s,
) -> None:
    """Add to `near` the required GPMs that have a solution shortly before or after a row.

    Args:
        direction: 1 for solutions before a row or at its place, -1 for those after it.
        time: [n] in ms, ascending in each partition.
        step: [n] the number of a required GPM, below 62, or -1.
        place: [n] the partition of each row.
        last: [partitions, required GPMs] scratch, filled with `FAR`.
        length: the most milliseconds between two rows of a partition that are near each other.
        near: [n] output; bit i stands for required GPM i.
    """
    required = last.shape[1]
    row = 0 if direction > 0 else len(time) - 1
    for _ in range(len(time)):
        if step[row] >= 0:
            last[place[row], step[row]] = time[row]
        for j in range(required):
            if abs(time[row] - last[place[row], j]) <= length:
                near[row] |= 1 << j
        row += direction
