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

import numpy as np

from spaseq.automaton.registers.kernels.run_arrays import (
    ARRIVALS,
    ARRIVED,
    ARRIVED_FULL,
    BEFORE,
    BLOCK_COLUMNS,
    CAPACITY,
    COUNT,
    DONE,
    EDGE_BITS,
    EDGE_COLUMNS,
    ENDS_FULL,
    EVENTS,
    FIRST,
    FOUND,
    FOUND_FULL,
    HEAPED,
    INDEX,
    KIND,
    MATCHES,
    NEED,
    NONE,
    ORDINAL,
    ORIGIN,
    PATH,
    POOL_FULL,
    ROW,
    RUNS_FULL,
    SETS,
    SOLUTION,
    STRICT,
    TARGET,
    TIME,
    TOP,
    USED,
    WAY,
    WIDEST,
)
from spaseq.automaton.registers.kernels.waits import (
    end_waits,
    enter,
    make_room,
    offer_by_threshold,
    offer_in_turn,
    offer_several,
    threshold_of,
    value_of,
)
from spaseq.compiled.arrays import Array, Float64s, Int32s, Int64s
from spaseq.compiled.decorators import as_nonnegative, assume, lean_kernel


@lean_kernel
def advance(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    own: Float64s,
    number: int,
    until: int,
    in_order: bool,
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
        until: the row from which on no instant is begun, n at most.
        in_order: whether `kernels.plain_runs` may go on from here.
        counted: n of WITHIN n EVENTS, else -1.
        program: see `spaseq.automaton.registers.compiled.layout`.
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
    assume(edge.shape[1] == EDGE_COLUMNS)
    assume(test.shape[1] == 3)
    assume(sets.shape[1] == 2)
    assume(killing.shape[1] == 3)
    assume(blocks.shape[1] == BLOCK_COLUMNS)
    assume(passed.shape[1] == 2)
    assume(ends.shape[1] == 2)
    edges, n = edge.shape[0] - 1, len(slot)
    timed, ordered = nodes.shape[1] > TIME, len(ordinal) > 0
    kills_any, registers, sizes = len(killing) > 0, register.shape[1], len(nodes)
    used, top, widest = as_nonnegative(cursor[USED]), as_nonnegative(cursor[TOP]), cursor[WIDEST]
    found_size, matches = as_nonnegative(cursor[FOUND]), as_nonnegative(cursor[MATCHES])
    first, arrivals = as_nonnegative(cursor[ROW]), as_nonnegative(cursor[ARRIVALS])
    done, way = as_nonnegative(cursor[ARRIVED]), as_nonnegative(cursor[WAY])
    full, need = DONE, 0

    while first < until:
        here, now, floor = as_nonnegative(slot[first]), time_ms[first], lowest[first]
        end = first + 1
        while end < n and time_ms[end] == now and slot[end] == here and k[end] == k[first]:
            end += 1

        if arrivals == 0:
            # --- takes
            most = len(taking) * (end - first) * (1 + 2 * widest * (end - first))
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
                for t in range(as_nonnegative(takes[g]), takes[g + 1]):
                    e = as_nonnegative(taking[t])
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
                        arrivals = offer_several(
                            block, blocks, key, run, edge, e, test, edge_gap[e], gpm, g, own,
                            row, end, now, floor, nodes, register,
                            arrived, arrived_row, arrived_edge, arrivals,
                        )  # fmt: skip
                    else:
                        value = value_of(edge, e, own, row)
                        if value != value:
                            continue
                        if blocks[block, HEAPED]:
                            arrivals = offer_by_threshold(
                                block, blocks, key, run, edge, e, test, edge_gap[e], value, own,
                                row, now, floor, nodes, register,
                                arrived, arrived_row, arrived_edge, arrivals, stack,
                            )  # fmt: skip
                        else:
                            arrivals = offer_in_turn(
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
                            end_waits(
                                block, blocks, key, run, test, killing[z, 1], killing[z, 2],
                                own, row, register,
                            )  # fmt: skip

        # --- runs arrive in states
        while done < arrivals:
            e, earlier, row = (
                as_nonnegative(arrived_edge[done]),
                arrived[done],
                as_nonnegative(arrived_row[done]),
            )
            target = as_nonnegative(edge[e, TARGET])
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
                for i in range(as_nonnegative(edge[e, SETS]), edge[e + 1, SETS]):
                    register[node, as_nonnegative(sets[i, 0])] = own[
                        as_nonnegative(sets[i, 1]), row
                    ]
            node = used - 1
            for i in range(as_nonnegative(state[target]) + way, state[target + 1]):
                out = as_nonnegative(leaving[i])
                way += 1
                level = threshold_of(edge, out, threshold, register, node)
                if level != level:
                    continue
                block = here * edges + out
                if edge[out, KIND] == STRICT and made[block] != ordinal[row]:
                    blocks[block, COUNT] = 0
                    made[block] = ordinal[row]
                if blocks[block, COUNT] == blocks[block, CAPACITY]:
                    size = make_room(
                        blocks, block, key, run, nodes, floor, top, edge[out, INDEX] >= 0
                    )
                    if size < 0:
                        full, need = POOL_FULL, -size
                        way -= 1
                        break
                    top, widest = top + size, max(widest, size)
                enter(blocks, block, key, run, level, node, in_order)
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
