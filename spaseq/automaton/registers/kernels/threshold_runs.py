"""Runs of plain sequences: steps joined by `;`, each by a GPM of its own, whose conditions on
earlier ones ask that one number exceed registers of the run, or be less.

That is the shape of most queries, and what `kernels.runs` does for every other one is done here
without what such a sequence has no need of. A solution takes runs away from one edge and lets them
wait at another, so that each can be done with before the next is looked at; it takes them in the
order of their thresholds until one is not exceeded. The arrays are the same, and the next rows may
always be worked off by the other kernel: by it those instants have to be at which a slot has
several solutions.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels.run_arrays import (
    BEFORE,
    BEGINS,
    BLOCK_COLUMNS,
    CAPACITY,
    CODE,
    COMPARED,
    COMPARED_SIGN,
    COUNT,
    DONE,
    EDGE,
    EDGE_BITS,
    END_LEVEL,
    ENDS,
    ENDS_FULL,
    FIRST_LEVEL,
    FOUND,
    FOUND_FULL,
    HEAPED,
    IS_INCLUSIVE,
    LEVEL_SIGN,
    MATCHES,
    NEED,
    NONE,
    NOTHING,
    ONWARD,
    ORIGIN,
    PATH,
    PLACE,
    PLACE_BITS,
    POOL_FULL,
    ROW,
    RUNS_FULL,
    SOLUTION,
    STEP_COLUMNS,
    TIME,
    TOGETHER,
    TOP,
    USED,
    WIDEST,
)
from spaseq.automaton.registers.kernels.waits import FEW, enter, make_room, settle, sink
from spaseq.compiled.arrays import Array, Float64s, Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    assume,
    device_function,
    inlined_device_function,
    lean_kernel,
)


@device_function
def _prepare(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    own: Float64s,
    step: Int32s,
    edges: int,
    row: int,
    look: Int64s,
    value: Float64s,
) -> int:
    """Write down for each row, from `row` on, what it looks at and compares, as `look` and `value`,
    which need no jumps that cannot be foreseen; up to the first instant of several rows, which is
    returned, or as far as the two reach: no further than the processor keeps at hand."""
    assume(step.shape[1] == STEP_COLUMNS)
    end = min(row + len(look), len(slot))
    for i in range(row, end):
        at, after, place = as_nonnegative(i), as_nonnegative(i + 1), as_nonnegative(i - row)
        together = after < len(slot) and time_ms[at] == time_ms[after]
        if together and slot[at] == slot[after] and k[at] == k[after]:
            return i
        s = as_nonnegative(gpm[at] + 1)
        look[place] = ((np.int64(slot[at]) * edges) << PLACE_BITS) + step[s, CODE]
        compared = step[s, COMPARED]
        if compared >= 0:
            number = own[as_nonnegative(compared), at]
            value[place] = -number if step[s, COMPARED_SIGN] < 0 else number
        else:
            value[place] = -np.inf if step[s, CODE] & 3 == BEGINS else 0.0
    return end


@inlined_device_function
def _level(step: Int32s, s: int, threshold: Int32s, register: Float64s, run: int) -> float:
    """What a run waits to be exceeded."""
    if step[s, FIRST_LEVEL] == step[s, END_LEVEL]:
        return -np.inf
    which = as_nonnegative(threshold[as_nonnegative(step[s, FIRST_LEVEL])])
    level: float = register[run, which]
    level = -level if step[s, LEVEL_SIGN] < 0 else level
    for i in range(as_nonnegative(step[s, FIRST_LEVEL] + 1), as_nonnegative(step[s, END_LEVEL])):
        other = register[run, as_nonnegative(threshold[as_nonnegative(i)])]
        other = -other if step[s, LEVEL_SIGN] < 0 else other
        level = other if other > level or other != other else level
    return level


@inlined_device_function
def _set_registers(
    source: Int32s, s: int, own: Float64s, row: int, register: Float64s, run: int, earlier: int
) -> None:
    """The registers of a run that has taken a solution; `earlier` is the run before, or NONE."""
    # The first one stands by itself, as mostly there are no others.
    if register.shape[1] > 0:
        number = np.nan
        if source[s, 0] >= 0:
            number = own[as_nonnegative(source[s, 0]), row]
        elif earlier >= 0:
            number = register[as_nonnegative(earlier), 0]
        register[run, 0] = number
    if register.shape[1] > 1:
        for i in range(1, register.shape[1]):
            r = as_nonnegative(i)
            number = np.nan
            if source[s, r] >= 0:
                number = own[as_nonnegative(source[s, r]), row]
            elif earlier >= 0:
                number = register[as_nonnegative(earlier), r]
            register[run, r] = number


@inlined_device_function
def _leave(key: Float64s, run: Int32s, place: int, count: int) -> None:
    """Take the first wait of a heap away, of which `count` are left."""
    key[place], run[place] = key[as_nonnegative(place + count)], run[as_nonnegative(place + count)]
    sink(key, run, place, count, 0)


@lean_kernel
def advance_plain(
    slot: Int32s,
    gpm: Int32s,
    time_ms: Int64s,
    k: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    own: Float64s,
    number: int,
    edges: int,
    step: Int32s,
    source: Int32s,
    threshold: Int32s,
    runs: tuple[Array, ...],
    waits: tuple[Array, ...],
    scratch: tuple[Array, ...],
    cursor: Int64s,
) -> int:
    """Work off n solutions, in the order of instants, up to the first of several rows.

    Args:
        slot .. number: as `kernels.runs.advance` takes them; `ordinal` is not looked at.
        edges, step, source, threshold: see `registers.compiled.threshold_sequence`.
        runs, waits: as `kernels.runs.advance` takes them, where no operator bounds a gap.
        scratch: taken, found, ends, as there; look, value: of any size, AHEAD is best.
        cursor: as there; ROW is where it goes on, in the middle of an instant's runs maybe.

    Returns: DONE, or which array is full, or TOGETHER: the other kernel has to go on.
    """
    nodes, register = runs
    blocks, _, key, run = waits
    taken, found, ends, look, compared = scratch
    assume(nodes.shape[1] == TIME)
    assume(blocks.shape[1] == BLOCK_COLUMNS)
    assume(step.shape[1] == STEP_COLUMNS)
    assume(ends.shape[1] == 2)
    used, top, widest = as_nonnegative(cursor[USED]), as_nonnegative(cursor[TOP]), cursor[WIDEST]
    found_size, matches = as_nonnegative(cursor[FOUND]), as_nonnegative(cursor[MATCHES])
    row, sizes = as_nonnegative(cursor[ROW]), len(nodes)
    begin, until = row, row  # of the rows that are prepared
    full, need = DONE, 0

    while True:
        if row == until:
            begin = row
            if row < len(slot):
                until = _prepare(slot, gpm, time_ms, k, own, step, edges, row, look, compared)
            if row == until:
                break
        code, value = (
            as_nonnegative(look[as_nonnegative(row - begin)]),
            compared[as_nonnegative(row - begin)],
        )
        block = as_nonnegative(code >> PLACE_BITS)
        kind = code & 3
        end = as_nonnegative(blocks[block, PLACE] + blocks[block, COUNT])
        if kind == BEGINS:
            if used == sizes:
                full, need = RUNS_FULL, 1
                break
            s = as_nonnegative(gpm[row] + 1)
            if blocks[block, COUNT] == blocks[block, CAPACITY]:
                size = make_room(
                    blocks, block, key, run, nodes, lowest[row], top, step[s, COMPARED] >= 0
                )
                if size < 0:
                    full, need = POOL_FULL, -size
                    break
                top, widest = top + size, max(widest, size)
            nodes[used, SOLUTION], nodes[used, BEFORE] = number + row, NONE
            nodes[used, ORIGIN] = start[row]
            nodes[used, PATH] = 1 << EDGE_BITS | step[s, EDGE]
            _set_registers(source, s, own, row, register, used, NONE)
            if value == value:
                enter(blocks, block, key, run, value, used)
            taken[row] = 1
            used += 1
            row += 1
            continue
        if kind == NOTHING:
            row += 1
            continue
        floor, inclusive = lowest[row], code & IS_INCLUSIVE != 0
        place = as_nonnegative(blocks[block, PLACE])
        heaped = blocks[block, HEAPED] != 0 and end > place
        if kind == ENDS:
            while True:
                at = place if heaped else as_nonnegative(end - 1)
                if not key[at] < value and (not inclusive or key[at] != value):
                    break
                earlier = as_nonnegative(run[at])
                begun = nodes[earlier, ORIGIN]
                if begun >= floor:
                    length = (nodes[earlier, PATH] >> EDGE_BITS) + 1
                    if found_size + length > len(found):
                        full, need = FOUND_FULL, length
                        break
                    if matches == len(ends):
                        full, need = ENDS_FULL, 1
                        break
                    found_size += length
                    ends[matches, 0], ends[matches, 1] = found_size, begun
                    matches += 1
                    last, node = as_nonnegative(found_size - 2), nodes[earlier, BEFORE]
                    found[as_nonnegative(last + 1)] = number + row
                    found[last] = nodes[earlier, SOLUTION]
                    while node >= 0:
                        last = as_nonnegative(last - 1)
                        found[last] = nodes[as_nonnegative(node), SOLUTION]
                        node = nodes[as_nonnegative(node), BEFORE]
                end = as_nonnegative(end - 1)
                if heaped:
                    _leave(key, run, place, as_nonnegative(end - place))
                    heaped = end > place
        else:
            s = as_nonnegative(gpm[row] + 1)
            arrives = as_nonnegative(block + step[s, ONWARD])
            while True:
                at = place if heaped else as_nonnegative(end - 1)
                if not key[at] < value and (not inclusive or key[at] != value):
                    break
                earlier = as_nonnegative(run[at])
                begun = nodes[earlier, ORIGIN]
                if begun >= floor:
                    if used == sizes:
                        full, need = RUNS_FULL, 1
                        break
                    if blocks[arrives, COUNT] == blocks[arrives, CAPACITY]:
                        indexed = step[s, FIRST_LEVEL] < step[s, END_LEVEL]
                        size = make_room(blocks, arrives, key, run, nodes, floor, top, indexed)
                        if size < 0:
                            full, need = POOL_FULL, -size
                            break
                        top, widest = top + size, max(widest, size)
                    path = (nodes[earlier, PATH] >> EDGE_BITS) + 1
                    nodes[used, SOLUTION], nodes[used, BEFORE] = number + row, earlier
                    nodes[used, ORIGIN] = begun
                    nodes[used, PATH] = path << EDGE_BITS | step[s, EDGE]
                    _set_registers(source, s, own, row, register, used, earlier)
                    level = _level(step, s, threshold, register, used)
                    if level == level:
                        enter(blocks, arrives, key, run, level, used)
                    taken[row] = 1
                    used += 1
                end = as_nonnegative(end - 1)
                if heaped:
                    _leave(key, run, place, as_nonnegative(end - place))
                    heaped = end > place
        count = as_nonnegative(end - place)
        if blocks[block, HEAPED] and 4 * count <= FEW:
            settle(blocks, block, count, key, run)
        else:
            blocks[block, COUNT] = count
        if full != DONE:
            break
        row += 1

    if full == DONE and row < len(slot):
        full = TOGETHER
    cursor[USED], cursor[TOP], cursor[WIDEST] = used, top, widest
    cursor[FOUND], cursor[MATCHES] = found_size, matches
    cursor[ROW], cursor[NEED] = row, need
    return full
