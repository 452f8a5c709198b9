"""Rows that can be in no match leave the sorters of many families at once.

Families whose plans differ in the window and the table only are looked at together: their members
are partitions, and each has the window of its family. See `hopeless_rows.py` for why other rows
change no match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from spaseq.automaton.program.window import Counted
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import have_same_terms
from spaseq.stages.hopeless_rows import HopelessRows, are_ordered, can_be_told, is_told_later
from spaseq.stages.partition_places import MIXER, place_hashes
from spaseq.stages.repeated_rows import keys
from spaseq.stages.sorting import RowSorter

SortedRows: TypeAlias = "tuple[QueryPlan, RowSorter]"
"""The plan of a family, and all its rows of a run."""


def leave_out_together(inputs: Sequence[SortedRows]) -> list[RowSorter]:
    """Leave out rows of families that are alike; give the sorters that have been looked at."""
    alike: dict[int, list[SortedRows]] = {}
    for plan, sorter in inputs:
        if _can_be_told(plan, sorter):
            alike.setdefault(id(plan.sequence.program), []).append((plan, sorter))
    found = [own for own in alike.values() if len(own) > 1]
    for own in found:
        _AlikeFamilies(own).leave_out()
    return [sorter for own in found for _, sorter in own]


def _can_be_told(plan: QueryPlan, sorter: RowSorter) -> bool:
    if is_told_later(plan) or sorter.has_written or not can_be_told(plan, plan.sequence.window):
        return False
    return len(plan.required_gpms) > 1 and len(sorter) > 0 and are_ordered(sorter.held())


class _AlikeFamilies:
    """The rows of families with one program, family by family and each in order of time."""

    def __init__(self, inputs: Sequence[SortedRows]) -> None:
        self._sorters = [sorter for _, sorter in inputs]
        self._sizes = [len(sorter) for sorter in self._sorters]
        self._family = np.repeat(np.arange(len(inputs)), self._sizes)
        windows = (plan.sequence.window for plan, _ in inputs)
        horizons = [0 if isinstance(window, Counted) else window.horizon for window in windows]
        self._length = np.repeat(np.array(horizons, np.int64), self._sizes)
        plan = inputs[0][0]
        self._partition = plan.sequence.partition
        held = (batch for sorter in self._sorters for batch in sorter.held())
        self._batches = [keys(batch, self._partition) for batch in held]
        self._looking = HopelessRows(plan, plan.sequence.window)
        self._time = np.concatenate([batch.time for batch in self._batches])
        self._k = np.concatenate([batch.k for batch in self._batches])
        self._gpm = np.concatenate([batch.gpm for batch in self._batches])

    def leave_out(self) -> None:
        """Let the sorters keep the rows that may be in a match."""
        near = np.flatnonzero(self._have_members_near())
        place, places = self._partitions(near)
        none = np.zeros(len(near), np.bool_)
        rows = _bare_rows(self._time[near], self._k[near], self._gpm[near])
        kept = near[self._looking.kept(rows, place, places, self._length[near], none)]
        first = 0
        for sorter, size in zip(self._sorters, self._sizes, strict=True):
            begin, end = np.searchsorted(kept, (first, first + size))
            sorter.keep(kept[begin:end] - first)
            first += size

    def _have_members_near(self) -> Bools:
        """The rows with all required GPMs of their member near them, a quick first look."""
        columns = [batch.values[QUERY] for batch in self._batches]
        if not have_same_terms(columns):
            return np.ones(len(self._time), np.bool_)
        members = len(columns[0].terms) + 1
        member = np.concatenate([column.codes for column in columns]) + 1
        places = len(self._sorters) * members
        return self._looking.are_near(
            self._time,
            self._gpm,
            self._family * members + member,
            self._length,
            places,
        )

    def _partitions(self, chosen: Indices) -> tuple[Int64s, int]:
        """(the number of the partition of each of some rows, of how many)."""
        hashes = np.concatenate([place_hashes(batch, self._partition) for batch in self._batches])
        mixed = hashes[chosen] + self._family[chosen] * MIXER
        distinct, place = np.unique(mixed, return_inverse=True)
        return place, len(distinct)


def _bare_rows(time: Int64s, k: Int32s, gpm: Int32s) -> SolutionBatch:
    """Rows without terms."""
    return SolutionBatch(np.zeros(len(time), np.int32), time, k, gpm, pa.nulls(len(time)))
