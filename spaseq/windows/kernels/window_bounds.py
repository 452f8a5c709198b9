"""Where windows begin among rows in order of time."""

from __future__ import annotations

from spaseq.compiled.arrays import Int64s
from spaseq.compiled.decorators import lean_kernel


@lean_kernel
def first_rows(times: Int64s, bounds: Int64s, place: int, found: Int64s) -> None:
    """Write the place of the first time that is not below each bound.

    Args:
        times: int64 [n], ascending.
        bounds: int64 [t], ascending.
        place: a place that is not behind the first bound's.
        found: int64 [t].
    """
    for bound in range(len(bounds)):
        while place < len(times) and times[place] < bounds[bound]:
            place += 1
        found[bound] = place
