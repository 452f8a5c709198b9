"""The register kernel: a sequence over a batch of solutions, for every form of it that compiles.

A run *waits* at each edge out of its state, in the block of that edge and of its slot. A large
block is a heap by threshold, the least number that a solution must exceed to be taken. So a
solution finds the runs that take it without visiting the others (compare the event selection by
attribute-ordered indexes of Cayuga, and the B+-tree of ZStream's hash joins).

No array grows in here, and no run is freed. `advance` stops where an array is full and goes on
from there once the caller has made room: `run_collection.collect` drops runs that no match can
use, `waiting_blocks.compact_pool` closes the gaps between blocks.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels.asking import ask, ask_ahead
from spaseq.automaton.registers.kernels.candidates import hold_complete, without_forestalled
from spaseq.automaton.registers.kernels.edge_offers import (
    block_of,
    block_to_wait,
    end_waiting,
    is_passed,
    mark_waiting,
    taken_in,
    threshold_at,
)
from spaseq.automaton.registers.kernels.instant_offers import (
    most_arrivals,
    most_together,
    offer_instant,
    offer_together,
)
from spaseq.automaton.registers.kernels.run_arrays import (
    ARRIVALS,
    ARRIVALS_FULL,
    ARRIVED,
    ASSIGNMENTS,
    BLOCK_COLUMNS,
    CAPACITY,
    CLEARED,
    CLOSING,
    COUNT,
    DONE,
    EDGE_COLUMNS,
    ENDS_FULL,
    ENTERED,
    EVENTS,
    EVER,
    HELD,
    INDEXED,
    KILLING_COLUMNS,
    KIND,
    LACKING,
    MATCHED,
    MATCHED_FULL,
    MATCHES,
    NEED,
    NOTED,
    OFFERED,
    OPENS,
    ORDINAL,
    ORIGIN,
    POOL_FULL,
    REPLACED_IF_SET,
    ROW,
    RUNS_FULL,
    STOPPING_COLUMNS,
    STRICT,
    TARGET,
    TEST_COLUMNS,
    TESTS,
    TIME,
    TOGETHER,
    TOP,
    UNANSWERED,
    USED,
    WIDEST,
    AnswerArrays,
    ArrivalArrays,
    BatchArrays,
    Offered,
    ProgramArrays,
    RunArrays,
    WaitingArrays,
    length_of,
    write_match,
    write_path,
    write_run,
)
from spaseq.automaton.registers.kernels.waiting_blocks import enter, make_room
from spaseq.compiled.arrays import Arrays, Float64s, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    assume,
    device_function,
    inlined_device_function,
    lean_kernel,
)


@inlined_device_function
def _drop_strict(batch: BatchArrays, block: int, ordinal: int) -> None:
    """Drop the runs of a slot that waited at a `,` edge for an instant before this one."""
    edge, blocks = batch.program.edge, batch.waiting.block
    for e in range(edge.shape[0] - 1):
        if edge[e, KIND] == STRICT and batch.waiting.made[block + e] != ordinal - 1:
            blocks[block + e, COUNT] = 0


@inlined_device_function
def _end_negated(batch: BatchArrays, gpm: Int32s, first: int, end: int, block: int) -> None:
    """End the runs that wait behind negated steps which solutions of one instant match."""
    program = batch.program
    for row in range(first, end):
        g = gpm[row]
        if g >= 0:
            for i in range(program.kills[g], program.kills[g + 1]):
                e = as_nonnegative(program.killing[i, 0])
                at = block_of(batch, block, e, program.killing[i, 3], row)
                if at >= 0 and batch.waiting.block[at, COUNT]:
                    first_test, end_test = program.killing[i, 1], program.killing[i, 2]
                    end_waiting(batch, at, first_test, end_test, row, EVER)


@device_function
def _stop(
    batch: BatchArrays, gpm: Int32s, first: int, end: int, block: int, floor: int, marks: bool
) -> None:
    """End the waits of runs that solutions of one instant stop, before they are taken.

    With `marks`, only set the registers that protect runs from that. A match that began before
    `floor` and waits for the close of its window is not stopped any more.
    """
    program = batch.program
    for row in range(first, end):
        g = gpm[row]
        if g >= 0:
            for i in range(program.stops[g], program.stops[g + 1]):
                e, register = as_nonnegative(program.stopping[i, 0]), program.stopping[i, 3]
                at = block_of(batch, block, e, program.stopping[i, 4], row)
                lowest = EVER
                if at < 0 or batch.waiting.block[at, COUNT] == 0 or marks != (register >= 0):
                    continue
                first_test, end_test = program.stopping[i, 1], program.stopping[i, 2]
                if marks:
                    mark_waiting(batch, at, first_test, end_test, row, register)
                else:
                    if program.edge[e, KIND] == CLOSING:
                        lowest = floor
                    end_waiting(batch, at, first_test, end_test, row, lowest)


@inlined_device_function
def _set_registers(batch: BatchArrays, e: int, row: int, run: int, previous: int) -> None:
    """Set the registers of a run: those of the run before, then what edge `e` assigns."""
    register, assignment, edge = batch.runs.register, batch.program.assignment, batch.program.edge
    for r in range(register.shape[1]):
        register[run, r] = np.nan if previous < 0 else register[previous, r]
    for i in range(as_nonnegative(edge[e, ASSIGNMENTS]), edge[e + 1, ASSIGNMENTS]):
        r, number, how = as_nonnegative(assignment[i, 0]), assignment[i, 1], assignment[i, 2]
        if how == CLEARED:
            register[run, r] = np.nan
            continue
        value = batch.number[as_nonnegative(number), row]
        if how != REPLACED_IF_SET:
            register[run, r] = taken_in(how, register[run, r], value)
        elif value == value:
            register[run, r] = value


@inlined_device_function
def _waits(batch: BatchArrays, e: int, row: int, run: int) -> bool:
    """Whether a run passes the tests of an edge that read the run alone."""
    first, end = batch.program.edge[e, TESTS], batch.program.edge[e, OFFERED]
    return first == end or is_passed(batch, first, end, row, run)


@lean_kernel
def advance(
    row_arrays: Arrays,
    number: Float64s,
    first_id: int,
    until: int,
    is_sorted: bool,
    counted: int,
    program_arrays: Arrays,
    run_arrays: Arrays,
    waiting_arrays: Arrays,
    progress: Int64s,
    arrival_arrays: Arrays,
    answer_arrays: Arrays,
    outputs: Arrays,
    cursor: Int64s,
) -> int:
    """Process the solutions of a batch, instant by instant.

    Args:
        row_arrays, program_arrays, run_arrays, waiting_arrays, arrival_arrays, answer_arrays: the
            fields of `run_arrays.RowArrays`, `ProgramArrays`, `RunArrays`, `WaitingArrays`,
            `ArrivalArrays` and `AnswerArrays`, as plain tuples.
        number: [C, n] the numbers that are compared.
        first_id: id of the first solution; ids count solutions through all batches.
        until: the row from which no new instant begins, n at most.
        is_sorted: whether small blocks are kept sorted, as the threshold-sequence kernel needs.
        counted: n of WITHIN n EVENTS, else -1.
        progress: [slots, 2] see its columns in `run_arrays`.
        outputs: taken uint8 [n]: 1 for solutions that waiting runs have taken; matched int64: the
            ids of each match's solutions, one match behind the other; ends int64 [, 2]: the end of
            each match in `matched`, and the measure at which it begins; path uint8: the edges that
            took the solutions in `matched`, or empty if not requested.
        cursor: [CURSOR] see its columns in `run_arrays`; at the start of a batch all are zero but
            the first three.

    Returns:
        DONE, or the array that is full; `cursor[NEED]` is the number of missing places. Or
        UNANSWERED.
    """
    slot, gpm, time_ms, k, start, lowest, ordinal = row_arrays
    program, runs = ProgramArrays(*program_arrays), RunArrays(*run_arrays)
    waiting, arrivals = WaitingArrays(*waiting_arrays), ArrivalArrays(*arrival_arrays)
    batch = BatchArrays(program, runs, waiting, arrivals, number, AnswerArrays(*answer_arrays))
    taken, matched, ends, path = outputs
    edge, blocks, node = program.edge, waiting.block, runs.node
    assume(edge.shape[1] == EDGE_COLUMNS)
    assume(program.test.shape[1] == TEST_COLUMNS)
    assume(program.assignment.shape[1] == 3)
    assume(program.killing.shape[1] == KILLING_COLUMNS)
    assume(program.stopping.shape[1] == STOPPING_COLUMNS)
    assume(blocks.shape[1] == BLOCK_COLUMNS)
    assume(progress.shape[1] == 2)
    assume(ends.shape[1] == 2)
    edges, n = edge.shape[0] - 1, len(slot)
    timed, ordered, negates = node.shape[1] > TIME, len(ordinal) > 0, len(program.killing) > 0
    used, top, widest = as_nonnegative(cursor[USED]), as_nonnegative(cursor[TOP]), cursor[WIDEST]
    matched_size, matches = as_nonnegative(cursor[MATCHED]), as_nonnegative(cursor[MATCHES])
    first, count = as_nonnegative(cursor[ROW]), as_nonnegative(cursor[ARRIVALS])
    arrived, entered = as_nonnegative(cursor[ARRIVED]), as_nonnegative(cursor[ENTERED])
    held = as_nonnegative(cursor[HELD])
    full, need, together, competing = DONE, 0, False, False
    for e in range(edges):
        together |= edge[e, KIND] == TOGETHER
        competing |= edge[e, OPENS] >= 0

    while first < until:
        here, now, floor = as_nonnegative(slot[first]), time_ms[first], lowest[first]
        end = first + 1
        while end < n and time_ms[end] == now and slot[end] == here and k[end] == k[first]:
            end += 1

        if count == 0:
            most = len(program.taking) * (end - first) * (1 + 2 * widest * (end - first))
            if most > len(arrivals.row):
                most = most_arrivals(batch, gpm, first, end, here * edges)
            if most > len(arrivals.row):
                full, need = ARRIVALS_FULL, most
                break
            instant = Offered(first, np.nan, now, floor)
            if len(program.asks) > 1 and ask(batch, gpm, first, end, here * edges, instant):
                ask_ahead(batch, row_arrays, end, edges)
                full = UNANSWERED
                break
            if ordered:
                _drop_strict(batch, here * edges, ordinal[first])
                progress[here, ORDINAL] = ordinal[first]
            if counted >= 0:
                progress[here, EVENTS] = floor + counted
            if len(program.stopping):
                _stop(batch, gpm, first, end, here * edges, floor, True)
                _stop(batch, gpm, first, end, here * edges, floor, False)
            count = as_nonnegative(offer_instant(batch, gpm, first, end, here * edges, instant))
            if negates:
                _end_negated(batch, gpm, first, end, here * edges)
            if competing:
                arrived = held = as_nonnegative(hold_complete(batch, 0, count))

        while arrived < count:
            e, row = as_nonnegative(arrivals.edge[arrived]), as_nonnegative(arrivals.row[arrived])
            previous = arrivals.previous[arrived]
            target = as_nonnegative(edge[e, TARGET])
            goes_on = program.leaves[target] < program.leaves[target + 1]
            if entered == 0:
                if goes_on and used == len(node):
                    full, need = RUNS_FULL, count - arrived
                    break
                length, origin = 1, start[row]
                if previous >= 0:
                    length += length_of(node, previous)
                    origin = node[previous, ORIGIN]
                if program.accepts[target] and origin >= floor:
                    if matched_size + length > len(matched):
                        full, need = MATCHED_FULL, length
                        break
                    if matches == len(ends):
                        full, need = ENDS_FULL, 1
                        break
                    matched_size += length
                    ends[matches, 0], ends[matches, 1] = matched_size, origin
                    matches += 1
                    write_match(matched, matched_size, node, first_id + row, previous)
                    if len(path):
                        write_path(path, matched_size, node, e, previous)
                if not goes_on:
                    arrived += 1
                    continue
                write_run(node, used, first_id + row, previous, origin, length, e)
                if timed:
                    node[used, TIME] = now
                _set_registers(batch, e, row, used, previous)
                taken[row] = 1
                used += 1
            run = used - 1
            begin = as_nonnegative(program.leaves[target]) + entered
            for i in range(begin, program.leaves[target + 1]):
                out = as_nonnegative(program.leaving[i])
                entered += 1
                level = threshold_at(program, out, runs, run)
                if level != level or not _waits(batch, out, row, run):
                    continue
                block = as_nonnegative(block_to_wait(batch, here * edges, out, run))
                if edge[out, KIND] == STRICT and waiting.made[block] != ordinal[row]:
                    blocks[block, COUNT] = 0
                    waiting.made[block] = ordinal[row]
                if blocks[block, COUNT] == blocks[block, CAPACITY]:
                    closing = edge[out, KIND] == CLOSING
                    oldest = EVER if closing else floor
                    size = make_room(waiting, block, node, oldest, top, edge[out, INDEXED] >= 0)
                    if size < 0:
                        full, need = POOL_FULL, -size
                        entered -= 1
                        break
                    top += size
                    if not closing:
                        widest = max(widest, size)
                enter(waiting, block, level, run, is_sorted)
            if full != DONE:
                break
            entered = 0
            arrived += 1
        if full != DONE:
            break
        if together:  # runs have come to wait for another solution of this instant
            most = most_together(batch, end - first, here * edges)
            if held + most > len(arrivals.row):
                full, need = ARRIVALS_FULL, held + most
                break
            instant = Offered(first, np.nan, now, floor)
            if most > 0 and len(program.asks) > 1:
                offer_together(batch, gpm, end, here * edges, instant, held, True)
                if batch.answers.size[NOTED] > 0 or batch.answers.size[LACKING] > 0:
                    full = UNANSWERED
                    break
            if most > 0:
                count = as_nonnegative(
                    offer_together(batch, gpm, end, here * edges, instant, held, False)
                )
                if competing:
                    held = as_nonnegative(hold_complete(batch, held, count))
                arrived = held
                if count:
                    continue
        if held:  # all candidates that the instant completes
            count = as_nonnegative(without_forestalled(batch, held, float(first_id + first)))
            arrived, held = 0, 0
            if count:
                continue
        count, arrived = 0, 0
        first = end

    cursor[USED], cursor[TOP], cursor[WIDEST] = used, top, widest
    cursor[MATCHED], cursor[MATCHES] = matched_size, matches
    cursor[ROW], cursor[ARRIVALS], cursor[ARRIVED] = first, count, arrived
    cursor[ENTERED], cursor[HELD], cursor[NEED] = entered, held, need
    return full
