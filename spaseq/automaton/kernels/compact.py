"""Algorithm 1 of CORE (PVLDB 15:9, 4.3) for a whole batch of solutions.

The active states of a slot, in the order of falling maximum start, are one block of a pool: for
each, the state, the node that stands for all of its list if it has been made, the length of the
list, and the list: safe nodes by falling maximum start. A block is written anew for every instant.
Where an array is too small or a move is not known yet, the instant is taken back, and the caller
sees to it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.automaton.kernels.sets import (
    AT,
    BASE,
    BEFORE,
    DONE,
    LISTS_FULL,
    MOVE_UNKNOWN,
    NEED,
    NIL,
    NODES_FULL,
    POOL_FULL,
    REST,
    ROOTS,
    ROOTS_FULL,
    ROW,
    SEEN,
    SET_UNKNOWN,
    START,
    STATE,
    TOP,
    UNION,
    USED,
    start_of,
)
from spaseq.kernels_cache import lean_kernel, part

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Array: TypeAlias = npt.NDArray[Any]

# Columns of `table`, by slot: the place of its block, its length, how long it may become.
PLACE, LENGTH, ROOM = range(3)

# Columns of `moves`: the state without taking anything (or NIL), the range of its marks.
STAY, FIRST_MARK, END_MARK = range(3)

# Columns of `marks`: the GPM taken, the state reached (or NIL), whether a match is complete.
GPM, TARGET, ACCEPTS = range(3)

UNKNOWN = -2
"""A move that has not been made yet."""

_HEAD = 3
"""What a block has of a state before its list."""


@part
def _add(nodes: Int64s, used: int, before: int, rest: int, start: int, row: int) -> int:
    """Add a node; how many there are then."""
    nodes[used, BEFORE], nodes[used, REST] = before, rest
    nodes[used, START], nodes[used, ROW] = start, row
    return used + 1


@part
def _union(nodes: Int64s, used: int, base: int, floor: int, one: int, other: int) -> int:
    """Add the union of two safe nodes with equal maximum start (Figure 5, a-d); how many nodes
    there are then, the last being the union."""
    first, second = one - base, other - base
    start = nodes[first, START]
    if nodes[first, ROW] != UNION:
        return _add(nodes, used, one, other, start, UNION)
    if nodes[second, ROW] != UNION:
        return _add(nodes, used, other, one, start, UNION)
    left1, right1 = nodes[first, BEFORE], nodes[first, REST]
    left2, right2 = nodes[second, BEFORE], nodes[second, REST]
    start1, start2 = start_of(nodes, base, right1), start_of(nodes, base, right2)
    if start1 < start2:
        right1, start1, right2, start2 = right2, start2, right1, start1
    if start1 < floor:
        return _add(nodes, used, left1, left2, start, UNION)
    below = right1
    if start2 >= floor:
        below = used + base
        used = _add(nodes, used, right1, right2, start1, UNION)
    middle = used + base
    used = _add(nodes, used, left2, below, start, UNION)
    return _add(nodes, used, left1, middle, start, UNION)


@part
def _insert(
    nodes: Int64s, used: int, base: int, floor: int, lists: Int64s, entry: int, node: int
) -> int:
    """Add a safe node to a union-list that starts no earlier; how many nodes there are then, NIL if
    the list is full."""
    count = lists[entry, 2]
    while count > 1 and start_of(nodes, base, lists[entry, _HEAD + count - 1]) < floor:
        count -= 1
    lists[entry, 1] = NIL
    start = nodes[node - base, START]
    place = 1
    while place < count and start_of(nodes, base, lists[entry, _HEAD + place]) > start:
        place += 1
    if place < count and start_of(nodes, base, lists[entry, _HEAD + place]) == start:
        used = _union(nodes, used, base, floor, lists[entry, _HEAD + place], node)
        lists[entry, _HEAD + place] = used - 1 + base
    else:
        if _HEAD + count == lists.shape[1]:
            return NIL
        for i in range(count, place, -1):
            lists[entry, _HEAD + i] = lists[entry, _HEAD + i - 1]
        lists[entry, _HEAD + place] = node
        count += 1
    lists[entry, 2] = count
    return used


@lean_kernel
def advance_compact(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    number: int,
    gpms: int,
    sets: Int64s,
    move: Int32s,
    moves: Int32s,
    marks: Int32s,
    table: Int64s,
    pool: Int64s,
    latest: Int64s,
    nodes: Int64s,
    roots: Int64s,
    lists: Int64s,
    place_of: Int64s,
    cursor: Int64s,
) -> int:
    """Work off n solutions with a deterministic automaton; state 0 is initial.

    Args:
        slot .. number: as `kernels.sets.advance_chain` takes them.
        gpms: how many there are.
        sets: [S] sets of GPMs as bits: each GPM alone, none, and others that have been seen.
        move: [states, S] the number of the move, or UNKNOWN. moves [, 3]; marks [, 3].
        table: [slots, 3]; pool [P]: the blocks.
        latest: [slots] ordinal of the latest instant. nodes [N, NODE_COLUMNS]; roots [R, 2].
        lists: [L, H] the active states while an instant is worked off, as in a block.
        place_of: [states, 2] scratch: where a state is in `lists`, and in which pass.
        cursor: see `kernels.sets`; `cursor[STATE]` and `cursor[SEEN]` say which move or set (as
            bits) is unknown.

    Returns: DONE, or what is missing.
    """
    n, strict = len(slot), len(ordinal) > 0
    used, base, found, top = cursor[USED], cursor[BASE], cursor[ROOTS], cursor[TOP]
    first, full, turn = cursor[AT], DONE, 0
    while first < n:
        here, floor = slot[first], lowest[first]
        end = first + 1
        while (
            end < n and slot[end] == here and time_ms[end] == time_ms[first] and k[end] == k[first]
        ):
            end += 1
        # Instants of the partition without solutions of this key come first, all at once.
        missed = strict and ordinal[first] > latest[here] + 1
        begin = end if missed else first
        seen = gpms
        if not missed:
            bits = 0
            for row in range(first, end):
                if gpm[row] >= 0:
                    bits |= 1 << gpm[row]
            if end - first == 1 and gpm[first] >= 0:
                seen = gpm[first]
            else:
                seen = 0
                while seen < len(sets) and sets[seen] != bits:
                    seen += 1
                if seen == len(sets):
                    full, cursor[SEEN] = SET_UNKNOWN, bits
                    break
        block, length = table[here, PLACE], table[here, LENGTH]
        most = 4 * (length // 4 + 1) * (end - begin + 1) + length
        if used + most > nodes.shape[0]:
            full, cursor[NEED] = NODES_FULL, most
            break
        if found + most > roots.shape[0]:
            full, cursor[NEED] = ROOTS_FULL, most
            break
        used_before, found_before = used, found
        turn += 1
        entries = 0
        at, next_at = block - _HEAD, block  # first the initial state, which has no list
        while full == DONE:
            initial = at < block
            state, count, before, begun = 0, 0, NIL, 0
            if initial:
                if first < end and begin < end:
                    begun = start[begin]
            else:
                state, count = pool[at], pool[at + 2]
                next_at = at + _HEAD + count
            alive = initial or start_of(nodes, base, pool[at + _HEAD]) >= floor
            if alive:
                m = move[state, seen]
                if m == UNKNOWN:
                    full, cursor[STATE], cursor[SEEN] = MOVE_UNKNOWN, state, seen
                    break
                stay = moves[m, STAY]
                joins = (
                    not initial
                    and stay != NIL
                    and place_of[stay, 1] == turn
                    and place_of[stay, 0] < entries
                )
                takes = moves[m, FIRST_MARK] < moves[m, END_MARK] and begin < end
                # A state reached by a mark of this very move makes `stay` join, too.
                if not initial:
                    for i in range(moves[m, FIRST_MARK], moves[m, END_MARK]):
                        joins = joins or (stay != NIL and marks[i, TARGET] == stay)
                    if takes or joins:
                        before = pool[at + 1]
                        if before == NIL:
                            alive_count = count
                            while (
                                alive_count > 1
                                and start_of(nodes, base, pool[at + _HEAD + alive_count - 1])
                                < floor
                            ):
                                alive_count -= 1
                            before = pool[at + _HEAD + alive_count - 1]
                            for i in range(alive_count - 2, -1, -1):
                                node = pool[at + _HEAD + i]
                                used = _add(
                                    nodes, used, node, before, nodes[node - base, START], UNION
                                )
                                before = used - 1 + base
                        begun = nodes[before - base, START]
                if takes:
                    for i in range(moves[m, FIRST_MARK], moves[m, END_MARK]):
                        target = marks[i, TARGET]
                        for row in range(begin, end):
                            if gpm[row] != marks[i, GPM]:
                                continue
                            node = used + base
                            used = _add(nodes, used, before, NIL, begun, number + row)
                            if marks[i, ACCEPTS]:
                                roots[found, 0], roots[found, 1] = node, row
                                found += 1
                            if target == NIL:
                                continue
                            if place_of[target, 1] == turn:
                                grown = _insert(
                                    nodes, used, base, floor, lists, place_of[target, 0], node
                                )
                                if grown == NIL:
                                    full = LISTS_FULL
                                    break
                                used = grown
                            elif entries == lists.shape[0]:
                                full = LISTS_FULL
                                break
                            else:
                                place_of[target, 0], place_of[target, 1] = entries, turn
                                lists[entries, 0], lists[entries, 1] = target, NIL
                                lists[entries, 2], lists[entries, _HEAD] = 1, node
                                entries += 1
                        if full != DONE:
                            break
                    if full != DONE:
                        break
                if not initial and stay != NIL:
                    if place_of[stay, 1] == turn:
                        grown = _insert(nodes, used, base, floor, lists, place_of[stay, 0], before)
                        if grown == NIL:
                            full = LISTS_FULL
                            break
                        used = grown
                    elif entries == lists.shape[0] or _HEAD + count > lists.shape[1]:
                        full = LISTS_FULL
                        break
                    else:
                        place_of[stay, 0], place_of[stay, 1] = entries, turn
                        lists[entries, 0], lists[entries, 2] = stay, count
                        lists[entries, 1] = before if before != NIL else pool[at + 1]
                        for i in range(count):
                            lists[entries, _HEAD + i] = pool[at + _HEAD + i]
                        entries += 1
            at = next_at
            if at >= block + length:
                break
        if full == DONE:
            size = 0
            for entry in range(entries):
                size += _HEAD + lists[entry, 2]
            if size > table[here, ROOM]:
                room = 2 * size + 8
                if top + room > len(pool):
                    full, cursor[NEED] = POOL_FULL, room
                else:
                    table[here, PLACE], table[here, ROOM] = top, room
                    top += room
        if full != DONE:
            used, found = used_before, found_before
            break
        at = table[here, PLACE]
        table[here, LENGTH] = size
        for entry in range(entries):
            for i in range(_HEAD + lists[entry, 2]):
                pool[at + i] = lists[entry, i]
            at += _HEAD + lists[entry, 2]
        if strict:
            latest[here] = ordinal[first] - 1 if missed else ordinal[first]
        if not missed:
            first = end
    for state in range(place_of.shape[0]):
        place_of[state, 1] = 0
    cursor[USED], cursor[ROOTS], cursor[TOP], cursor[AT] = used, found, top, first
    return full


@lean_kernel
def living(
    table: Int64s, pool: Int64s, nodes: Int64s, base: int, floor: int, alive: Int64s
) -> None:
    """Count, by slot, the active states that have a match in the window that begins at `floor`."""
    for slot in range(table.shape[0]):
        at, end = table[slot, PLACE], table[slot, PLACE] + table[slot, LENGTH]
        alive[slot] = 0
        while at < end:
            if start_of(nodes, base, pool[at + _HEAD]) >= floor:
                alive[slot] += 1
            at += _HEAD + pool[at + 2]


@lean_kernel
def moved_blocks(table: Int64s, pool: Int64s, larger: Int64s) -> int:
    """Move the blocks of a pool one behind the other into another one; its top."""
    top = 0
    for slot in range(table.shape[0]):
        place = table[slot, PLACE]
        for i in range(table[slot, LENGTH]):
            larger[top + i] = pool[place + i]
        table[slot, PLACE], table[slot, ROOM] = top, table[slot, LENGTH]
        top += table[slot, LENGTH]
    return top
