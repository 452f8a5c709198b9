"""SELECT NEXT and LAST on a compact set, without enumerating other matches.

It is `sets.python.preferred` for the nodes of the kernels (docs/meaning.md#selection). The
greatest match of an output node adds the position of its row to the greatest match of the node
before. The greatest match of a union is the greater of its two. So each node of the window is
visited once for each instant at which matches end. A set of positions is a linked list, the last
position first.
"""

from __future__ import annotations

from spaseq.automaton.sets.kernels.set_arrays import (
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

# Columns of `scratch`, by node. REACHED: the group of roots that reaches it. WANTED: the group
# whose greatest matches use it. OWN: its greatest set without its `rest`. BEST: its greatest set.
# BRANCHES: which of the two children lead to BEST, as bits. COPY: the node's copy.
REACHED, WANTED, OWN, BEST, BRANCHES, COPY = range(6)
SCRATCH = 6
THROUGH, BESIDE = 1, 2

# Columns of `sets`: a position, and the set of the earlier positions.
POSITION, EARLIER = range(2)
NOTHING = 0

# Columns of `cursor`: the next group, nodes and roots copied so far, how many nodes are needed.
GROUP, COPIES, CHOSEN, MORE = range(4)


@inlined_device_function
def _order(sets: Int64s, first: int, second: int, smallest_decides: bool) -> int:
    """1, 0 or -1: the first set is greater, equal, less.

    The smallest (or largest) position in exactly one of the two sets makes that set the greater.
    """
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
    """Spread REACHED from the nodes in `lowest..top` to their children in the window.

    Returns (the lowest node reached, the number of nodes reached).
    """
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
    """Find the greatest sets of the nodes that a group reaches, children first."""
    mask, size = nodes.shape[0] - 1, 1
    for at in range(lowest, top + 1):
        if scratch[at, REACHED] != group:
            continue
        place = (at + base) & mask
        before, rest = nodes[place, BEFORE], nodes[place, REST]
        own = NOTHING if before < base else scratch[before - base, BEST]
        # Solutions of one event are adjacent, and have one position.
        if nodes[place, ROW] != UNION and (own == NOTHING or sets[own, POSITION] != rank[at]):
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
    """Copy the nodes of the greatest matches; returns the new number of copies."""
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
    """Copy the greatest matches of each of G groups of roots into new nodes.

    Args:
        nodes: [N, NODE_COLUMNS] as in `set_arrays`; `base` is the id of the first node kept.
        roots: [R, 2] node, row; one group after the other. ends: [G] the end of each group.
        lowest: [rows] the begin of the window that ends at each row.
        rank: [used] by node, the rank of its row in the order of positions.
        smallest_decides: True for NEXT, False for LAST.
        scratch: [used, SCRATCH] REACHED and WANTED are below 0 at first.
        sets: [used + 1, 2] the first set is below all positions.
        copies: [C, NODE_COLUMNS] the chosen nodes, with ids from 0.
        chosen: [R, 2] their roots, with the rows. chosen_ends: [G] the end of each group.
        cursor: [4] see its columns; all zero at first.

    Returns: DONE, or NODES_FULL.
    """
    copied, roots_chosen = cursor[COPIES], cursor[CHOSEN]
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
            cursor[GROUP], cursor[COPIES], cursor[CHOSEN] = group, copied, roots_chosen
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
                chosen[roots_chosen, 0], chosen[roots_chosen, 1] = scratch[at, COPY], roots[i, 1]
                roots_chosen += 1
        chosen_ends[group] = roots_chosen
    cursor[GROUP], cursor[COPIES], cursor[CHOSEN] = len(ends), copied, roots_chosen
    return DONE
