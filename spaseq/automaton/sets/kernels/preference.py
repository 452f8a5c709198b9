"""SELECT NEXT and LAST on sets of matches: what `evaluators.preferred` does, on the kernels' nodes.

Among the matches of a node, the greatest (LANGUAGE section 5) is that of its solution's position
added to the greatest of the node before, or the greater of a union's two; so each node of the
window is looked at once for each instant at which matches end, and what is not selected is never
enumerated. A set of positions is a list, the last position first.
"""

from __future__ import annotations

from spaseq.automaton.sets.kernels.sets import (
    BEFORE,
    DONE,
    NIL,
    NODES_FULL,
    REST,
    ROW,
    START,
    UNION,
    start_of,
)
from spaseq.compiled.arrays import Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, lean_kernel

# Columns of `scratch`, by node: the group that reaches it and the group whose greatest matches do;
# the number of its own greatest set and that of its list; which of the two is that of the list (as
# bits); the node's copy.
REACHED, WANTED, OWN, BEST, BRANCHES, COPY = range(6)
SCRATCH = 6
THROUGH, BESIDE = 1, 2

# Columns of `sets`: a position, and the set of the earlier ones.
POSITION, EARLIER = range(2)
NOTHING = 0

# Columns of `cursor`: the group that is next, nodes and roots copied so far, nodes that are needed.
GROUP, COPIES, CHOSEN, MORE = range(4)


@inlined_device_function
def _order(sets: Int64s, first: int, second: int, smallest_decides: bool) -> int:
    """1, 0 or -1: the first set is greater, equal, less. The smallest (or largest) position in
    exactly one of the two decides, for the set that has it."""
    one, other, winner = first, second, 0
    while one != other:
        position, against = sets[one, POSITION], sets[other, POSITION]
        if position == against:
            one, other = sets[one, EARLIER], sets[other, EARLIER]
            continue
        if position > against:
            winner, one = 1, sets[one, EARLIER]
        else:
            winner, other = -1, sets[other, EARLIER]
        if not smallest_decides:
            break
    return winner


@device_function
def _reach(
    nodes: Int64s, base: int, floor: int, scratch: Int64s, lowest: int, top: int, group: int
) -> tuple[int, int]:
    """Spread REACHED from nodes in `lowest..top` to all that the matches in the window take; (the
    lowest of them, how many)."""
    mask, count, at = nodes.shape[0] - 1, 0, top
    while at >= lowest:
        if scratch[at, REACHED] == group:
            place = (at + base) & mask
            before, rest = nodes[place, BEFORE], nodes[place, REST]
            if before >= base:
                scratch[before - base, REACHED] = group
                lowest = min(lowest, before - base)
            if start_of(nodes, base, rest) >= floor:
                scratch[rest - base, REACHED] = group
                lowest = min(lowest, rest - base)
            count += 1
        at -= 1
    return lowest, count


@device_function
def _choose(
    nodes: Int64s,
    base: int,
    rank: Int64s,
    scratch: Int64s,
    sets: Int64s,
    lowest: int,
    top: int,
    group: int,
    smallest_decides: bool,
) -> None:
    """The greatest sets of the nodes that a group reaches, children first."""
    mask, size = nodes.shape[0] - 1, 1
    for at in range(lowest, top + 1):
        if scratch[at, REACHED] != group:
            continue
        place = (at + base) & mask
        before, rest = nodes[place, BEFORE], nodes[place, REST]
        own = NOTHING if before < base else scratch[before - base, BEST]
        if nodes[place, ROW] != UNION:
            sets[size, POSITION], sets[size, EARLIER] = rank[at], own
            own = size
            size += 1
        best, branches = own, THROUGH
        if rest >= base and scratch[rest - base, REACHED] == group:
            other = scratch[rest - base, BEST]
            order = _order(sets, own, other, smallest_decides)
            if order < 0:
                best, branches = other, BESIDE
            elif order == 0:
                branches = THROUGH | BESIDE
        scratch[at, OWN], scratch[at, BEST], scratch[at, BRANCHES] = own, best, branches


