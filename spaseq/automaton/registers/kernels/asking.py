"""Which asked tests the kernel needs answers of, before it processes an instant."""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels.edge_offers import (
    block_of,
    block_of_taking,
    exceeds,
    is_alive,
    is_passed,
    level_of,
)
from spaseq.automaton.registers.kernels.run_arrays import (
    AHEAD,
    ASKED,
    COUNT,
    FIRST,
    INCLUSIVE,
    KIND,
    LACKING,
    NONE,
    NOTED,
    OFFERED,
    OPERATOR,
    PLACE,
    RUN,
    TESTS,
    BatchArrays,
    Offered,
)
from spaseq.compiled.arrays import Arrays, Int32s
from spaseq.compiled.decorators import as_nonnegative, device_function, inlined_device_function

_AHEAD = 256
"""Rows whose asked tests are answered together."""


@device_function
def ask_taking(batch: BatchArrays, block: int, e: int, offered: Offered) -> None:
    """Check that the asked tests of an edge have answers, for all runs of a block, if it is not
    NONE, that may take there.
    """
    edge, (blocks, _, thresholds, runs, _) = batch.program.edge, batch.waiting
    if block < 0 or not _asks(batch, edge[e, OFFERED], edge[e + 1, TESTS]):
        return
    inclusive, place = edge[e, INCLUSIVE] != 0, blocks[block, PLACE]
    for i in range(place, place + blocks[block, COUNT]):
        if exceeds(offered.level, thresholds[i], inclusive) and is_alive(
            batch, e, runs[i], offered
        ):
            is_passed(batch, edge[e, OFFERED], edge[e + 1, TESTS], offered.row, runs[i])


@device_function
def _ask_ending(batch: BatchArrays, block: int, first_test: int, end_test: int, row: int) -> None:
    """The same for tests by which a solution ends or marks the runs that wait."""
    if block >= 0 and _asks(batch, first_test, end_test):
        place = batch.waiting.block[block, PLACE]
        for i in range(place, place + batch.waiting.block[block, COUNT]):
            is_passed(batch, first_test, end_test, row, batch.waiting.run[i])


@inlined_device_function
def _asks(batch: BatchArrays, first: int, end: int) -> bool:
    """Whether some of the tests `first:end` are asked."""
    for i in range(first, end):
        if batch.program.test[i, OPERATOR] == ASKED:
            return True
    return False


@device_function
def ask(
    batch: BatchArrays, gpm: Int32s, first: int, end: int, block: int, offered: Offered
) -> bool:
    """Whether asked tests of one instant, rows `first:end`, lack an answer; record them."""
    program = batch.program
    for row in range(first, end):
        g = gpm[row]
        if g < 0:
            continue
        for t in range(program.takes[g], program.takes[g + 1]):
            e = as_nonnegative(program.taking[t])
            if program.edge[e, KIND] == FIRST:
                is_passed(batch, program.edge[e, TESTS], program.edge[e + 1, TESTS], row, NONE)
            else:
                level = level_of(program.edge, e, batch.number, row)
                own = Offered(row, level, offered.time_ms, offered.lowest)
                ask_taking(batch, block_of_taking(batch, block, e, row), e, own)
        for i in range(program.kills[g], program.kills[g + 1]):
            e = as_nonnegative(program.killing[i, 0])
            at = block_of(batch, block, e, program.killing[i, 3], row)
            _ask_ending(batch, at, program.killing[i, 1], program.killing[i, 2], row)
        for i in range(program.stops[g], program.stops[g + 1]):
            e = as_nonnegative(program.stopping[i, 0])
            first_test, end_test = program.stopping[i, 1], program.stopping[i, 2]
            if program.edge[e, KIND] == FIRST:
                is_passed(batch, first_test, end_test, row, NONE)
            at = block_of(batch, block, e, program.stopping[i, 4], row)
            _ask_ending(batch, at, first_test, end_test, row)
    noted: bool = batch.answers.size[NOTED] > 0 or batch.answers.size[LACKING] > 0
    return noted


@device_function
def ask_ahead(batch: BatchArrays, row_arrays: Arrays, first: int, edges: int) -> None:
    """Record tests of the next rows, each by itself, against the runs that wait now.

    Rows for which that was done are not looked at again.
    """
    slot, gpm, time_ms, _, _, lowest, _ = row_arrays
    size = batch.answers.size
    if size[LACKING] or first < size[AHEAD]:
        return
    for what in batch.program.asking:
        if what == RUN:  # an answer serves one run, which may not wait any more
            return
    for row in range(first, min(first + _AHEAD, len(slot))):
        if size[LACKING]:
            break
        size[AHEAD] = row + 1
        instant = Offered(row, np.nan, time_ms[row], lowest[row])
        ask(batch, gpm, row, row + 1, slot[row] * edges, instant)
    size[LACKING] = 0
