"""Rows of the parts of an acyclic join enter and leave, and find the rows that they join with.

The edges of the join tree have numbers (Yannakakis, VLDB 1981). For each edge, either part has a
list of its rows in the window by the values of their common variables. A row that enters walks the
tree through these lists, so each combination is found once: when the last of its rows enters.
"""

from __future__ import annotations

from spaseq.compiled.arrays import Int8s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, lean_kernel
from spaseq.windows.kernels.window_bounds import FIRST, WAIT


@lean_kernel
def joined(
    moved: Int64s,
    most: int,
    partitions: Int64s,
    closes: tuple[Int64s, Int64s, Int64s],
    base: int,
    rows: tuple[Int8s, Int32s, Int64s, Int64s],
    lists: tuple[Int64s, Int64s],
    tree: tuple[Int64s, Int64s],
    work: tuple[Int64s, Int64s],
    found: tuple[Int64s, Int64s],
) -> int:
    """The number of combinations that have come.

    It returns early if a row has more combinations than there is room for, or if more than `most`
    begin at one window event; then the row has not entered, and `moved[1]` says how many it has.

    Args:
        moved: int64 [3]: the next window event, the room that is needed to go on, and the
            combinations that have begun at the window event. They move.
        partitions: int64 [PLACES, p], the rows of partitions (`window_bounds`). They move.
        closes: (partition, enter, leave) int64 [t]: rows of the partition before these have
            entered, and left, at each window event.
        base: the absolute number of the row at place 0 of `rows`.
        rows: (part int8 [n], -1 for none; number of the values of each edge's variables int32
            [edges, n]; next row of each list int64 [edges, n], absolute; next row of the partition
            int64 [n]).
        lists: (head, tail) int64 [2 * edges, values] of the lists of the parts of each edge,
            absolute numbers of rows; -1 for none.
        tree: (parts of each edge int64 [edges, 2]; the walk from each part int64
            [parts, edges, 4]: an edge, the part where it begins, the part where it ends, and the
            number of that one's list).
        work: int64 [parts], int64 [parts]: room to work in.
        found: (window event int64 [m], rows of its parts int64 [m, parts]).
    """
    part, keys, following, behind = rows
    partition, enter, leave = closes
    head, tail = lists
    ends, walks = tree
    cursor, chosen = work
    made = 0
    moved[1] = 0
    while moved[0] < len(enter):
        event = moved[0]
        p = partition[event]
        first, wait = partitions[FIRST, p], partitions[WAIT, p]
        while first >= 0 and first < leave[event]:
            place = first - base
            entered = first != wait
            first = behind[place]
            if not entered:
                wait = first
                continue
            for edge in range(len(ends)):
                for side in range(2):
                    if ends[edge, side] == part[place]:
                        own, value = 2 * edge + side, keys[edge, place]
                        head[own, value] = following[edge, place]
                        if head[own, value] < 0:
                            tail[own, value] = -1
        partitions[FIRST, p] = first
        while wait >= 0 and wait < enter[event]:
            place = wait - base
            if part[place] >= 0:
                after = _combined(
                    made, event, wait, base, part[place], keys, following, head, walks,
                    cursor, chosen, found,
                )  # fmt: skip
                if after > len(found[0]) or moved[2] + after - made > most:
                    moved[1] = after - made
                    partitions[WAIT, p] = wait
                    return made
                moved[2] += after - made
                made = after
                for edge in range(len(ends)):
                    for side in range(2):
                        if ends[edge, side] == part[place]:
                            own, value = 2 * edge + side, keys[edge, place]
                            following[edge, place] = -1
                            if tail[own, value] < 0:
                                head[own, value] = wait
                            else:
                                following[edge, tail[own, value] - base] = wait
                            tail[own, value] = wait
            wait = behind[place]
        partitions[WAIT, p] = wait
        moved[0] += 1
        moved[2] = 0
    return made


@device_function
def _combined(
    made: int,
    event: int,
    row: int,
    base: int,
    first: int,
    keys: Int32s,
    following: Int64s,
    head: Int64s,
    walks: Int64s,
    cursor: Int64s,
    chosen: Int64s,
    found: tuple[Int64s, Int64s],
) -> int:
    """Write the combinations of a row, as far as there is room; their number, after `made`."""
    steps = walks.shape[1]
    chosen[first] = row
    depth = 0
    if steps > 0:
        cursor[0] = head[walks[first, 0, 3], keys[walks[first, 0, 0], row - base]]
    while depth >= 0:
        if depth < steps:
            other = cursor[depth]
            if other < 0:
                depth -= 1
                continue
            cursor[depth] = following[walks[first, depth, 0], other - base]
            chosen[walks[first, depth, 2]] = other
        if depth + 1 < steps:
            depth += 1
            edge = walks[first, depth, 0]
            value = keys[edge, chosen[walks[first, depth, 1]] - base]
            cursor[depth] = head[walks[first, depth, 3], value]
            continue
        if made < len(found[0]):
            found[0][made] = event
            for i in range(len(chosen)):
                found[1][made, i] = chosen[i]
        made += 1
        if steps == 0:
            depth = -1
    return made
