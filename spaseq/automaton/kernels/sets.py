"""Sets of partial matches that share their parts, a batch of solutions at a time.

The nodes are those of `evaluators.compact_set` (CORE, PVLDB 15:9): an *output* node is a solution
taken after the matches of `before`, with a set `rest` that it carries along; a *union* node stands
for the matches of two others. A node's id is its position plus `base`; ids grow for ever, children
are older than parents, and a node never changes. What is older than the window is below `base`, or
starts below the window's begin. A batch only adds nodes, so that the matches that end in it can be
read afterwards.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.kernels_cache import inlined, lean_kernel

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Array: TypeAlias = npt.NDArray[Any]

NIL = -1
EVER = -(2**63)

# Columns of `nodes`; `ROW` is the number of a solution, or UNION.
BEFORE, REST, START, ROW = range(4)
NODE_COLUMNS = 4
UNION = -1

# Columns of `cursor`: nodes in use, the id of the first, top of the pool; roots found so far; where
# an interrupted call goes on; how many more places the full array needs, or which move is unknown.
USED, BASE, TOP, ROOTS, AT, NEED, STATE, SEEN = range(8)
CURSOR = 8

DONE, NODES_FULL, ROOTS_FULL, LISTS_FULL, POOL_FULL, MOVE_UNKNOWN, SET_UNKNOWN = range(7)

# Columns of `step`, of a chain.
GPM, ENDS, STRICT, ACCEPTS = range(4)


@inlined
def start_of(nodes: Int64s, base: int, node: int) -> int:
    """The maximum start of a node, EVER if it is forgotten."""
    if node < base:
        return EVER
    start: int = nodes[node - base, START]
    return start


@lean_kernel
def advance_chain(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    number: int,
    step: Int64s,
    touches: Int32s,
    touching: Int32s,
    heads: Int64s,
    latest: Int64s,
    nodes: Int64s,
    roots: Int64s,
    cursor: Int64s,
) -> int:
    """Work off n solutions with a plain sequence of steps.

    Each step has one list of the partial matches that end in it: a solution of the next step
    becomes one node, which holds the list of the step before as it is now, and as `rest` the older
    ones of its own step.

    Args:
        slot, gpm, time_ms, k, start, lowest, ordinal, number: as `kernels.runs.advance` takes
            them; `ordinal` counts the instants of the partition.
        step: [steps, 4] the GPM that a step takes, the GPMs (as bits) that end the wait for it,
            whether any instant does, whether it is the last.
        touches [gpms + 1], touching: the steps that a solution of each GPM touches, last first.
        heads: [slots, steps] the newest node of each step.
        latest: [slots] ordinal of the latest instant.
        nodes: [N, NODE_COLUMNS]. roots: [R, 2] nodes of matches that end, with the row.
        cursor: see its columns.

    Returns: DONE, or which array is full.
    """
    n, steps, strict = len(slot), step.shape[0], len(ordinal) > 0
    used, base, found = cursor[USED], cursor[BASE], cursor[ROOTS]
    capacity, most = nodes.shape[0], roots.shape[0]
    first, full = cursor[AT], DONE
    while first < n:
        here, floor = slot[first], lowest[first]
        end = first + 1
        while (
            end < n and slot[end] == here and time_ms[end] == time_ms[first] and k[end] == k[first]
        ):
            end += 1
        if used + steps * (end - first) > capacity:
            full, cursor[NEED] = NODES_FULL, steps * (end - first)
            break
        if found + steps * (end - first) > most:
            full, cursor[NEED] = ROOTS_FULL, steps * (end - first)
            break
        if strict:
            if ordinal[first] > latest[here] + 1:  # instants without solutions of this key
                for s in range(1, steps):
                    if step[s, STRICT]:
                        heads[here, s - 1] = NIL
            latest[here] = ordinal[first]
        if end - first == 1 and gpm[first] >= 0:
            g = gpm[first]
            for t in range(touches[g], touches[g + 1]):
                s = touching[t]
                before = heads[here, s - 1] if s else NIL
                if step[s, GPM] == g and (s == 0 or start_of(nodes, base, before) >= floor):
                    nodes[used, BEFORE] = before
                    nodes[used, START] = nodes[before - base, START] if s else start[first]
                    nodes[used, ROW] = number + first
                    if step[s, ACCEPTS]:
                        nodes[used, REST] = NIL
                        roots[found, 0], roots[found, 1] = used + base, first
                        found += 1
                    else:
                        nodes[used, REST] = heads[here, s]
                        heads[here, s] = used + base
                    used += 1
                if s and (step[s, STRICT] or (step[s, ENDS] >> g) & 1):
                    heads[here, s - 1] = NIL
        else:
            seen = 0
            for row in range(first, end):
                if gpm[row] >= 0:
                    seen |= 1 << gpm[row]
            for s in range(steps - 1, -1, -1):
                before = heads[here, s - 1] if s else NIL
                if (seen >> step[s, GPM]) & 1 and (
                    s == 0 or start_of(nodes, base, before) >= floor
                ):
                    for row in range(first, end):
                        if gpm[row] != step[s, GPM]:
                            continue
                        nodes[used, BEFORE] = before
                        nodes[used, START] = nodes[before - base, START] if s else start[row]
                        nodes[used, ROW] = number + row
                        if step[s, ACCEPTS]:
                            nodes[used, REST] = NIL
                            roots[found, 0], roots[found, 1] = used + base, row
                            found += 1
                        else:
                            nodes[used, REST] = heads[here, s]
                            heads[here, s] = used + base
                        used += 1
                if s and (step[s, STRICT] or step[s, ENDS] & seen):
                    heads[here, s - 1] = NIL
        first = end
    cursor[USED], cursor[ROOTS], cursor[AT] = used, found, first
    return full


# --- reading ------------------------------------------------------------------------------------


@lean_kernel
def enumerate_matches(
    nodes: Int64s,
    base: int,
    roots: Int64s,
    lowest: Int64s,
    limit: int,
    stack: Int64s,
    path: Int64s,
    found: Int64s,
    ends: Int64s,
    cursor: Int64s,
) -> int:
    """The matches of some roots that lie in the window, at most `limit` of each (if it is not
    negative); the delay between two is linear in their size.

    Args:
        roots: [R, 2] node, row. lowest: [rows] the begin of the window that ends there.
        stack [S, 2], path [P]: scratch.
        found: the matches as numbers of solutions, one behind the other; ends [, 3]: where each
            ends, its start, and its root.
        cursor: [4] root, places of `found` and `ends` in use, matches of the root so far (where it
            goes on if an array was full: the root is begun again).

    Returns: 0, or which is full: 1 stack or path, 2 found or ends.
    """
    place, size, matches = cursor[0], cursor[1], cursor[2]
    full = 0
    while place < roots.shape[0]:
        floor = lowest[roots[place, 1]]
        begin_size, begin_matches, given = size, matches, 0
        todo = 0
        if start_of(nodes, base, roots[place, 0]) >= floor:
            stack[0, 0], stack[0, 1] = roots[place, 0], 0
            todo = 1
        while todo and full == 0:
            todo -= 1
            node, depth = stack[todo, 0], stack[todo, 1]
            while True:
                at = node - base
                before, rest, row = nodes[at, BEFORE], nodes[at, REST], nodes[at, ROW]
                if start_of(nodes, base, rest) >= floor:
                    if todo == stack.shape[0]:
                        full = 1
                        break
                    stack[todo, 0], stack[todo, 1] = rest, depth
                    todo += 1
                if row != UNION:
                    if depth == path.shape[0]:
                        full = 1
                        break
                    path[depth] = row
                    depth += 1
                    if before == NIL:
                        if size + depth > found.shape[0] or matches == ends.shape[0]:
                            full = 2
                            break
                        for i in range(depth):
                            found[size + i] = path[depth - 1 - i]
                        size += depth
                        ends[matches, 0], ends[matches, 1] = size, nodes[at, START]
                        ends[matches, 2] = place
                        matches += 1
                        given += 1
                        break
                node = before
            if given == limit:
                break
        if full:
            size, matches = begin_size, begin_matches
            break
        place += 1
    cursor[0], cursor[1], cursor[2] = place, size, matches
    return full


@lean_kernel
def mark_reachable(nodes: Int64s, base: int, floor: int, mark: Array) -> None:
    """Spread `mark` [nodes] from parents to their children in the window that begins at `floor`."""
    for at in range(len(mark) - 1, -1, -1):
        if mark[at]:
            before, rest = nodes[at, BEFORE], nodes[at, REST]
            if before >= base:
                mark[before - base] = 1
            if start_of(nodes, base, rest) >= floor:
                mark[rest - base] = 1
