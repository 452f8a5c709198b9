"""The rows of each partition as a list in order of time, and the windows among them.

The lists are a table int64 [PLACES, p] with a column for each partition. Rows have absolute
numbers; `base` is the number of the row at place 0 of columns of rows. A number of a row is -1 for
none.
"""

from __future__ import annotations

from typing import Final

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import lean_kernel

FIRST: Final = 0
"""The first row that has not left."""
WAIT: Final = 1
"""The first row that has not entered."""
TAIL: Final = 2
START: Final = 3
"""The first row of the open session."""
EVENTS: Final = 4
"""The number, in the partition, of the last event."""
EVENT: Final = 5
"""The number, in all partitions, of the last event."""
DONE: Final = 6
"""The last regular close that has come, by its number; or the time (ms) of the last event."""
PENDING: Final = 7
"""The last regular close that is to come; or the k of the last window event."""

LOOK: Final = 8
"""-1 before the first window event, 1 if all groups are to be visited at the next one, else 0."""

PLACES: Final = 9


@lean_kernel
def linked(
    lists: Int64s,
    row: int,
    end: int,
    base: int,
    partition: Int32s,
    following: Int64s,
    event: Int64s,
) -> None:
    """Put the rows from `row` on and before `end` behind the rows of their partitions.

    Args:
        partition: int32 [n].
        following: int64 [n], the next rows of their partitions.
        event: int64 [n], the numbers of events among all, which are replaced by numbers in each
            partition.
    """
    while row < end:
        place = row - base
        p = partition[place]
        following[place] = -1
        if lists[FIRST, p] < 0:
            lists[FIRST, p] = row
        else:
            following[lists[TAIL, p] - base] = row
        lists[TAIL, p] = row
        if lists[WAIT, p] < 0:
            lists[WAIT, p] = row
        if event[place] != lists[EVENT, p]:
            lists[EVENT, p] = event[place]
            lists[EVENTS, p] += 1
        event[place] = lists[EVENTS, p]
        row += 1


@lean_kernel
def sizes_of_windows(
    lists: Int64s,
    base: int,
    partition: Int64s,
    enter: Int64s,
    leave: Int64s,
    following: Int64s,
    event: Int64s,
    sizes: Int64s,
) -> int:
    """Write the numbers of events [t] in window events; how many rows enter and leave for them.

    Args:
        partition, enter, leave: int64 [t], partition by partition (`Closes`).
        following, event: int64 [n] as `linked` writes them.
        sizes: int64 [t].
    """
    moved, head, wait = 0, -1, -1
    for i in range(len(enter)):
        p = partition[i]
        if i == 0 or partition[i - 1] != p:
            head, wait = lists[FIRST, p], lists[WAIT, p]
        while head >= 0 and head < leave[i]:
            moved += 1
            if head == wait:
                wait = following[head - base]
            head = following[head - base]
        while wait >= 0 and wait < enter[i]:
            moved += 1
            wait = following[wait - base]
        sizes[i] = 0
        if head >= 0 and head != wait:
            last = lists[EVENTS, p] if wait < 0 else event[wait - base] - 1
            sizes[i] = last - event[head - base] + 1
    return moved


@lean_kernel
def windows_of_events(
    lists: Int64s,
    rows: Int64s,
    base: int,
    length: int,
    most: int,
    columns: tuple[Int64s, Int32s, Int64s, Int64s],
    found: Int64s,
) -> int:
    """The number of events of new rows; the window of each of them is written.

    Args:
        rows: int64 [r], the new rows, partition by partition.
        length: how long the windows are (ms).
        most: how many events they have.
        columns: (time, partition, following, event) [n].
        found: int64 [6, r]: for each event its partition, its time, its k, the time of the first
            row of its window, the number behind its last row, and that first row.
    """
    times, partition, following, event = columns
    size, p, last, leave = 0, -1, -1, -1
    for i in range(len(rows)):
        row, place = rows[i], rows[i] - base
        if partition[place] != p:
            p, last = partition[place], -1
            leave = lists[FIRST, p]
        if event[place] == last:
            found[4, size - 1] = row + 1
            continue
        last, time = event[place], times[place]
        k = lists[PENDING, p] + 1 if time == lists[DONE, p] else 0
        lists[DONE, p], lists[PENDING, p] = time, k
        while times[leave - base] < time - length or last - event[leave - base] >= most:
            leave = following[leave - base]
        found[0, size], found[1, size], found[2, size] = p, time, k
        found[3, size], found[4, size], found[5, size] = times[leave - base], row + 1, leave
        size += 1
    return size


@lean_kernel
def sessions(
    lists: Int64s,
    rows: Int64s,
    base: int,
    gap: int,
    until: int,
    end: int,
    columns: tuple[Int64s, Int32s],
    found: Int64s,
) -> int:
    """The number of sessions that new rows end, or the time `until` (ms); they are written.

    Args:
        rows: int64 [r], the new rows, partition by partition.
        end: the number behind the last row.
        columns: (time, partition) [n].
        found: int64 [6, r + p]: for each session as `windows_of_events` has it.
    """
    times, partition = columns
    size = 0
    for i in range(len(rows)):
        row = rows[i]
        p, time = partition[row - base], times[row - base]
        start = lists[START, p]
        if start >= 0 and time - lists[DONE, p] >= gap:
            found[0, size], found[1, size], found[2, size] = p, lists[DONE, p] + gap, -1
            found[3, size], found[4, size], found[5, size] = times[start - base], row, start
            size += 1
            start = -1
        if start < 0:
            lists[START, p] = row
        lists[DONE, p] = time
    for p in range(lists.shape[1]):
        start = lists[START, p]
        if start >= 0 and lists[DONE, p] + gap <= until:
            found[0, size], found[1, size], found[2, size] = p, lists[DONE, p] + gap, -1
            found[3, size], found[4, size], found[5, size] = times[start - base], end, start
            size += 1
            lists[START, p] = -1
    return size
