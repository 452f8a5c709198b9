"""Offers of a solution to the runs that wait at an edge: some take it, the others stay.

A run takes a solution whose level exceeds the run's threshold (or equals it, if the edge is
inclusive) and that passes the edge's other tests. A run that takes leaves the block, unless the
edge is of kind ANY (`:`). Expired runs are dropped where an offer meets them.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.batch.kernels.comparisons import holds
from spaseq.automaton.registers.kernels.asked_tests import is_answered
from spaseq.automaton.registers.kernels.candidates import is_forestalled
from spaseq.automaton.registers.kernels.run_arrays import (
    ADDED,
    ANY,
    AS_IS,
    ASKED,
    COUNT,
    EVER,
    EXPIRED,
    HEAPED,
    HOW,
    INCLUSIVE,
    INDEXED,
    JOINED,
    JOINED_REGISTER,
    KIND,
    LEFT,
    LESSER,
    NONE,
    OFFERED,
    OPENS,
    OPERATOR,
    ORIGIN,
    PLACE,
    REPLACED,
    RIGHT,
    SIGN,
    SUM,
    TESTS,
    THRESHOLDS,
    TIME,
    WITHIN,
    ArrivalArrays,
    BatchArrays,
    Offered,
    ProgramArrays,
    RunArrays,
)
from spaseq.automaton.registers.kernels.waiting_blocks import (
    drop_expired,
    remove_least,
    settle,
    sift_up,
)
from spaseq.compiled.arrays import Float64s, Int32s
from spaseq.compiled.decorators import as_nonnegative, device_function, inlined_device_function


@inlined_device_function
def taken_in(how: int, value: float, number: float) -> float:
    """The value of a register after it has taken a number."""
    if how == REPLACED:
        return number
    if how == SUM:
        return value + number
    if how == LESSER:
        return min(value, number)
    return max(value, number)


@inlined_device_function
def passes(batch: BatchArrays, first: int, end: int, row: int, run: int) -> bool:
    """Whether a solution passes the tests `first:end` against a run.

    Without a run (NONE) the tests read the solution only.
    """
    test, register = batch.program.test, batch.runs.register
    for i in range(first, end):
        if test[i, OPERATOR] == ASKED:
            if not is_answered(batch, test[i, LEFT], row, run):
                return False
            continue
        left, right, how = test[i, LEFT], test[i, RIGHT], test[i, HOW]
        value = batch.number[left, row] if left >= 0 else register[run, ~left]
        if how == AS_IS:
            against = register[run, right]
        elif how == REPLACED:
            against = batch.number[test[i, ADDED], row]
        else:
            against = taken_in(how, register[run, right], batch.number[test[i, ADDED], row])
        if not holds(test[i, OPERATOR], value, against):
            return False
    return True


@device_function
def is_passed(batch: BatchArrays, first: int, end: int, row: int, run: int) -> bool:
    """`passes` where its code need not be inlined, so that it is compiled once."""
    return passes(batch, first, end, row, run)


@inlined_device_function
def exceeds(level: float, threshold: float, inclusive: bool) -> bool:
    """Whether a level satisfies a threshold; never if that is NaN."""
    satisfies: bool = (level > threshold) | (inclusive & (level == threshold))
    return satisfies


@inlined_device_function
def is_alive(batch: BatchArrays, e: int, run: int, offered: Offered) -> bool:
    """Whether a run at edge `e` is alive.

    Its window and the operator's gap are not over, and no other candidate of its bracket forestalls
    it.
    """
    node, gap_ms = batch.runs.node, batch.program.gap_ms[e]
    alive: bool = node[run, ORIGIN] >= offered.lowest
    if gap_ms >= 0:
        alive &= offered.time_ms - node[run, TIME] <= gap_ms
    if batch.program.edge[e, OPENS] >= 0 or batch.program.edge[e, WITHIN] >= 0:
        alive = alive and not is_forestalled(batch.program.edge, batch.runs, e, run)
    return alive


@inlined_device_function
def _arrive(arrivals: ArrivalArrays, at: int, run: int, row: int, e: int) -> None:
    """Write that a run takes a solution along edge `e`."""
    arrivals.previous[at], arrivals.row[at], arrivals.edge[at] = run, row, e


@inlined_device_function
def block_of(batch: BatchArrays, block: int, e: int, joined: int, row: int) -> int:
    """The block of the runs that a solution concerns at an edge; NONE: it concerns none.

    `block` is the first block of its slot; `joined` is its number by which the runs wait, or NONE.
    """
    if joined < 0:
        return block + e
    term = batch.number[as_nonnegative(joined), row]
    if term != term:
        return NONE
    at: int = int(term) * (batch.program.edge.shape[0] - 1) + e
    return at


@inlined_device_function
def block_of_taking(batch: BatchArrays, block: int, e: int, row: int) -> int:
    """`block_of` for a solution that may be taken along the edge."""
    return block_of(batch, block, e, batch.program.edge[e, JOINED], row)


@inlined_device_function
def block_to_wait(batch: BatchArrays, block: int, e: int, run: int) -> int:
    """The block where a run waits at an edge; `block` is the first block of its slot."""
    edge = batch.program.edge
    if edge[e, JOINED] < 0:
        return block + e
    term = batch.runs.register[run, as_nonnegative(edge[e, JOINED_REGISTER])]
    if term != term:  # no solution is taken
        return block + e
    at: int = int(term) * (edge.shape[0] - 1) + e
    return at


@inlined_device_function
def level_of(edge: Int32s, e: int, number: Float64s, row: int) -> float:
    """The level of a solution at an edge: its indexed number, 0 if there is none.

    The number is negated where the solution must be less.
    """
    if edge[e, INDEXED] < 0:
        return 0.0
    level: float = number[as_nonnegative(edge[e, INDEXED]), row]
    return -level if edge[e, SIGN] < 0 else level


@inlined_device_function
def threshold_at(program: ProgramArrays, e: int, runs: RunArrays, run: int) -> float:
    """The threshold of a run at an edge: the maximum over its registers there.

    The registers are negated where the solution must be less. -inf if there is none, NaN if no
    solution can exceed them.
    """
    edge = program.edge
    if edge[e, INDEXED] < 0:
        return -np.inf
    most = -np.inf
    for i in range(as_nonnegative(edge[e, THRESHOLDS]), edge[e + 1, THRESHOLDS]):
        value = runs.register[run, as_nonnegative(program.threshold_register[i])]
        if edge[e, SIGN] < 0:
            value = -value
        if value != value:
            return np.nan
        most = max(most, value)
    return most


@inlined_device_function
def offer_in_turn(batch: BatchArrays, block: int, e: int, offered: Offered, count: int) -> int:
    """Offer a solution to each run of a block that is no heap.

    No processor can predict which runs take it. So each run is written both as one that takes and
    as one that stays, and the two counters decide.

    Returns:
        The number of arrivals, `count` before.
    """
    edge, arrivals = batch.program.edge, batch.arrivals
    blocks, _, thresholds, runs, _ = batch.waiting
    place, kept = as_nonnegative(blocks[block, PLACE]), 0
    stays, inclusive = edge[e, KIND] == ANY, edge[e, INCLUSIVE] != 0
    first_test, end_test = edge[e, OFFERED], edge[e + 1, TESTS]
    for i in range(place, place + blocks[block, COUNT]):
        threshold, run = thresholds[i], as_nonnegative(runs[i])
        alive = is_alive(batch, e, run, offered)
        takes = alive & exceeds(offered.level, threshold, inclusive)
        if first_test < end_test:
            takes = takes and passes(batch, first_test, end_test, offered.row, run)
        _arrive(arrivals, count, run, offered.row, e)
        count += int(takes)
        thresholds[place + kept], runs[place + kept] = threshold, run
        kept += int(alive & (stays | (not takes)))
    blocks[block, COUNT] = kept
    return count


@inlined_device_function
def offer_to_heap(batch: BatchArrays, block: int, e: int, offered: Offered, count: int) -> int:
    """Offer a solution to the runs of a heap; runs whose threshold exceeds it are not visited.

    Returns:
        The number of arrivals, `count` before.
    """
    if batch.program.edge[e, KIND] == ANY:
        return _visit_heap(batch, block, e, offered, count)
    return _take_from_heap(batch, block, e, offered, count)


@inlined_device_function
def _visit_heap(batch: BatchArrays, block: int, e: int, offered: Offered, count: int) -> int:
    """`offer_to_heap` where runs stay: visit the heap from the top down."""
    edge, arrivals, stack = batch.program.edge, batch.arrivals, batch.arrivals.stack
    blocks, _, thresholds, runs, _ = batch.waiting
    place, size = as_nonnegative(blocks[block, PLACE]), blocks[block, COUNT]
    inclusive = edge[e, INCLUSIVE] != 0
    expired, left = 0, 1
    stack[0] = 0
    while left:
        left -= 1
        at = stack[left]
        run = as_nonnegative(runs[place + at])
        if exceeds(offered.level, thresholds[place + at], inclusive):
            if 2 * at + 1 < size:
                stack[left] = 2 * at + 1
                left += 1
            if 2 * at + 2 < size:
                stack[left] = 2 * at + 2
                left += 1
            if not is_alive(batch, e, run, offered):
                expired += 1
            elif passes(batch, edge[e, OFFERED], edge[e + 1, TESTS], offered.row, run):
                _arrive(arrivals, count, run, offered.row, e)
                count += 1
    blocks[block, EXPIRED] += expired
    if blocks[block, EXPIRED] > size:
        drop_expired(batch.waiting, block, batch.runs.node, offered.lowest)
        blocks[block, EXPIRED] = 0
    return count


@inlined_device_function
def _take_from_heap(batch: BatchArrays, block: int, e: int, offered: Offered, count: int) -> int:
    """`offer_to_heap` where runs leave: remove the least until its threshold exceeds the level.

    Runs that fail another test wait behind the heap's end and are put back.
    """
    edge, arrivals = batch.program.edge, batch.arrivals
    blocks, _, thresholds, runs, _ = batch.waiting
    place, size = as_nonnegative(blocks[block, PLACE]), blocks[block, COUNT]
    inclusive = edge[e, INCLUSIVE] != 0
    end, back = place + size, 0
    while size:
        threshold, run = thresholds[place], as_nonnegative(runs[place])
        if not exceeds(offered.level, threshold, inclusive):
            break
        size -= 1
        remove_least(thresholds, runs, place, as_nonnegative(size))
        if not is_alive(batch, e, run, offered):
            continue
        if passes(batch, edge[e, OFFERED], edge[e + 1, TESTS], offered.row, run):
            _arrive(arrivals, count, run, offered.row, e)
            count += 1
        else:
            back += 1
            thresholds[end - back], runs[end - back] = threshold, run
    for at in range(end - back, end):
        thresholds[place + size], runs[place + size] = thresholds[at], runs[at]
        sift_up(thresholds, runs, place, size)
        size += 1
    if 4 * size > batch.waiting.few[0]:
        blocks[block, COUNT] = size
    else:
        settle(batch.waiting, block, size)
    return count


@device_function
def offer_several(
    batch: BatchArrays, block: int, e: int, gpm: Int32s, end: int, offered: Offered, count: int
) -> int:
    """Offer the solutions of one GPM at one instant to the runs of a block; a run takes each of
    them.

    The solutions are rows `offered.row` to `end`. `gpm` [n] is the GPM of each row. `offered.level`
    is not read.

    Returns:
        The number of arrivals, `count` before.
    """
    edge, arrivals, first = batch.program.edge, batch.arrivals, offered.row
    blocks, _, thresholds, runs, _ = batch.waiting
    place, kept = as_nonnegative(blocks[block, PLACE]), 0
    stays, inclusive = edge[e, KIND] == ANY, edge[e, INCLUSIVE] != 0
    for i in range(place, place + blocks[block, COUNT]):
        run, takes = as_nonnegative(runs[i]), False
        if not is_alive(batch, e, run, offered):
            continue
        for row in range(first, end):
            if gpm[row] == gpm[first]:
                level = level_of(edge, e, batch.number, row)
                if exceeds(level, thresholds[i], inclusive) and is_passed(
                    batch, edge[e, OFFERED], edge[e + 1, TESTS], row, run
                ):
                    _arrive(arrivals, count, run, row, e)
                    count += 1
                    takes = True
        if takes and not stays:
            continue
        thresholds[place + kept], runs[place + kept] = thresholds[i], run
        kept += 1
    if kept < blocks[block, COUNT]:
        settle(batch.waiting, block, kept)
    return count


@device_function
def mark_waiting(
    batch: BatchArrays, block: int, first_test: int, end_test: int, row: int, register: int
) -> None:
    """Set a register to 0 in the waiting runs against which a solution passes the tests."""
    place = batch.waiting.block[block, PLACE]
    for i in range(place, place + batch.waiting.block[block, COUNT]):
        run = batch.waiting.run[i]
        if is_passed(batch, first_test, end_test, row, run):
            batch.runs.register[run, register] = 0.0


@device_function
def end_waiting(
    batch: BatchArrays, block: int, first_test: int, end_test: int, row: int, lowest: int
) -> None:
    """Drop the waiting runs against which a solution passes the tests.

    Runs that began before the measure `lowest` stay.
    """
    blocks, _, thresholds, runs, _ = batch.waiting
    if first_test == end_test and lowest == EVER:
        blocks[block, COUNT] = 0
        blocks[block, HEAPED] = 0
        return
    place, kept = blocks[block, PLACE], 0
    for i in range(place, place + blocks[block, COUNT]):
        run = as_nonnegative(runs[i])
        over = batch.runs.node[run, ORIGIN] < lowest
        if over or not passes(batch, first_test, end_test, row, run):
            thresholds[place + kept], runs[place + kept] = thresholds[i], runs[i]
            kept += 1
    if kept < blocks[block, COUNT]:
        settle(batch.waiting, block, kept)
