"""A first filter of many rows: most are far from every solution of a rare GPM.

A match has a solution of each required GPM, in one partition and one window. If one of these GPMs
has few solutions, two passes over the rows, in any order, find most of those that are in no match:
one marks the partitions and times of its solutions, the other looks up the mark of each row (as in
a Bloom filter). Two partitions may share a mark, so a few rows too many stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from spaseq.automaton.batch.kernels.near_rows import mark_solutions, marked_rows
from spaseq.compiled.arrays import Indices, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import RowSelection, TermColumn

_MIXER = 0x2545F4914F6CDD1D

_MARKS = 64
"""Marks per solution, which sets three: one row in twenty stays without reason."""


def rows_near(
    batches: Sequence[SolutionBatch],
    partition: tuple[str, ...],
    gpm: int,
    length: int,
    span: tuple[int, int],
) -> Indices:
    """The rows that have a solution of a GPM near them, ascending, and a few others.

    Args:
        batches: their rows are numbered one after the other.
        partition: its variables.
        gpm: the GPM.
        length: the maximum distance in milliseconds of two rows that are near each other.
        span: between these times (ms) all rows are known; rows at or beyond them stay.
    """
    first_known, last_known = span
    numbers = {v: _numbers([batch.values[v] for batch in batches]) for v in partition}
    of_gpm = [np.flatnonzero(batch.gpm == gpm) for batch in batches]
    marks = np.zeros(1 << (_MARKS * sum(map(len, of_gpm))).bit_length(), np.bool_)
    width = max(length, 1)
    for batch, rows in zip(batches, of_gpm, strict=True):
        mark_solutions(batch.time[rows], _places(batch, rows, numbers), width, marks)
    near = list[Indices]()
    first = 0
    for batch in batches:
        time = np.require(batch.time, requirements=["C", "W"])
        kept = (time <= first_known) | (time >= last_known)
        marked_rows(time, _places(batch, slice(None), numbers), width, marks, kept)
        near.append(np.flatnonzero(kept) + first)
        first += len(time)
    return np.concatenate(near)


_Numbers: TypeAlias = "Mapping[int, Int64s]"
"""By the id of a table of terms: a number for each term, and for UNBOUND at the end."""


def _places(batch: SolutionBatch, rows: RowSelection, numbers: Mapping[str, _Numbers]) -> Int64s:
    """A number for the partition of each row; two partitions may share a number."""
    mixed: Int64s | None = None
    for variable, of_table in numbers.items():
        column = batch.values[variable]
        partition = of_table[id(column.terms)][column.codes[rows]]
        mixed = partition if mixed is None else mixed * _MIXER + partition
    return np.zeros(len(batch.time[rows]), np.int64) if mixed is None else mixed


def _numbers(columns: Sequence[TermColumn]) -> _Numbers:
    """The numbers of the terms of columns; equal terms in two columns have equal numbers."""
    tables = {id(column.terms): column.terms for column in columns}
    unified = pa.concat_arrays([*tables.values()]).dictionary_encode().indices.to_numpy()
    ends = np.cumsum([len(table) for table in tables.values()])
    parts = np.split(unified.astype(np.int64), ends[:-1])
    return {table: np.append(numbers, -1) for table, numbers in zip(tables, parts, strict=True)}
