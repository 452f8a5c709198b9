"""The starts of windows among rows in order of time."""

from __future__ import annotations

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.compiled.decorators import lean_kernel


@lean_kernel
def windows_of_events(
    times: Int64s,
    opens: Bools,
    row: int,
    length: int,
    leave: int,
    last: int,
    k: int,
    found: Int64s,
) -> int:
    """The number of events whose rows begin at a row or later, and the window of each of them.

    Args:
        times: int64 [n], ascending.
        opens: bool [n]: whether a row is the first one of its event.
        row: where the events begin.
        length: how long the windows are (ms).
        leave: a row that is not behind the first one of the first window.
        last: the time (ms) of the event before, and
        k: its place among the events of that time.
        found: int64 [5, n - row]: for each event its time, its k, the row behind it, the first row
            that is no more than `length` before it, and the time of that row.
    """
    size = 0
    for place in range(row, len(times)):
        if not opens[place]:
            continue
        time = times[place]
        k = k + 1 if time == last else 0
        last = time
        while times[leave] < time - length:
            leave += 1
        if size > 0:
            found[2, size - 1] = place
        found[0, size], found[1, size] = time, k
        found[3, size], found[4, size] = leave, times[leave]
        size += 1
    if size > 0:
        found[2, size - 1] = len(times)
    return size
