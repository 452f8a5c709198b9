"""The chain kernel: a plain sequence of steps over a whole batch of rows.

It is Algorithm 1 of CORE (PVLDB 15:9, 4.3) where every step is one state, so T has one list of
partial matches for each step, and no union is ever needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.automaton.sets.kernels.set_arrays import (
    AT,
    BASE,
    BEFORE,
    DONE,
    EVER,
    NEED,
    NEXT,
    NIL,
    NODE_COLUMNS,
    NODES_FULL,
    REST,
    ROOTS,
    ROOTS_FULL,
    ROW,
    START,
)
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    assume,
    device_function,
    inlined_device_function,
    lean_kernel,
)

# Columns of `step`: the GPM that the step takes, the GPMs (as bits) that end the wait for it,
# whether any instant ends it, whether the step is the last.
GPM, ENDS, STRICT, ACCEPTS = range(4)

# Columns of `touched`: a step; whether it takes the row and is not the last; whether it takes the
# row and is the last; whether the wait for it ends.
STEP, GOES_ON, COMPLETES, CLOSES = range(4)

# Columns of `heads`: the newest node of a list, and its maximum start.
NODE, BEGIN = range(2)


class BatchRows(NamedTuple):
    """The rows of a batch; see `advance_chain`."""

    slot: Int32s
    gpm: Int32s
    time_ms: Int64s
    k: Int32s
    start: Int64s
    lowest: Int64s
    ordinal: Int64s
    number: int


class ChainTables(NamedTuple):
    """The steps and the lists of their partial matches; see `advance_chain`."""

    step: Int64s
    touches: Int64s
    touched: Int64s
    heads: Int64s
    latest: Int64s
    consumes: int


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
    consumes: int,
    nodes: Int64s,
    roots: Int64s,
    cursor: Int64s,
) -> int:
    """Process n rows with a plain sequence of steps.

    Each step has one list, of the partial matches that end in it. A row of the next step becomes
    one node: its `before` is the list of the step before as it is now, and its `rest` is the older
    part of its own step's list.

    A row that is alone at its instant is written without a test whether a step takes it; it counts
    only if a step does. The next GPM is unpredictable, and a branch on it would cost more than the
    write.

    Args:
        slot, gpm, time_ms, k, start, lowest, ordinal, number: the columns of `OrderedRows`.
        step: [steps, 4] see its columns.
        touches [gpms + 1], touched [, 4]: the range of `touched` for each GPM; what a row of the
            GPM does to which steps, the last step first. Flags are 0 or 1.
        heads: [slots, steps + 1, 2] T in Algorithm 1: the list that each step continues. The first
            step continues a list without nodes that has just begun; the last list stays empty.
        latest: [slots] ordinal of the latest instant.
        consumes: 1 if the matches of an instant consume their slot's partial matches, else 0.
        nodes: [N, NODE_COLUMNS] the compact set. roots: [R, 2] nodes of complete matches, with the
            row that completed them.
        cursor: [CURSOR] see `set_arrays`.

    Returns: DONE, NODES_FULL or ROOTS_FULL.
    """
    n = len(slot)
    assume(step.shape[1] == 4)
    assume(touched.shape[1] == 4)
    assume(heads.shape[2] == 2)
    assume(nodes.shape[1] == NODE_COLUMNS)
    assume(roots.shape[1] == 2)
    rows = BatchRows(slot, gpm, time_ms, k, start, lowest, ordinal, number)
    chain = ChainTables(step, touches, touched, heads, latest, consumes)
    alone, full = cursor[AT], DONE
    while full == DONE and cursor[AT] < n:
        if consumes == 0 and alone <= cursor[AT]:
            alone = _alone_until(slot, gpm, time_ms, k, as_nonnegative(cursor[AT]))
        if alone <= cursor[AT]:
            full = _take_instant(rows, chain, nodes, roots, cursor)
        else:
            full = _take_alone(rows, alone, chain, nodes, roots, cursor)
    return full


@inlined_device_function
def _alone_until(slot: Int32s, gpm: Int32s, time_ms: Int64s, k: Int32s, first: int) -> int:
    """The end of the rows, from `first` on, that are each alone at their instant."""
    for i in range(first, len(slot)):
        at, after = as_nonnegative(i), as_nonnegative(i + 1)
        together = gpm[at] < 0
        if after < len(slot) and time_ms[at] == time_ms[after]:
            together |= slot[at] == slot[after] and k[at] == k[after]
        if together:
            return i
    return len(slot)


@device_function
def _miss_instants(step: Int64s, heads: Int64s, here: int) -> None:
    """End the strict waits of a key: its partition had instants without rows of the key."""
    for s in range(1, len(step)):
        if step[s, STRICT]:
            heads[here, s, NODE], heads[here, s, BEGIN] = NIL, EVER


@inlined_device_function
def _take_alone(
    rows: BatchRows, end: int, chain: ChainTables, nodes: Int64s, roots: Int64s, cursor: Int64s
) -> int:
    """Process rows, each alone at its instant, up to `end` or while the room surely suffices."""
    slot, gpm, start, lowest, ordinal = rows.slot, rows.gpm, rows.start, rows.lowest, rows.ordinal
    step, touches, touched, heads = chain.step, chain.touches, chain.touched, chain.heads
    latest, number = chain.latest, rows.number
    first, node, ended = (
        as_nonnegative(cursor[AT]),
        as_nonnegative(cursor[NEXT]),
        as_nonnegative(cursor[ROOTS]),
    )
    mask, steps, strict = nodes.shape[0] - 1, len(step), len(ordinal) > 0
    cursor[NEED] = steps
    nodes_room = (cursor[BASE] + nodes.shape[0] - node) // steps
    roots_room = (roots.shape[0] - ended) // steps
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
                _miss_instants(step, heads, here)
            latest[here] = ordinal[i]
        heads[here, 0, BEGIN] = start[i]
        for t in range(as_nonnegative(touches[g]), touches[g + 1]):
            s = as_nonnegative(touched[as_nonnegative(t), STEP])
            before, begun = heads[here, s, NODE], heads[here, s, BEGIN]
            rest, rest_begun = heads[here, s + 1, NODE], heads[here, s + 1, BEGIN]
            place, alive = as_nonnegative(node & mask), begun >= floor
            nodes[place, BEFORE], nodes[place, REST] = before, rest
            nodes[place, START], nodes[place, ROW] = begun, number + i
            roots[ended, 0], roots[ended, 1] = node, i
            goes_on = alive & (touched[as_nonnegative(t), GOES_ON] != 0)
            completes = alive & (touched[as_nonnegative(t), COMPLETES] != 0)
            closes = touched[as_nonnegative(t), CLOSES] != 0
            heads[here, s + 1, NODE] = node if goes_on else rest
            heads[here, s + 1, BEGIN] = begun if goes_on else rest_begun
            heads[here, s, NODE] = NIL if closes else before
            heads[here, s, BEGIN] = EVER if closes else begun
            ended = as_nonnegative(ended + np.int64(completes))
            node = as_nonnegative(node + np.int64(goes_on | completes))
    cursor[NEXT], cursor[ROOTS], cursor[AT] = node, ended, end
    return DONE


@device_function
def _take_instant(
    rows: BatchRows, chain: ChainTables, nodes: Int64s, roots: Int64s, cursor: Int64s
) -> int:
    """Process the rows of one instant."""
    slot, gpm, time_ms, k, ordinal = rows.slot, rows.gpm, rows.time_ms, rows.k, rows.ordinal
    step, heads, latest = chain.step, chain.heads, chain.latest
    n, steps, first = len(slot), step.shape[0], cursor[AT]
    node, ended, mask = cursor[NEXT], cursor[ROOTS], nodes.shape[0] - 1
    here, floor = slot[first], rows.lowest[first]
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
    if ended + cursor[NEED] > roots.shape[0]:
        return ROOTS_FULL
    if len(ordinal) > 0:
        if ordinal[first] > latest[here] + 1:
            _miss_instants(step, heads, here)
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
                nodes[place, START] = begun if s else rows.start[row]
                nodes[place, ROW] = rows.number + row
                nodes[place, REST] = heads[here, s + 1, NODE]
                if step[s, ACCEPTS]:
                    roots[ended, 0], roots[ended, 1] = node, row
                    ended += 1
                else:
                    heads[here, s + 1, NODE] = node
                    heads[here, s + 1, BEGIN] = nodes[place, START]
                node += 1
        if s and (step[s, STRICT] or step[s, ENDS] & seen):
            heads[here, s, NODE], heads[here, s, BEGIN] = NIL, EVER
    if chain.consumes and ended > cursor[ROOTS]:
        for s in range(1, steps):
            heads[here, s, NODE], heads[here, s, BEGIN] = NIL, EVER
    cursor[NEXT], cursor[ROOTS], cursor[AT] = node, ended, end
    return DONE
