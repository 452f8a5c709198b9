"""Whether rows of one partition have the steps of a sequence in their order, within a window."""

from __future__ import annotations

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel

NEVER = -(2**62)
"""A time (ms) before all windows."""


@lean_kernel
def are_in_order(
    time: Int64s,
    instant: Int64s,
    gpm: Int32s,
    place: Int64s,
    steps: Int32s,
    length: int,
    starts: Int64s,
    reached: Int64s,
) -> bool:
    """Whether rows of one partition take all steps, each at a later instant than the one before.

    Args:
        time: [n] in ms.
        instant: [n] the number of each row's instant, ascending.
        gpm: [n] the GPM of each row.
        place: [n] the partition of each row.
        steps: [s] the GPM of each step, in the order of the sequence.
        length: the most milliseconds from the first step to the last.
        starts: [partitions, steps, 2] scratch, filled with `NEVER`: the latest start of a row of
            solutions up to a step, and the latest one before the instant in `reached`.
        reached: [partitions, steps] scratch, filled with -1: the instant of the latest start.
    """
    count = len(steps)
    for row in range(len(time)):
        own, now = place[row], instant[row]
        for step in range(count):
            if steps[step] != gpm[row]:
                continue
            start = time[row]
            if step > 0:
                is_before = reached[own, step - 1] < now
                start = starts[own, step - 1, 0 if is_before else 1]
            if time[row] - start > length:
                continue
            if step == count - 1:
                return True
            if reached[own, step] < now:
                starts[own, step, 1] = starts[own, step, 0]
                reached[own, step] = now
            starts[own, step, 0] = max(starts[own, step, 0], start)
    return False
