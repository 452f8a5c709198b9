"""The arrays of a compact set as all its kernels see them, and the kernels that mark nodes.

A compact set is CORE's tECS (PVLDB 15:9, 4.1): nodes that stand for sets of partial matches. An
*output* node appends one solution to the matches of the node `before`, and carries a set `rest`
along. A *union* node stands for the matches of two other nodes.

Nodes lie in a ring. Ids only grow, and a node's place is its id modulo the ring's size, a power of
two (compare the memory management of CORE, 4.4). Children are older than their parents, and a node
never changes. A node that has left the window is below `base`, or starts before the window. A batch
only adds nodes, so the matches that end in it can be read afterwards.
"""

from __future__ import annotations

from spaseq.compiled.arrays import Array, Float64s, Int64s
from spaseq.compiled.decorators import as_nonnegative, inlined_device_function, lean_kernel

NIL = -1
"""The id of no node."""

EVER = -(2**63)
"""A start before all others."""

# Columns of `nodes`: left child, right child, max(n) of CORE 4.1, and the number of the row, or
# UNION.
BEFORE, REST, START, ROW = range(4)
NODE_COLUMNS = 4
UNION = -1

# Columns of `cursor`. NEXT: id of the next node. BASE: id of the first node kept. FREE: free
# entries. ROOTS: roots so far. AT: the row to continue at. NEED: how many more places the full
# array needs. STATE, SEEN: the move that is unknown.
NEXT, BASE, FREE, ROOTS, AT, NEED, STATE, SEEN = range(8)
CURSOR = 8

# Return codes: the kernel is done, or the reason why it stopped.
DONE, NODES_FULL, ROOTS_FULL, LISTS_FULL, ENTRIES_FULL, MOVE_UNKNOWN, SET_UNKNOWN = range(7)


@inlined_device_function
def start_of(nodes: Int64s, base: int, node: int) -> int:
    """The maximum start of a node, EVER if the node is forgotten."""
    if node < base:
        return EVER
    start: int = nodes[node & (nodes.shape[0] - 1), START]
    return start


@inlined_device_function
def add_node(nodes: Int64s, node: int, before: int, rest: int, start: int, row: int) -> int:
    """Write a node with the id `node`; returns the id of the next node."""
    place = as_nonnegative(node & (nodes.shape[0] - 1))
    nodes[place, BEFORE], nodes[place, REST] = before, rest
    nodes[place, START], nodes[place, ROW] = start, row
    return node + 1


@lean_kernel
def mark_reachable(nodes: Int64s, base: int, floor: int, mark: Array) -> None:
    """Spread `mark` [nodes kept] from parents to children in the window that begins at `floor`."""
    for at in range(len(mark) - 1, -1, -1):
        if mark[at]:
            place = (at + base) & (nodes.shape[0] - 1)
            before, rest = nodes[place, BEFORE], nodes[place, REST]
            if before >= base:
                mark[before - base] = 1
            if start_of(nodes, base, rest) >= floor:
                mark[rest - base] = 1


@lean_kernel
def count_matches(nodes: Int64s, base: int, end: int, floor: int, counts: Float64s) -> None:
    """Count the partial matches of each node, in the window that begins at `floor`.

    `counts` [end - base] has the number for each node from `base` on; children come first.
    """
    for node in range(base, end):
        place = node & (nodes.shape[0] - 1)
        before, rest, count = nodes[place, BEFORE], nodes[place, REST], 0.0
        if before == NIL:
            count = 1.0
        elif start_of(nodes, base, before) >= floor:
            count = counts[before - base]
        if start_of(nodes, base, rest) >= floor:
            count += counts[rest - base]
        counts[node - base] = count


@lean_kernel
def mark_taken(nodes: Int64s, first: int, end: int, number: int, taken: Array) -> None:
    """Set `taken` [n] for the rows, numbered from `number`, in the nodes from `first` to `end`."""
    for node in range(first, end):
        row = nodes[node & (nodes.shape[0] - 1), ROW]
        if row != UNION:
            taken[row - number] = 1
