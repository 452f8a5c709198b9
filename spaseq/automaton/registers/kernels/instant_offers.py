"""Offers of all solutions of an instant to the runs of their slot."""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels.asking import ask_taking
from spaseq.automaton.registers.kernels.edge_offers import (
    block_of_taking,
    is_passed,
    level_of,
    offer_in_turn,
    offer_several,
    offer_to_heap,
)
from spaseq.automaton.registers.kernels.run_arrays import (
    COUNT,
    FIRST,
    HEAPED,
    KIND,
    NONE,
    TESTS,
    TOGETHER,
    BatchArrays,
    Offered,
)
from spaseq.compiled.arrays import Int32s
from spaseq.compiled.decorators import (
    as_nonnegative,
    device_function,
    inlined_device_function,
)


@device_function
def most_arrivals(batch: BatchArrays, gpm: Int32s, first: int, end: int, block: int) -> int:
    """An upper bound for the arrivals at one instant, rows `first:end`.

    `block` is the first block of their slot.
    """
    program, most = batch.program, 0
    for row in range(first, end):
        g = gpm[row]
        if g >= 0:
            for t in range(program.takes[g], program.takes[g + 1]):
                at = block_of_taking(batch, block, as_nonnegative(program.taking[t]), row)
                if at >= 0:
                    most += 1 + batch.waiting.block[at, COUNT] * (end - first)
    return most


@inlined_device_function
def _begins(batch: BatchArrays, gpm: Int32s, first: int, end: int, row: int, e: int) -> bool:
    """Whether a match may begin with a solution at an edge out of the initial state.

    `first:end` are the rows of its instant.
    """
    program = batch.program
    if not is_passed(batch, program.edge[e, TESTS], program.edge[e + 1, TESTS], row, NONE):
        return False
    if len(program.stopping):
        for other in range(first, end):
            g = gpm[other]
            if g >= 0:
                for i in range(program.stops[g], program.stops[g + 1]):
                    if program.stopping[i, 0] == e and is_passed(
                        batch, program.stopping[i, 1], program.stopping[i, 2], other, NONE
                    ):
                        return False
    return True


@inlined_device_function
def _concern(
    batch: BatchArrays, gpm: Int32s, first: int, end: int, row: int, block: int, e: int
) -> bool:
    """Whether solutions of rows `first:end` concern the same waiting runs at an edge as `row`.

    `block` is the first block of their slot.
    """
    at = block_of_taking(batch, block, e, row)
    for other in range(first, end):
        if gpm[other] == gpm[row] and block_of_taking(batch, block, e, other) == at:
            return True
    return False


@inlined_device_function
def offer_instant(
    batch: BatchArrays, gpm: Int32s, first: int, end: int, block: int, offered: Offered
) -> int:
    """Offer the solutions of one instant, rows `first:end`, to the runs of their slot.

    `block` is the slot's first one; of `offered` only the time and `lowest` are read. Returns the
    number of arrivals.
    """
    program, arrivals, count = batch.program, batch.arrivals, 0
    for row in range(first, end):
        g = gpm[row]
        if g < 0:
            continue
        for t in range(as_nonnegative(program.takes[g]), program.takes[g + 1]):
            e = as_nonnegative(program.taking[t])
            if program.edge[e, KIND] == FIRST:
                if not _begins(batch, gpm, first, end, row, e):
                    continue
                arrivals.previous[count] = NONE
                arrivals.row[count] = row
                arrivals.edge[count] = e
                count += 1
                continue
            at = block_of_taking(batch, block, e, row)
            if at < 0 or batch.waiting.block[at, COUNT] == 0:
                continue
            if _concern(batch, gpm, first, row, row, block, e):  # offered with that solution
                continue
            if _concern(batch, gpm, row + 1, end, row, block, e):
                each = Offered(row, np.nan, offered.time_ms, offered.lowest)
                count = offer_several(batch, at, e, gpm, end, each, count)
                continue
            level = level_of(program.edge, e, batch.number, row)
            if level != level:
                continue
            one = Offered(row, level, offered.time_ms, offered.lowest)
            if batch.waiting.block[at, HEAPED]:
                count = offer_to_heap(batch, at, e, one, count)
            else:
                count = offer_in_turn(batch, at, e, one, count)
    return count


@device_function
def most_together(batch: BatchArrays, rows: int, block: int) -> int:
    """An upper bound for the arrivals along TOGETHER edges at an instant with some rows; -1: none.

    `block` is the first block of their slot.
    """
    edge, blocks, most = batch.program.edge, batch.waiting.block, -1
    for e in range(edge.shape[0] - 1):
        if edge[e, KIND] == TOGETHER and blocks[block + e, COUNT]:
            most = max(most, 0) + blocks[block + e, COUNT] * rows
    return most


@device_function
def offer_together(
    batch: BatchArrays, gpm: Int32s, end: int, block: int, offered: Offered, count: int, asks: bool
) -> int:
    """Offer the solutions of an instant to the runs that wait at TOGETHER edges since they came.

    The rows of the instant begin with that of `offered`; `offer_instant` explains the others. With
    `asks` only check whether asked tests have an answer. Returns the number of arrivals, `count`
    before; none of these runs waits any more.
    """
    program, blocks, first = batch.program, batch.waiting.block, offered.row
    for row in range(first, end):
        g, repeats = gpm[row], False
        for other in range(first, row):
            if gpm[other] == g:
                repeats = True
        if g < 0 or (repeats and not asks):
            continue
        for t in range(as_nonnegative(program.takes[g]), program.takes[g + 1]):
            e = as_nonnegative(program.taking[t])
            if program.edge[e, KIND] != TOGETHER or blocks[block + e, COUNT] == 0:
                continue
            level = level_of(program.edge, e, batch.number, row)
            each = Offered(row, level, offered.time_ms, offered.lowest)
            if asks:
                ask_taking(batch, block + e, e, each)
            else:
                count = offer_several(batch, block + e, e, gpm, end, each, count)
    if not asks:
        for e in range(program.edge.shape[0] - 1):
            if program.edge[e, KIND] == TOGETHER:
                blocks[block + e, COUNT] = 0
                blocks[block + e, HEAPED] = 0
    return count
