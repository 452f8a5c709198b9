"""Solutions of one event that are of one member of a family."""

from __future__ import annotations

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel


@lean_kernel
def some_repeats(event: Int64s, member: Int32s, last: Int64s) -> bool:
    """Whether a member has several solutions on an event.

    Args:
        event: [n] the event of each solution, not negative; equal ones stand together.
        member: [n] the number of the member of each solution.
        last: [members] scratch, -1.
    """
    for i in range(len(event)):
        if last[member[i]] == event[i]:
            return True
        last[member[i]] = event[i]
    return False
