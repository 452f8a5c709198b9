"""Sets of partial matches that share their parts, a batch of solutions at a time.

The nodes are those of `evaluators.compact_set` (CORE, PVLDB 15:9): an *output* node is a solution
taken after the matches of `before`, with a set `rest` that it carries along; a *union* node stands
for the matches of two others. Nodes lie in a ring whose size is a power of two: ids grow for ever,
and a node's place is its id modulo the size (compare the ring arena of CORE, 4.4). Children are
older than parents, and a node never changes. What is older than the window is below `base`, or
starts below the window's begin. A batch only adds nodes, so that the matches that end in it can be
read afterwards.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Array, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    assume,
    device_function,
    inlined_device_function,
    lean_kernel,
)

NIL = -1
EVER = -(2**63)

# Columns of `nodes`; `ROW` is the number of a solution, or UNION.
BEFORE, REST, START, ROW = range(4)
NODE_COLUMNS = 4
UNION = -1

# Columns of `cursor`: the id of the next node and of the first that is kept, entries that are free;
# roots found so far; where an interrupted call goes on; how many more places the full array needs,
# or which move is unknown.
NEXT, BASE, FREE, ROOTS, AT, NEED, STATE, SEEN = range(8)
CURSOR = 8

DONE, NODES_FULL, ROOTS_FULL, LISTS_FULL, ENTRIES_FULL, MOVE_UNKNOWN, SET_UNKNOWN = range(7)

# What `enumerate_matches` returns beside DONE, and the columns of its cursor.
STACK_FULL, FOUND_FULL = 1, 2
READING = 5

# Columns of `step`, of a chain.
GPM, ENDS, STRICT, ACCEPTS = range(4)

# Columns of `touched`, of a chain: a step, whether it takes the solution (and is not the last, or
# is), whether the wait for it ends.
STEP, GOES_ON, COMPLETES, CLOSES = range(4)

# Columns of `heads`: the newest node of a list, and its maximum start.
NODE, BEGIN = range(2)


@inlined_device_function
def start_of(nodes: Int64s, base: int, node: int) -> int:
    """The maximum start of a node, EVER if it is forgotten."""
    if node < base:
        return EVER
    start: int = nodes[node & (nodes.shape[0] - 1), START]
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
    touches: Int64s,
    touched: Int64s,
    heads: Int64s,
    latest: Int64s,
    nodes: Int64s,
    roots: Int64s,
    cursor: Int64s,
) -> int:
    """Work off n solutions with a plain sequence of steps.

    Each step has one list of the partial matches that end in it: a solution of the next step
    becomes one node, which holds the list of the step before as it is now, and as `rest` the older
    ones of its own step. What a solution that is alone at its instant does is written down without
    asking whether it is taken, and counts only if it is: which GPM comes next cannot be foreseen,
    and a branch on it costs more than the work.

    Args:
        slot, gpm, time_ms, k, start, lowest, ordinal, number: as `kernels.runs.advance` takes
            them; `ordinal` counts the instants of the partition.
        step: [steps, 4] the GPM that a step takes, the GPMs (as bits) that end the wait for it,
            whether any instant does, whether it is the last.
        touches [gpms + 1], touched [, 4]: what a solution of each GPM does to which steps, last
            first; flags are 0 or 1.
        heads: [slots, steps + 1, 2] the list that each step continues, and that of the last one,
            which stays empty. The first step continues a list without nodes that has just begun.
        latest: [slots] ordinal of the latest instant.
        nodes: [N, NODE_COLUMNS]. roots: [R, 2] nodes of matches that end, with the row.
        cursor: see its columns.

    Returns: DONE, or which array is full.
    """
    n = len(slot)
    assume(step.shape[1] == 4)
    assume(touched.shape[1] == 4)
    assume(heads.shape[2] == 2)
    assume(nodes.shape[1] == NODE_COLUMNS)
    assume(roots.shape[1] == 2)
    alone, full = cursor[AT], DONE
    while full == DONE and cursor[AT] < n:
        if alone <= cursor[AT]:
            alone = _alone_until(slot, gpm, time_ms, k, as_nonnegative(cursor[AT]))
        if alone <= cursor[AT]:
            full = _take_instant(
                slot, gpm, time_ms, k, start, lowest, ordinal, number,
                step, heads, latest, nodes, roots, cursor,
            )  # fmt: skip
        else:
            full = _take_alone(
                slot, gpm, start, lowest, ordinal, alone, number,
                step, touches, touched, heads, latest, nodes, roots, cursor,
            )  # fmt: skip
    return full


@inlined_device_function
def _alone_until(slot: Int32s, gpm: Int32s, time_ms: Int64s, k: Int32s, first: int) -> int:
    """Where the solutions end, from `first` on, of which each is alone at its instant."""
    for i in range(first, len(slot)):
        at, after = as_nonnegative(i), as_nonnegative(i + 1)
        together = gpm[at] < 0
        if after < len(slot) and time_ms[at] == time_ms[after]:
            together |= slot[at] == slot[after] and k[at] == k[after]
        if together:
            return i
    return len(slot)


@device_function
def _missed(step: Int64s, heads: Int64s, here: int) -> None:
    """The partition has had instants without solutions of this key."""
    for s in range(1, len(step)):
        if step[s, STRICT]:
            heads[here, s, NODE], heads[here, s, BEGIN] = NIL, EVER


@inlined_device_function
def _take_alone(
    slot: Int32s,
    gpm: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    end: int,
    number: int,
    step: Int64s,
    touches: Int64s,
    touched: Int64s,
    heads: Int64s,
    latest: Int64s,
    nodes: Int64s,
    roots: Int64s,
    cursor: Int64s,
) -> int:
    """Work off solutions, each of them alone at its instant: up to `end`, or as many as there is
    room for, whatever they are."""
    first, node, found = (
        as_nonnegative(cursor[AT]),
        as_nonnegative(cursor[NEXT]),
        as_nonnegative(cursor[ROOTS]),
    )
    mask, steps, strict = nodes.shape[0] - 1, len(step), len(ordinal) > 0
    cursor[NEED] = steps
    nodes_room = (cursor[BASE] + nodes.shape[0] - node) // steps
    roots_room = (roots.shape[0] - found) // steps
    if nodes_room <= 0:
        return NODES_FULL
    if roots_room <= 0:
        return ROOTS_FULL
    end = min(end, first + nodes_room, first + roots_room)
    for row in range(first, end):
        i = as_nonnegative(row)
        here, g, floor = as_nonnegative(slot[i]), as_nonnegative(gpm[i]), lowest[i]
        if strict:
            if ordinal[i] > latest[here] + 1:
                _missed(step, heads, here)
            latest[here] = ordinal[i]
        heads[here, 0, BEGIN] = start[i]
        for t in range(as_nonnegative(touches[g]), touches[g + 1]):
            s = as_nonnegative(touched[as_nonnegative(t), STEP])
            before, begun = heads[here, s, NODE], heads[here, s, BEGIN]
            rest, rest_begun = heads[here, s + 1, NODE], heads[here, s + 1, BEGIN]
            place, alive = as_nonnegative(node & mask), begun >= floor
            nodes[place, BEFORE], nodes[place, REST] = before, rest
            nodes[place, START], nodes[place, ROW] = begun, number + i
            roots[found, 0], roots[found, 1] = node, i
            goes_on = alive & (touched[as_nonnegative(t), GOES_ON] != 0)
            completes = alive & (touched[as_nonnegative(t), COMPLETES] != 0)
            closes = touched[as_nonnegative(t), CLOSES] != 0
            heads[here, s + 1, NODE] = node if goes_on else rest
            heads[here, s + 1, BEGIN] = begun if goes_on else rest_begun
            heads[here, s, NODE] = NIL if closes else before
            heads[here, s, BEGIN] = EVER if closes else begun
            found = as_nonnegative(found + np.int64(completes))
            node = as_nonnegative(node + np.int64(goes_on | completes))
    cursor[NEXT], cursor[ROOTS], cursor[AT] = node, found, end
    return DONE


@device_function
def _take_instant(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    number: int,
    step: Int64s,
    heads: Int64s,
    latest: Int64s,
    nodes: Int64s,
    roots: Int64s,
    cursor: Int64s,
) -> int:
    """Work off the solutions of one instant."""
    n, steps, first = len(slot), step.shape[0], cursor[AT]
    node, found, mask = cursor[NEXT], cursor[ROOTS], nodes.shape[0] - 1
    here, floor = slot[first], lowest[first]
    end, seen = first, 0
    while (
        end < n
        and time_ms[end] == time_ms[first]
        and slot[end] == slot[first]
        and k[end] == k[first]
    ):
        if gpm[end] >= 0:
            seen |= 1 << gpm[end]
        end += 1
    cursor[NEED] = steps * (end - first)
    if node + cursor[NEED] > cursor[BASE] + nodes.shape[0]:
        return NODES_FULL
    if found + cursor[NEED] > roots.shape[0]:
        return ROOTS_FULL
    if len(ordinal) > 0:
        if ordinal[first] > latest[here] + 1:
            _missed(step, heads, here)
        latest[here] = ordinal[first]
    for s in range(steps - 1, -1, -1):
        takes = (seen >> step[s, GPM]) & 1
        before, begun = heads[here, s, NODE], heads[here, s, BEGIN]
        if takes and (s == 0 or begun >= floor):
            for row in range(first, end):
                if gpm[row] != step[s, GPM]:
                    continue
                place = node & mask
                nodes[place, BEFORE] = before
                nodes[place, START] = begun if s else start[row]
                nodes[place, ROW] = number + row
                nodes[place, REST] = heads[here, s + 1, NODE]
                if step[s, ACCEPTS]:
                    roots[found, 0], roots[found, 1] = node, row
                    found += 1
                else:
                    heads[here, s + 1, NODE] = node
                    heads[here, s + 1, BEGIN] = nodes[place, START]
                node += 1
        if s and (step[s, STRICT] or step[s, ENDS] & seen):
            heads[here, s, NODE], heads[here, s, BEGIN] = NIL, EVER
    cursor[NEXT], cursor[ROOTS], cursor[AT] = node, found, end
    return DONE


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
        stack [S, 2], path [P]: of the root that is being read: nodes to go on from, each with the
            places of `path` before it; what the match that is being read takes, the last first.
        found: the matches as numbers of solutions, one behind the other; ends [, 3]: where each
            ends, its start, and its root.
        cursor: [READING] root; places of `found` and `ends` in use; places of `stack` in use (0:
            the root has not been begun); matches of the root so far. The first and the last two say
            where it goes on if an array was full.

    Returns: DONE, or which is full: STACK_FULL (stack or path), FOUND_FULL (found or ends).
    """
    place, size, matches = cursor[0], cursor[1], cursor[2]
    todo, given = cursor[3], cursor[4]
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
                elif ends_here and (size + depth >= found.shape[0] or matches == ends.shape[0]):
                    full = FOUND_FULL
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
                        found[size + i] = path[depth - 1 - i]
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
    cursor[0], cursor[1], cursor[2] = place, size, matches
    cursor[3], cursor[4] = todo, given
    return full


@lean_kernel
def mark_reachable(nodes: Int64s, base: int, floor: int, mark: Array) -> None:
    """Spread `mark` [nodes kept] from parents to their children in the window that begins at
    `floor`."""
    for at in range(len(mark) - 1, -1, -1):
        if mark[at]:
            place = (at + base) & (nodes.shape[0] - 1)
            before, rest = nodes[place, BEFORE], nodes[place, REST]
            if before >= base:
                mark[before - base] = 1
            if start_of(nodes, base, rest) >= floor:
                mark[rest - base] = 1


@lean_kernel
def mark_taken(nodes: Int64s, first: int, end: int, number: int, taken: Array) -> None:
    """Set `taken` [n] for the solutions, numbered from `number` on, that some nodes hold."""
    for node in range(first, end):
        row = nodes[node & (nodes.shape[0] - 1), ROW]
        if row != UNION:
            taken[row - number] = 1
