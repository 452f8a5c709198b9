"""The chains of rows of one partition that have the steps of a sequence in their order."""

from __future__ import annotations

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel

NEVER = -(2**62)
"""A time (ms) before all others."""


@lean_kernel
def note_starts(
    time: Int64s,
    instant: Int64s,
    gpm: Int32s,
    place: Int64s,
    steps: Int32s,
    length: Int64s,
    starts: Int64s,
    reached: Int64s,
    found: Int64s,
) -> None:
    """For each row and step, find when a chain of rows for the steps so far begins at the latest.

    Each row of a chain has a later instant than the one before.

    Args:
        time: [n] in ms.
        instant: [n] the number of each row's instant, ascending.
        gpm: [n] the GPM of each row.
        place: [n] the partition of each row.
        steps: [s] the GPM of each step, in the order of the sequence.
        length: [n] the most milliseconds from the first step to the last, in a row's partition.
        starts: [partitions, steps, 2] scratch, filled with `NEVER`: the latest start of a chain up
            to a step, and the latest one before the instant in `reached`.
        reached: [partitions, steps] scratch, filled with `NEVER`: the instant of the latest start.
        found: [n, steps] output, filled with `NEVER`: the start (ms) of the chain that ends here.
    """
    for row in range(len(time)):
        own, now = place[row], instant[row]
        for step in range(len(steps)):
            if steps[step] != gpm[row]:
                continue
            start = time[row]
            if step > 0:
                is_before = reached[own, step - 1] < now
                start = starts[own, step - 1, 0 if is_before else 1]
            if start == NEVER or time[row] - start > length[row]:
                continue
            found[row, step] = start
            if reached[own, step] < now:
                starts[own, step, 1] = starts[own, step, 0]
                reached[own, step] = now
            starts[own, step, 0] = max(starts[own, step, 0], start)
