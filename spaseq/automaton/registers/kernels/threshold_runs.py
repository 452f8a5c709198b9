"""The threshold-sequence kernel: the register kernel, reduced to the shape of most queries.

A threshold sequence joins its steps by `;`, each with a different GPM. Its only conditions on
earlier steps require one number of the solution to be greater, or less, than registers of the run.
A solution then moves runs from one block to another, one run after the other, in the order of their
thresholds until one is not exceeded.

The solutions of one instant and slot are visited from the last step to the first. So none of them
meets a run that another one has moved.

The arrays are those of the register kernel, so the two can take turns. An instant at which a slot
has several solutions of one step is left to the register kernel.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels.run_arrays import (
    BEGINS,
    BLOCK_COLUMNS,
    CAPACITY,
    CODE,
    COMPARED,
    COMPARED_SIGN,
    COUNT,
    DONE,
    EDGE,
    END_LEVEL,
    ENDS,
    ENDS_FULL,
    FIRST_LEVEL,
    HEAPED,
    IS_INCLUSIVE,
    LEVEL_SIGN,
    MATCHED,
    MATCHED_FULL,
    MATCHES,
    NEED,
    NONE,
    NOTHING,
    ONWARD,
    ORIGIN,
    PLACE,
    PLACE_BITS,
    POOL_FULL,
    ROW,
    RUNS_FULL,
    STEP_COLUMNS,
    TIED,
    TIME,
    TOP,
    USED,
    WIDEST,
    AheadArrays,
    RowArrays,
    WaitingArrays,
    length_of,
    write_match,
    write_run,
)
from spaseq.automaton.registers.kernels.waiting_blocks import enter, make_room, remove_least, settle
from spaseq.compiled.arrays import Arrays, Float64s, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    assume,
    device_function,
    inlined_device_function,
    lean_kernel,
)


@inlined_device_function
def _are_together(rows: RowArrays, row: int, other: int) -> bool:
    """Whether two rows are of one instant and slot."""
    first, second = as_nonnegative(row), as_nonnegative(other)
    together: bool = (
        rows.time_ms[first] == rows.time_ms[second]
        and rows.slot[first] == rows.slot[second]
        and rows.k[first] == rows.k[second]
    )
    return together


@device_function
def _first_together(rows: RowArrays, row: int) -> int:
    """The first row of the instant and slot of a row."""
    while row > 0 and _are_together(rows, row - 1, row):
        row -= 1
    return row


@device_function
def _arrange(rows: RowArrays, step: Int32s, first: int, visited: Int32s, place: int) -> int:
    """Write the rows of the instant and slot that begin with `first`, from the last step to the
    first, to `visited` from `place` on.

    Returns:
        The end of these rows; `first` if two are of one step, or `visited` has no room for them.
    """
    end, gpm = first, rows.gpm
    while end < len(gpm) and _are_together(rows, first, end):
        at = place + end - first
        if at == len(visited):
            return first
        edge = step[gpm[end] + 1, EDGE]
        while at > place:
            other = step[gpm[visited[at - 1]] + 1, EDGE]
            if other == edge != NONE:
                return first
            if other >= edge:
                break
            visited[at] = visited[at - 1]
            at -= 1
        visited[at] = end
        end += 1
    return end


@inlined_device_function
def _look_up(
    rows: RowArrays, number: Float64s, step: Int32s, edges: int, ahead: AheadArrays, place: int
) -> None:
    """Write the effect of the row at a position of `ahead.visited`, and its level."""
    at = as_nonnegative(ahead.visited[place])
    s = as_nonnegative(rows.gpm[at] + 1)
    ahead.code[place] = ((np.int64(rows.slot[at]) * edges) << PLACE_BITS) + step[s, CODE]
    compared = step[s, COMPARED]
    if compared >= 0:
        value = number[as_nonnegative(compared), at]
        ahead.level[place] = -value if step[s, COMPARED_SIGN] < 0 else value
    else:
        ahead.level[place] = -np.inf if step[s, CODE] & 3 == BEGINS else 0.0


@device_function
def _prepare(
    rows: RowArrays, number: Float64s, step: Int32s, edges: int, first: int, ahead: AheadArrays
) -> int:
    """Look up the effects of the rows from `first` on; `first` begins an instant of its slot.

    Returns:
        The end of the rows that are prepared: where `ahead` is full, or the first row of several
        that cannot be arranged.
    """
    assume(step.shape[1] == STEP_COLUMNS)
    row, end = first, min(first + len(ahead.code), len(rows.slot))
    while row < end:
        after, place = row + 1, as_nonnegative(row - first)
        if after < len(rows.slot) and _are_together(rows, row, after):
            after = _arrange(rows, step, row, ahead.visited, place)
            if after == row:
                break
        else:
            ahead.visited[place] = row
        while row < after:
            _look_up(rows, number, step, edges, ahead, as_nonnegative(row - first))
            row += 1
    return row


@inlined_device_function
def _threshold(
    step: Int32s, s: int, threshold_register: Int32s, register: Float64s, run: int
) -> float:
    """The threshold of a run where it waits next; NaN if no solution can exceed it."""
    if step[s, FIRST_LEVEL] == step[s, END_LEVEL]:
        return -np.inf
    which = as_nonnegative(threshold_register[as_nonnegative(step[s, FIRST_LEVEL])])
    most: float = register[run, which]
    most = -most if step[s, LEVEL_SIGN] < 0 else most
    for i in range(as_nonnegative(step[s, FIRST_LEVEL] + 1), as_nonnegative(step[s, END_LEVEL])):
        other = register[run, as_nonnegative(threshold_register[as_nonnegative(i)])]
        other = -other if step[s, LEVEL_SIGN] < 0 else other
        most = other if other > most or other != other else most
    return most


@inlined_device_function
def _value(
    source: int, number: Float64s, row: int, register: Float64s, previous: int, r: int
) -> float:
    """The value of register `r` of a run that has taken a solution; `previous` may be NONE."""
    value: float = np.nan
    if source >= 0:
        value = number[as_nonnegative(source), row]
    elif previous >= 0:
        value = register[as_nonnegative(previous), r]
    return value


@inlined_device_function
def _set_registers(
    source: Int32s,
    s: int,
    number: Float64s,
    row: int,
    register: Float64s,
    run: int,
    previous: int,
) -> None:
    """Set all registers of a run that has taken a solution."""
    # The first one is before the loop, because most sequences have no other.
    if register.shape[1] > 0:
        register[run, 0] = _value(source[s, 0], number, row, register, previous, 0)
    if register.shape[1] > 1:
        for i in range(1, register.shape[1]):
            r = as_nonnegative(i)
            register[run, r] = _value(source[s, r], number, row, register, previous, r)


@lean_kernel
def advance_threshold_sequence(
    row_arrays: Arrays,
    number: Float64s,
    first_id: int,
    edges: int,
    step: Int32s,
    source: Int32s,
    threshold_register: Int32s,
    run_arrays: Arrays,
    waiting_arrays: Arrays,
    ahead: Arrays,
    outputs: Arrays,
    cursor: Int64s,
) -> int:
    """Process the solutions of a batch up to the first instant with several of one step.

    Args:
        row_arrays, number, first_id, run_arrays, waiting_arrays, outputs: as
            `register_runs.advance` takes them. Ordinals are not read. Nodes have no time, because
            no operator bounds a gap.
        edges, step, source, threshold_register: the fields of `threshold_steps.ThresholdSteps`.
        ahead: the fields of `run_arrays.AheadArrays`, which `_prepare` fills.
        cursor: as there; ROW may point into the middle of a row's effects, or of the rows of an
            instant, in the order of their visits.

    Returns:
        DONE, or the array that is full, or TIED: the register kernel must continue.
    """
    rows, waiting = RowArrays(*row_arrays), WaitingArrays(*waiting_arrays)
    slot, gpm, start, lowest = rows.slot, rows.gpm, rows.start, rows.lowest
    node, register = run_arrays
    blocks, _, threshold, run, _ = waiting
    taken, matched, ends = outputs
    prepared = AheadArrays(*ahead)
    assume(node.shape[1] == TIME)
    assume(blocks.shape[1] == BLOCK_COLUMNS)
    assume(step.shape[1] == STEP_COLUMNS)
    assume(ends.shape[1] == 2)
    used, top, widest = as_nonnegative(cursor[USED]), as_nonnegative(cursor[TOP]), cursor[WIDEST]
    matched_size, matches = as_nonnegative(cursor[MATCHED]), as_nonnegative(cursor[MATCHES])
    visit, sizes = as_nonnegative(cursor[ROW]), len(node)
    begin, until = visit, visit  # of the rows that are prepared
    full, need = DONE, 0

    while True:
        if visit == until:
            if visit < len(slot):
                begin = _first_together(rows, visit)
                until = _prepare(rows, number, step, edges, begin, prepared)
            if visit >= until:
                break
        place = as_nonnegative(visit - begin)
        row = as_nonnegative(prepared.visited[place])
        code, level = as_nonnegative(prepared.code[place]), prepared.level[place]
        block = as_nonnegative(code >> PLACE_BITS)
        kind = code & 3
        if kind == BEGINS:
            s = as_nonnegative(gpm[row] + 1)
            if used == sizes:
                full, need = RUNS_FULL, 1
                break
            if blocks[block, COUNT] == blocks[block, CAPACITY]:
                size = make_room(waiting, block, node, lowest[row], top, step[s, COMPARED] >= 0)
                if size < 0:
                    full, need = POOL_FULL, -size
                    break
                top, widest = top + size, max(widest, size)
            write_run(node, used, first_id + row, NONE, start[row], 1, step[s, EDGE])
            _set_registers(source, s, number, row, register, used, NONE)
            if level == level:
                enter(waiting, block, level, used)
            taken[row] = 1
            used += 1
            visit += 1
            continue
        if kind == NOTHING:
            visit += 1
            continue
        s, floor, inclusive = as_nonnegative(gpm[row] + 1), lowest[row], code & IS_INCLUSIVE != 0
        place = as_nonnegative(blocks[block, PLACE])
        end = as_nonnegative(place + blocks[block, COUNT])
        heaped = blocks[block, HEAPED] != 0 and end > place
        while True:
            at = place if heaped else as_nonnegative(end - 1)
            # With branches, unlike `edge_offers`: here the processor predicts them.
            if not threshold[at] < level and (not inclusive or threshold[at] != level):
                break
            previous = as_nonnegative(run[at])
            origin = node[previous, ORIGIN]
            if origin >= floor:
                length = length_of(node, previous) + 1
                if kind == ENDS:
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
                else:
                    arrives = as_nonnegative(block + step[s, ONWARD])
                    if used == sizes:
                        full, need = RUNS_FULL, 1
                        break
                    if blocks[arrives, COUNT] == blocks[arrives, CAPACITY]:
                        indexed = step[s, FIRST_LEVEL] < step[s, END_LEVEL]
                        size = make_room(waiting, arrives, node, floor, top, indexed)
                        if size < 0:
                            full, need = POOL_FULL, -size
                            break
                        top, widest = top + size, max(widest, size)
                    write_run(node, used, first_id + row, previous, origin, length, step[s, EDGE])
                    _set_registers(source, s, number, row, register, used, previous)
                    next_level = _threshold(step, s, threshold_register, register, used)
                    if next_level == next_level:
                        enter(waiting, arrives, next_level, used)
                    taken[row] = 1
                    used += 1
            end = as_nonnegative(end - 1)
            if heaped:
                remove_least(threshold, run, place, as_nonnegative(end - place))
                heaped = end > place
        left = as_nonnegative(end - place)
        if blocks[block, HEAPED] and 4 * left <= waiting.few[0]:
            settle(waiting, block, left)
        else:
            blocks[block, COUNT] = left
        if full != DONE:
            break
        visit += 1

    if full == DONE and visit < len(slot):
        full = TIED
    cursor[USED], cursor[TOP], cursor[WIDEST] = used, top, widest
    cursor[MATCHED], cursor[MATCHES] = matched_size, matches
    cursor[ROW], cursor[NEED] = visit, need
    return full