@device_function
def _copy(
    nodes: Int64s,
    base: int,
    scratch: Int64s,
    lowest: int,
    top: int,
    group: int,
    copies: Int64s,
    copied: int,
) -> int:
    """Copy the nodes of the greatest matches; how many copies there are then."""
    mask = nodes.shape[0] - 1
    for at in range(top, lowest - 1, -1):
        if scratch[at, WANTED] == group:
            place, branches = (at + base) & mask, scratch[at, BRANCHES]
            before, rest = nodes[place, BEFORE], nodes[place, REST]
            if branches & THROUGH and before >= base:
                scratch[before - base, WANTED] = group
            if branches & BESIDE:
                scratch[rest - base, WANTED] = group
    for at in range(lowest, top + 1):
        if scratch[at, WANTED] != group:
            continue
        place, branches = (at + base) & mask, scratch[at, BRANCHES]
        before, rest = nodes[place, BEFORE], nodes[place, REST]
        before = NIL if before < base else scratch[before - base, COPY]
        others = scratch[rest - base, COPY] if branches & BESIDE else NIL
        if not branches & THROUGH:
            scratch[at, COPY] = others
        elif nodes[place, ROW] == UNION and others == NIL:
            scratch[at, COPY] = before
        else:
            copies[copied, BEFORE], copies[copied, REST] = before, others
            copies[copied, START], copies[copied, ROW] = nodes[place, START], nodes[place, ROW]
            scratch[at, COPY] = copied
            copied += 1
    return copied


@lean_kernel
def prefer(
    nodes: Int64s,
    base: int,
    roots: Int64s,
    ends: Int64s,
    lowest: Int64s,
    rank: Int64s,
    smallest_decides: bool,
    scratch: Int64s,
    sets: Int64s,
    copies: Int64s,
    chosen: Int64s,
    chosen_ends: Int64s,
    cursor: Int64s,
) -> int:
    """The greatest matches of each of G groups of roots, as nodes of their own.

    Args:
        nodes [N, NODE_COLUMNS], base: as everywhere. roots [R, 2]: node, row; the groups one behind
            the other, `ends` [G] saying where each ends.
        lowest: [rows] the begin of the window that ends there.
        rank: [used] the place of each node's solution in the order of positions, by node.
        smallest_decides: NEXT, not LAST.
        scratch [used, SCRATCH], REACHED and WANTED below 0 at first; sets [used + 1, 2], the first
            of them below all positions.
        copies: [C, NODE_COLUMNS] the nodes chosen, ids from 0. chosen [R, 2]: their roots, with
            the rows; chosen_ends [G].
        cursor: see its columns; all zero at first.

    Returns: DONE, or NODES_FULL.
    """
    copied, found = cursor[COPIES], cursor[CHOSEN]
    for group in range(cursor[GROUP], len(ends)):
        first, end = ends[group - 1] if group else 0, ends[group]
        floor, bottom, top = lowest[roots[first, 1]], scratch.shape[0], -1
        for i in range(first, end):
            root = roots[i, 0]
            if start_of(nodes, base, root) >= floor:
                scratch[root - base, REACHED] = group
                bottom, top = min(bottom, root - base), max(top, root - base)
        bottom, count = _reach(nodes, base, floor, scratch, bottom, top, group)
        if copied + count > copies.shape[0]:
            cursor[GROUP], cursor[COPIES], cursor[CHOSEN] = group, copied, found
            cursor[MORE] = count
            return NODES_FULL
        _choose(nodes, base, rank, scratch, sets, bottom, top, group, smallest_decides)
        greatest = NOTHING
        for i in range(first, end):
            at = roots[i, 0] - base
            reached = at >= 0 and scratch[at, REACHED] == group
            if reached and _order(sets, scratch[at, BEST], greatest, smallest_decides) > 0:
                greatest = scratch[at, BEST]
        for i in range(first, end):
            at = roots[i, 0] - base
            reached = at >= 0 and scratch[at, REACHED] == group
            if reached and _order(sets, scratch[at, BEST], greatest, smallest_decides) == 0:
                scratch[at, WANTED] = group
        copied = _copy(nodes, base, scratch, bottom, top, group, copies, copied)
        for i in range(first, end):
            at = roots[i, 0] - base
            if at >= 0 and scratch[at, WANTED] == group:
                chosen[found, 0], chosen[found, 1] = scratch[at, COPY], roots[i, 1]
                found += 1
        chosen_ends[group] = found
    cursor[GROUP], cursor[COPIES], cursor[CHOSEN] = len(ends), copied, found
    return DONE
