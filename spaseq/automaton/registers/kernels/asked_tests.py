"""Tests of the register kernel whose answers come from Python, and are cached.

The key of an answer is the whole numbers that decide it: in a hash table with linear probing, or as
row and column of a matrix. A test without an answer is recorded, and fails until it has one.
"""

from __future__ import annotations

from spaseq.automaton.registers.kernels.run_arrays import (
    ENTRIES,
    FREE,
    LACKING,
    NOTED,
    OPEN,
    RUN,
    UNSET,
    YES,
    BatchArrays,
)
from spaseq.compiled.arrays import Int64s
from spaseq.compiled.decorators import as_nonnegative, device_function, inlined_device_function

_FACTOR, _BITS = 0x9E3779B1, 0x7FFFFFFF


@inlined_device_function
def _read(batch: BatchArrays, what: int, row: int, run: int) -> int:
    """A whole number of the solution, or of the run, that decides an answer."""
    if what == RUN:
        return run
    value = batch.number[what, row] if what >= 0 else batch.runs.register[run, ~what]
    return int(value) if value == value else UNSET


@inlined_device_function
def _is_at(batch: BatchArrays, key: Int64s, place: int, asked: int, row: int, run: int) -> bool:
    """Whether the table has the numbers of a test at a place."""
    if key[place, 0] != asked:
        return False
    first = batch.program.asks[asked]
    for i in range(batch.program.asks[asked + 1] - first):
        if key[place, i + 1] != _read(batch, batch.program.asking[first + i], row, run):
            return False
    return True


@inlined_device_function
def _is_in_matrix(batch: BatchArrays, asked: int, row: int, run: int) -> bool:
    """`is_answered` of a test that has a matrix."""
    cell, noted, size = batch.answers.cell, batch.answers.noted, batch.answers.size
    at, width = batch.answers.matrix[asked, 0], batch.answers.matrix[asked, 1]
    for i in range(batch.program.asks[asked], batch.program.asks[asked + 1]):
        what = batch.program.asking[i]
        value = _read(batch, what, row, run)
        if value != UNSET:
            at += (value + 1) * width if what >= 0 else value + 1
    place = as_nonnegative(at)
    if cell[place] == FREE:
        if size[NOTED] == len(noted):
            size[LACKING] = 1
            return False
        cell[place] = OPEN
        noted[size[NOTED]] = ~at
        size[NOTED] += 1
    known: bool = cell[place] == YES
    return known


@device_function
def is_answered(batch: BatchArrays, asked: int, row: int, run: int) -> bool:
    """Whether a solution passes an asked test against a run, as far as known."""
    if batch.answers.matrix[asked, 0] >= 0:
        return _is_in_matrix(batch, asked, row, run)
    key, answer, noted, size, _, _ = batch.answers
    first, end = batch.program.asks[asked], batch.program.asks[asked + 1]
    mixed, last = asked + 1, len(answer) - 1
    for i in range(first, end):
        value = _read(batch, batch.program.asking[i], row, run)
        mixed = ((mixed ^ (value & _BITS)) * _FACTOR) & _BITS
        mixed ^= mixed >> 15
    place = as_nonnegative(mixed & last)
    while answer[place] != FREE:
        if _is_at(batch, key, place, asked, row, run):
            known: bool = answer[place] == YES
            return known
        place = as_nonnegative((place + 1) & last)
    if size[NOTED] == len(noted) or 2 * size[ENTRIES] > last:
        size[LACKING] = 1
        return False
    key[place, 0] = asked
    for i in range(first, end):
        key[place, i - first + 1] = _read(batch, batch.program.asking[i], row, run)
    answer[place] = OPEN
    noted[size[NOTED]] = place
    size[NOTED] += 1
    size[ENTRIES] += 1
    return False
