"""Runs with registers, for a whole batch of solutions (the `registers` evaluator, compiled).

A *run* is a node: the solution it took last, the run before, its origin, and its registers, which
are the numbers that later steps compare with. A run *waits* at each edge of its state. Waits are
kept by slot (a value of the key) and edge, in one block of a common pool for each; a block with
many waits is a heap by threshold, the least number that a solution must exceed to be taken, so that
the waits a solution satisfies are found without looking at the others (compare the event selection
by attribute-ordered indexes of Cayuga and the B+-tree of ZStream's hash joins).

Nothing is freed by itself, and no array grows in here: `advance` stops where one is full, and goes
on from there when the caller has made room: `collect` drops what the windows have left behind and
moves the rest together, `moved_together` does so with the blocks of waits.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.kernels_cache import inlined, lean_kernel, natural, part

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Array: TypeAlias = npt.NDArray[Any]

NONE = -1

# Columns of `edge`.
TARGET, KIND, INDEX, SIGN, INCLUSIVE, THRESHOLDS, TESTS, SETS = range(8)
EDGE_COLUMNS = 8

# Kinds of edges: from the initial state; `;`; `:`; `,`.
FIRST, NEXT, ANY, STRICT = range(4)

# Columns of `test`: own number `op` register.
OP, OWN, REGISTER = range(3)
LESS, AT_MOST, GREATER, AT_LEAST, EQUAL, UNEQUAL = range(6)

# Columns of `blocks`, by slot and edge.
PLACE, COUNT, CAPACITY, HEAPED, WASTED = range(5)
BLOCK_COLUMNS = 5

# Columns of `nodes`: number of the solution, the run before, the measure at which the match begins;
# the edge, and above its bits how many solutions the run has; the time, if gaps are bounded.
SOLUTION, BEFORE, ORIGIN, PATH, TIME = range(5)
EDGE_BITS = 6

# Columns of `passed`, by slot.
ORDINAL, EVENTS = range(2)

# Columns of `cursor`: sizes in use, and the most waits that a block has had; matches so far; where
# `advance` goes on: the first row of an instant, how many runs arrive then, how many have, and the
# edges the next one waits at already.
USED, TOP, WIDEST, FOUND, MATCHES, ROW, ARRIVALS, ARRIVED, WAY, NEED = range(10)
CURSOR = 10

DONE, ARRIVED_FULL, RUNS_FULL, POOL_FULL, FOUND_FULL, ENDS_FULL = range(6)

_FEW = 24
"""So many waits are looked at one after the other."""


@inlined
def _holds(op: int, own: float, other: float) -> bool:
    if op == LESS:
        return own < other
    if op == AT_MOST:
        return own <= other
    if op == GREATER:
        return own > other
    if op == AT_LEAST:
        return own >= other
    if op == EQUAL:
        return own == other
    return own != other


@inlined
def _passes(
    test: Int32s, first: int, end: int, own: Floats, row: int, register: Floats, run: int
) -> bool:
    """Whether a solution passes some tests against a run."""
    for i in range(first, end):
        if not _holds(test[i, OP], own[test[i, OWN], row], register[run, test[i, REGISTER]]):
            return False
    return True


# --- heaps of waits, the least threshold first --------------------------------------------------


@inlined
def _rise(key: Floats, run: Int32s, place: int, at: int) -> None:
    """Move the entry `at` of the heap that begins at `place` to where it belongs, upwards."""
    own, own_run = key[place + at], run[place + at]
    while at > 0:
        above = (at - 1) >> 1
        if key[place + above] <= own:
            break
        key[place + at], run[place + at] = key[place + above], run[place + above]
        at = above
    key[place + at], run[place + at] = own, own_run


@inlined
def _sink(key: Floats, run: Int32s, place: int, count: int, at: int) -> None:
    """Move the entry `at` of a heap of `count` entries to where it belongs, downwards."""
    own, own_run = key[place + at], run[place + at]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        other = below + (below + 1 < count)  # which of two is less, cannot be foreseen: no branch
        below = other if key[place + other] < key[place + below] else below
        if key[place + below] >= own:
            break
        key[place + at], run[place + at] = key[place + below], run[place + below]
        at = below
    key[place + at], run[place + at] = own, own_run


@part
def _heapify(key: Floats, run: Int32s, place: int, count: int) -> None:
    for at in range(count // 2 - 1, -1, -1):
        _sink(key, run, place, count, at)


@part
def _settle(blocks: Int32s, block: int, count: int, key: Floats, run: Int32s) -> None:
    """A block has been thinned out: its count, and its order if it still is a heap."""
    blocks[block, COUNT] = count
    blocks[block, WASTED] = 0
    if blocks[block, HEAPED]:
        if count > _FEW:
            _heapify(key, run, blocks[block, PLACE], count)
        else:
            blocks[block, HEAPED] = 0


# --- what lives ---------------------------------------------------------------------------------


@part
def _thin(blocks: Int32s, block: int, key: Floats, run: Int32s, nodes: Int64s, lowest: int) -> None:
    """Drop the waits of a block whose window is over."""
    place, kept = blocks[block, PLACE], 0
    for i in range(place, place + blocks[block, COUNT]):
        if nodes[run[i], ORIGIN] >= lowest:
            key[place + kept], run[place + kept] = key[i], run[i]
            kept += 1
    if kept < blocks[block, COUNT]:
        _settle(blocks, block, kept, key, run)


@part
def _thin_all(
    blocks: Int32s,
    ordinal: Int64s,
    key: Floats,
    run: Int32s,
    nodes: Int64s,
    edge: Int32s,
    floor: int,
    counted: int,
    passed: Int64s,
) -> None:
    """Drop all waits that are over; `floor` is the least measure of a match that may still end."""
    edges = edge.shape[0] - 1
    for slot in range(passed.shape[0]):
        lowest = floor if counted < 0 else passed[slot, EVENTS] + 1 - counted
        for e in range(edges):
            block = slot * edges + e
            if blocks[block, COUNT]:
                if edge[e, KIND] == STRICT and ordinal[block] != passed[slot, ORDINAL]:
                    blocks[block, COUNT] = 0
                else:
                    _thin(blocks, block, key, run, nodes, lowest)


@inlined
def _mark(mark: Array, nodes: Int64s, node: int) -> None:
    while node >= 0 and not mark[node]:
        mark[node] = 1
        node = nodes[node, BEFORE]


@part
def _collect(
    used: int,
    nodes: Int64s,
    register: Floats,
    blocks: Int32s,
    run: Int32s,
    arrived: Int32s,
    first: int,
    end: int,
    mark: Array,
    moved: Int32s,
) -> int:
    """Move the runs together that waits, and `arrived[first:end]`, can reach; their number.

    `mark` [used] is all zero; `moved` [used] is written to.
    """
    for block in range(blocks.shape[0]):
        place = blocks[block, PLACE]
        for i in range(place, place + blocks[block, COUNT]):
            _mark(mark, nodes, run[i])
    for i in range(first, end):
        _mark(mark, nodes, arrived[i])
    kept = 0
    for node in range(used):
        if mark[node]:
            moved[node] = kept
            for c in range(nodes.shape[1]):
                nodes[kept, c] = nodes[node, c]
            if nodes[kept, BEFORE] >= 0:
                nodes[kept, BEFORE] = moved[nodes[kept, BEFORE]]
            for r in range(register.shape[1]):
                register[kept, r] = register[node, r]
            kept += 1
    for block in range(blocks.shape[0]):
        place = blocks[block, PLACE]
        for i in range(place, place + blocks[block, COUNT]):
            run[i] = moved[run[i]]
    for i in range(first, end):
        if arrived[i] >= 0:
            arrived[i] = moved[arrived[i]]
    return kept


# --- offering solutions to waits ----------------------------------------------------------------


@inlined
def _offer_in_turn(
    block: int,
    blocks: Int32s,
    key: Floats,
    run: Int32s,
    edge: Int32s,
    e: int,
    test: Int32s,
    gap: int,
    value: float,
    own: Floats,
    row: int,
    now: int,
    lowest: int,
    nodes: Int64s,
    register: Floats,
    arrived: Int32s,
    arrived_row: Int32s,
    arrived_edge: Int32s,
    arrivals: int,
) -> int:
    """Offer one solution to the waits of a small block, or of one without thresholds.

    Which waits take it cannot be foreseen, so each is written down as one that does and as one that
    stays, and counts as what it is.
    """
    place, kept = natural(blocks[block, PLACE]), 0
    stays, inclusive = edge[e, KIND] == ANY, edge[e, INCLUSIVE] != 0
    first_test, end_test = edge[e, TESTS], edge[e + 1, TESTS]
    for i in range(place, place + blocks[block, COUNT]):
        threshold, waiting = key[i], natural(run[i])
        alive = nodes[waiting, ORIGIN] >= lowest
        if gap >= 0:
            alive &= now - nodes[waiting, TIME] <= gap
        takes = alive & ((value > threshold) | (inclusive & (value == threshold)))
        if first_test < end_test:
            takes = takes and _passes(test, first_test, end_test, own, row, register, waiting)
        arrived[arrivals], arrived_row[arrivals], arrived_edge[arrivals] = waiting, row, e
        arrivals += int(takes)
        key[place + kept], run[place + kept] = threshold, waiting
        kept += int(alive & (stays | (not takes)))
    blocks[block, COUNT] = kept
    return arrivals


@inlined
def _offer_by_threshold(
    block: int,
    blocks: Int32s,
    key: Floats,
    run: Int32s,
    edge: Int32s,
    e: int,
    test: Int32s,
    gap: int,
    value: float,
    own: Floats,
    row: int,
    now: int,
    lowest: int,
    nodes: Int64s,
    register: Floats,
    arrived: Int32s,
    arrived_row: Int32s,
    arrived_edge: Int32s,
    arrivals: int,
    stack: Int32s,
) -> int:
    """Offer one solution to the waits of a heap; only those are looked at whose threshold it
    exceeds, and their neighbours."""
    place, count = natural(blocks[block, PLACE]), blocks[block, COUNT]
    inclusive = edge[e, INCLUSIVE]
    first_test, end_test = edge[e, TESTS], edge[e + 1, TESTS]
    if edge[e, KIND] == ANY:
        wasted, todo = 0, 1
        stack[0] = 0
        while todo:
            todo -= 1
            at = stack[todo]
            threshold, waiting = key[place + at], natural(run[place + at])
            if value > threshold or (inclusive and value == threshold):
                if 2 * at + 1 < count:
                    stack[todo] = 2 * at + 1
                    todo += 1
                if 2 * at + 2 < count:
                    stack[todo] = 2 * at + 2
                    todo += 1
                if nodes[waiting, ORIGIN] < lowest or (
                    gap >= 0 and now - nodes[waiting, TIME] > gap
                ):
                    wasted += 1
                elif _passes(test, first_test, end_test, own, row, register, waiting):
                    arrived[arrivals], arrived_row[arrivals] = waiting, row
                    arrived_edge[arrivals] = e
                    arrivals += 1
        blocks[block, WASTED] += wasted
        if blocks[block, WASTED] > count:
            _thin(blocks, block, key, run, nodes, lowest)
            blocks[block, WASTED] = 0
        return arrivals
    back = 0  # waits that stay, behind the heap's end while it shrinks
    size = count
    while size:
        threshold, waiting = key[place], natural(run[place])
        if not (value > threshold or (inclusive and value == threshold)):
            break
        size -= 1
        key[place], run[place] = key[place + size], run[place + size]
        _sink(key, run, place, size, 0)
        if nodes[waiting, ORIGIN] < lowest or (gap >= 0 and now - nodes[waiting, TIME] > gap):
            continue
        if _passes(test, first_test, end_test, own, row, register, waiting):
            arrived[arrivals], arrived_row[arrivals], arrived_edge[arrivals] = waiting, row, e
            arrivals += 1
        else:
            back += 1
            key[place + count - back], run[place + count - back] = threshold, waiting
    for i in range(back):
        at = place + count - back + i
        key[place + size], run[place + size] = key[at], run[at]
        _rise(key, run, place, size)
        size += 1
    blocks[block, COUNT] = size
    return arrivals


@part
def _offer_several(
    block: int,
    blocks: Int32s,
    key: Floats,
    run: Int32s,
    edge: Int32s,
    e: int,
    test: Int32s,
    gap: int,
    gpm: Int32s,
    taken: int,
    own: Floats,
    first: int,
    end: int,
    now: int,
    lowest: int,
    nodes: Int64s,
    register: Floats,
    arrived: Int32s,
    arrived_row: Int32s,
    arrived_edge: Int32s,
    arrivals: int,
) -> int:
    """Offer the solutions of GPM `taken` among those of one instant, `first:end`, to the waits of
    a block: a wait takes each of them."""
    place, kept = natural(blocks[block, PLACE]), 0
    stays, inclusive = edge[e, KIND] == ANY, edge[e, INCLUSIVE]
    first_test, end_test = edge[e, TESTS], edge[e + 1, TESTS]
    for i in range(place, place + blocks[block, COUNT]):
        waiting, takes = run[i], False
        if nodes[waiting, ORIGIN] < lowest or (gap >= 0 and now - nodes[waiting, TIME] > gap):
            continue
        for row in range(first, end):
            if gpm[row] == taken:
                value = _value(edge, e, own, row)
                if (value > key[i] or (inclusive and value == key[i])) and _passes(
                    test, first_test, end_test, own, row, register, waiting
                ):
                    arrived[arrivals], arrived_row[arrivals] = waiting, row
                    arrived_edge[arrivals] = e
                    arrivals += 1
                    takes = True
        if takes and not stays:
            continue
        key[place + kept], run[place + kept] = key[i], waiting
        kept += 1
    if kept < blocks[block, COUNT]:
        _settle(blocks, block, kept, key, run)
    return arrivals


@part
def _kill(
    block: int,
    blocks: Int32s,
    key: Floats,
    run: Int32s,
    test: Int32s,
    first_test: int,
    end_test: int,
    own: Floats,
    row: int,
    register: Floats,
) -> None:
    """Drop the waits of a block behind a negated step that a solution matches."""
    if first_test == end_test:
        blocks[block, COUNT] = 0
        blocks[block, HEAPED] = 0
        return
    place, kept = blocks[block, PLACE], 0
    for i in range(place, place + blocks[block, COUNT]):
        if not _passes(test, first_test, end_test, own, row, register, run[i]):
            key[place + kept], run[place + kept] = key[i], run[i]
            kept += 1
    if kept < blocks[block, COUNT]:
        _settle(blocks, block, kept, key, run)


@inlined
def _value(edge: Int32s, e: int, own: Floats, row: int) -> float:
    """What the thresholds of an edge are compared with: the solution's number, negated where it
    must be less; 0 where there are none."""
    if edge[e, INDEX] < 0:
        return 0.0
    value: float = own[natural(edge[e, INDEX]), row]
    return -value if edge[e, SIGN] < 0 else value


@inlined
def _threshold(edge: Int32s, e: int, threshold: Int32s, register: Floats, run: int) -> float:
    """The least number that exceeds all that an edge compares with; NaN if there is none."""
    if edge[e, INDEX] < 0:
        return -np.inf
    most = -np.inf
    for i in range(natural(edge[e, THRESHOLDS]), edge[e + 1, THRESHOLDS]):
        value = register[run, natural(threshold[i])]
        if edge[e, SIGN] < 0:
            value = -value
        if value != value:
            return np.nan
        most = max(most, value)
    return most


# --- the batch ----------------------------------------------------------------------------------


@lean_kernel
def advance(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    own: Floats,
    number: int,
    counted: int,
    program: tuple[Array, ...],
    runs: tuple[Array, ...],
    waits: tuple[Array, ...],
    passed: Int64s,
    scratch: tuple[Array, ...],
    cursor: Int64s,
) -> int:
    """Work off n solutions, in the order of instants, those of one instant and slot together.

    Args:
        slot, gpm, time_ms, k: [n] of each solution; `gpm` -1 for an event without a solution.
        start: [n] the measure of a match that begins here.
        lowest: [n] the least measure of a match that may end here.
        ordinal: [n] number of the instant among those of its slot; empty if there is no `,`.
        own: [columns, n] the numbers that are compared.
        number: of the first solution; they are numbered through all batches.
        counted: n of WITHIN n EVENTS, else -1.
        program: see `spaseq.automaton.columns.layout`.
        runs: nodes [N, 4], or [N, 5] if an operator bounds a gap; register [N, registers].
        waits: blocks [slots * edges, BLOCK_COLUMNS], made [slots * edges]: ordinal of the instant
            at which a strict edge's waits were made; key [P], run [P].
        passed: [slots, 2] ordinal of each slot's latest instant, and its events so far, where they
            are counted.
        scratch: arrived [A], arrived_row [A], arrived_edge [A], stack [A]; taken [n]: which
            solutions runs have taken; found: the matches as numbers of solutions, one match behind
            the other; ends [, 2]: where each ends, and its origin.
        cursor: see its columns; all zero but the first three at the start of a batch.

    Returns: DONE, or which array is full, `cursor[NEED]` being how many more places it needs.
    """
    (
        takes,
        taking,
        edge,
        edge_gap,
        test,
        threshold,
        sets,
        state,
        leaving,
        accepts,
        kills,
        killing,
    ) = program
    nodes, register = runs
    blocks, made, key, run = waits
    arrived, arrived_row, arrived_edge, stack, taken, found, ends = scratch
    edges, n = edge.shape[0] - 1, len(slot)
    timed, ordered = nodes.shape[1] > TIME, len(ordinal) > 0
    kills_any, registers, sizes = len(killing) > 0, register.shape[1], len(nodes)
    used, top, widest = natural(cursor[USED]), natural(cursor[TOP]), cursor[WIDEST]
    found_size, matches = natural(cursor[FOUND]), natural(cursor[MATCHES])
    first, arrivals = natural(cursor[ROW]), natural(cursor[ARRIVALS])
    done, way = natural(cursor[ARRIVED]), natural(cursor[WAY])
    full, need = DONE, 0

    while first < n:
        here, now, floor = natural(slot[first]), time_ms[first], lowest[first]
        end = first + 1
        while end < n and time_ms[end] == now and slot[end] == here and k[end] == k[first]:
            end += 1

        if arrivals == 0:
            # --- takes
            most = len(taking) * (end - first) * (1 + widest * (end - first))
            if most > len(arrived):
                most = 0
                for row in range(first, end):
                    g = gpm[row]
                    if g >= 0:
                        for t in range(takes[g], takes[g + 1]):
                            most += 1 + blocks[here * edges + taking[t], COUNT] * (end - first)
            if most > len(arrived):
                full, need = ARRIVED_FULL, most
                break
            if ordered:
                for e in range(edges):
                    if edge[e, KIND] == STRICT:
                        block = here * edges + e
                        if blocks[block, COUNT] and made[block] != ordinal[first] - 1:
                            blocks[block, COUNT] = 0
                passed[here, ORDINAL] = ordinal[first]
            if counted >= 0:
                passed[here, EVENTS] = floor + counted
            for row in range(first, end):
                g = gpm[row]
                if g < 0:
                    continue
                seen, several = False, False  # solutions of this GPM before and behind
                for other in range(first, row):
                    if gpm[other] == g:
                        seen = True
                for other in range(row + 1, end):
                    if gpm[other] == g:
                        several = True
                for t in range(natural(takes[g]), takes[g + 1]):
                    e = natural(taking[t])
                    block = here * edges + e
                    if edge[e, KIND] == FIRST:
                        arrived[arrivals] = NONE
                        arrived_row[arrivals] = row
                        arrived_edge[arrivals] = e
                        arrivals += 1
                        continue
                    if seen or blocks[block, COUNT] == 0:
                        continue
                    if several:
                        arrivals = _offer_several(
                            block, blocks, key, run, edge, e, test, edge_gap[e], gpm, g, own,
                            row, end, now, floor, nodes, register,
                            arrived, arrived_row, arrived_edge, arrivals,
                        )  # fmt: skip
                    else:
                        value = _value(edge, e, own, row)
                        if value != value:
                            continue
                        if blocks[block, HEAPED]:
                            arrivals = _offer_by_threshold(
                                block, blocks, key, run, edge, e, test, edge_gap[e], value, own,
                                row, now, floor, nodes, register,
                                arrived, arrived_row, arrived_edge, arrivals, stack,
                            )  # fmt: skip
                        else:
                            arrivals = _offer_in_turn(
                                block, blocks, key, run, edge, e, test, edge_gap[e], value, own,
                                row, now, floor, nodes, register,
                                arrived, arrived_row, arrived_edge, arrivals,
                            )  # fmt: skip

            # --- negated steps
            for row in range(first, end if kills_any else first):
                g = gpm[row]
                if g >= 0:
                    for z in range(kills[g], kills[g + 1]):
                        block = here * edges + killing[z, 0]
                        if blocks[block, COUNT]:
                            _kill(
                                block, blocks, key, run, test, killing[z, 1], killing[z, 2],
                                own, row, register,
                            )  # fmt: skip

        # --- runs arrive in states
        while done < arrivals:
            e, earlier, row = natural(arrived_edge[done]), arrived[done], natural(arrived_row[done])
            target = natural(edge[e, TARGET])
            goes_on = state[target] < state[target + 1]
            if way == 0:
                if goes_on and used == sizes:
                    full, need = RUNS_FULL, arrivals - done
                    break
                length, begun = 1, start[row]
                if earlier >= 0:
                    length += nodes[earlier, PATH] >> EDGE_BITS
                    begun = nodes[earlier, ORIGIN]
                if accepts[target]:
                    if found_size + length > len(found):
                        full, need = FOUND_FULL, length
                        break
                    if matches == len(ends):
                        full, need = ENDS_FULL, 1
                        break
                    found_size += length
                    ends[matches, 0], ends[matches, 1] = found_size, begun
                    matches += 1
                    place, node = found_size - 1, earlier
                    found[place] = number + row
                    while node >= 0:
                        place -= 1
                        found[place] = nodes[node, SOLUTION]
                        node = nodes[node, BEFORE]
                if not goes_on:
                    done += 1
                    continue
                node = used
                used += 1
                nodes[node, SOLUTION], nodes[node, BEFORE] = number + row, earlier
                nodes[node, ORIGIN], nodes[node, PATH] = begun, length << EDGE_BITS | e
                taken[row] = 1
                if timed:
                    nodes[node, TIME] = now
                for r in range(registers):
                    register[node, r] = np.nan if earlier < 0 else register[earlier, r]
                for i in range(natural(edge[e, SETS]), edge[e + 1, SETS]):
                    register[node, natural(sets[i, 0])] = own[natural(sets[i, 1]), row]
            node = used - 1
            for i in range(natural(state[target]) + way, state[target + 1]):
                out = natural(leaving[i])
                way += 1
                level = _threshold(edge, out, threshold, register, node)
                if level != level:
                    continue
                block = here * edges + out
                if edge[out, KIND] == STRICT and made[block] != ordinal[row]:
                    blocks[block, COUNT] = 0
                    made[block] = ordinal[row]
                count, capacity = blocks[block, COUNT], blocks[block, CAPACITY]
                if count == capacity:
                    if capacity:
                        _thin(blocks, block, key, run, nodes, floor)
                        count = blocks[block, COUNT]
                    if 2 * count >= capacity:
                        size = max(4, 2 * capacity)
                        if top + size > len(key):
                            full, need = POOL_FULL, size
                            way -= 1
                            break
                        place = blocks[block, PLACE]
                        for w in range(count):
                            key[top + w], run[top + w] = key[place + w], run[place + w]
                        blocks[block, PLACE], blocks[block, CAPACITY] = top, size
                        top += size
                place = natural(blocks[block, PLACE])
                count = natural(count)
                key[place + count], run[place + count] = level, node
                blocks[block, COUNT] = count + 1
                widest = max(widest, count + 1)
                if blocks[block, HEAPED]:
                    _rise(key, run, place, count)
                elif count == _FEW and edge[out, INDEX] >= 0:
                    blocks[block, HEAPED] = 1
                    _heapify(key, run, place, count + 1)
            if full != DONE:
                break
            way = 0
            done += 1
        if full != DONE:
            break
        arrivals, done = 0, 0
        first = end

    cursor[USED], cursor[TOP], cursor[WIDEST] = used, top, widest
    cursor[FOUND], cursor[MATCHES] = found_size, matches
    cursor[ROW], cursor[ARRIVALS], cursor[ARRIVED], cursor[WAY] = first, arrivals, done, way
    cursor[NEED] = need
    return full


@lean_kernel
def collect(
    edge: Int32s,
    runs: tuple[Array, ...],
    waits: tuple[Array, ...],
    passed: Int64s,
    arrived: Int32s,
    cursor: Int64s,
    counted: int,
    floor: int,
    mark: Array,
    moved: Int32s,
) -> None:
    """Drop what no match can use any more; `floor` is the least measure of one that may still end,
    where events are not counted. `mark` uint8, all zero, and `moved` int32 have a place for every
    run in use; the other arguments are those of `advance`."""
    nodes, register = runs
    blocks, made, key, run = waits
    _thin_all(blocks, made, key, run, nodes, edge, floor, counted, passed)
    cursor[USED] = _collect(
        cursor[USED], nodes, register, blocks, run,
        arrived, cursor[ARRIVED], cursor[ARRIVALS], mark, moved,
    )  # fmt: skip


@lean_kernel
def moved_together(
    blocks: Int32s, key: Floats, run: Int32s, new_key: Floats, new_run: Int32s
) -> int:
    """Move the blocks of a pool one behind the other into a new one; its top."""
    top = 0
    for block in range(blocks.shape[0]):
        place, count = blocks[block, PLACE], blocks[block, COUNT]
        for i in range(count):
            new_key[top + i], new_run[top + i] = key[place + i], run[place + i]
        blocks[block, PLACE] = top
        blocks[block, CAPACITY] = _capacity(count)
        top += blocks[block, CAPACITY]
    return top


@lean_kernel
def pool_size(blocks: Int32s) -> int:
    """How many places the blocks need when they are moved together."""
    size = 0
    for block in range(blocks.shape[0]):
        size += _capacity(blocks[block, COUNT])
    return size


@inlined
def _capacity(count: int) -> int:
    if count == 0:
        return 0
    size = 4
    while size < count:
        size *= 2
    return size
