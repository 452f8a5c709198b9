"""Enumeration of a compact set with a delay that is linear in each match (CORE, Theorem 2)."""

from __future__ import annotations

from spaseq.automaton.sets.kernels.set_arrays import (
    BEFORE,
    DONE,
    NIL,
    REST,
    ROW,
    START,
    UNION,
    start_of,
)
from spaseq.compiled.arrays import Int64s
from spaseq.compiled.decorators import lean_kernel

# Return codes beside DONE.
STACK_FULL, MATCHES_FULL = 1, 2

# Columns of `cursor`. ROOT: the root to read. USED, MATCHES: places of `rows` and `ends` in use.
# DEPTH: places of `stack` in use, 0 if the root has not begun. GIVEN: matches of the root so far.
# ROOT, DEPTH and GIVEN say where to continue if an array was full.
ROOT, USED, MATCHES, DEPTH, GIVEN = range(5)
CURSOR = 5


@lean_kernel
def enumerate_matches(
    nodes: Int64s,
    base: int,
    roots: Int64s,
    lowest: Int64s,
    limit: int,
    stack: Int64s,
    path: Int64s,
    rows: Int64s,
    ends: Int64s,
    cursor: Int64s,
) -> int:
    """Write the matches of some roots that lie in the window, as row numbers.

    Args:
        nodes: [N, NODE_COLUMNS] as in `set_arrays`; `base` is the id of the first node kept.
        roots: [R, 2] node, row. lowest: [rows] the begin of the window that ends at each row.
        limit: at most this many matches of each root, if it is not negative.
        stack: [S, 2] nodes to continue from, each with the length of the path before it.
        path: [P] the row numbers of the current match, the last first.
        rows: the row numbers of the matches, one match after the other.
        ends: [M, 3] by match: the place in `rows` behind it, its start, its root.
        cursor: [CURSOR] see its columns.

    Returns: DONE, STACK_FULL (`stack` or `path`) or MATCHES_FULL (`rows` or `ends`).
    """
    place, size, matches = cursor[ROOT], cursor[USED], cursor[MATCHES]
    todo, given = cursor[DEPTH], cursor[GIVEN]
    full = DONE
    while place < roots.shape[0]:
        floor = lowest[roots[place, 1]]
        if todo == 0 and start_of(nodes, base, roots[place, 0]) >= floor:
            stack[0, 0], stack[0, 1] = roots[place, 0], 0
            todo, given = 1, 0
        while todo:
            todo -= 1
            node, depth = stack[todo, 0], stack[todo, 1]
            while True:
                at = node & (nodes.shape[0] - 1)
                before, rest, row = nodes[at, BEFORE], nodes[at, REST], nodes[at, ROW]
                ends_here = row != UNION and before == NIL
                if todo + 1 >= stack.shape[0] or depth == path.shape[0]:
                    full = STACK_FULL
                elif ends_here and (size + depth >= rows.shape[0] or matches == ends.shape[0]):
                    full = MATCHES_FULL
                if full != DONE:
                    stack[todo, 0], stack[todo, 1] = node, depth
                    todo += 1
                    break
                if start_of(nodes, base, rest) >= floor:
                    stack[todo, 0], stack[todo, 1] = rest, depth
                    todo += 1
                if row != UNION:
                    path[depth] = row
                    depth += 1
                if ends_here:
                    for i in range(depth):
                        rows[size + i] = path[depth - 1 - i]
                    size += depth
                    ends[matches, 0], ends[matches, 1] = size, nodes[at, START]
                    ends[matches, 2] = place
                    matches += 1
                    given += 1
                    break
                node = before
            if full != DONE:
                break
            if given == limit:
                todo = 0
        if full != DONE:
            break
        place += 1
    cursor[ROOT], cursor[USED], cursor[MATCHES] = place, size, matches
    cursor[DEPTH], cursor[GIVEN] = todo, given
    return full
