"""Rows that came before their time: they wait until the watermark reaches them."""

from __future__ import annotations

import numpy as np

from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.stateful import Stateful


class ReorderBuffer(Stateful):
    """Takes rows in any order of time, and gives those up to a time."""

    STATE = (("_batches", "_compact"),)

    def __init__(self, columns: SolutionColumns) -> None:
        self._columns = columns
        self._batches: list[SolutionBatch] = []

    def __bool__(self) -> bool:
        return bool(self._batches)

    def push(self, rows: SolutionBatch) -> None:
        """Take rows."""
        if len(rows):
            self._batches.append(rows)

    def batches(self) -> list[SolutionBatch]:
        """The rows that wait."""
        return self._batches

    def take_all(self) -> list[SolutionBatch]:
        """The rows that wait, which leave."""
        batches, self._batches = self._batches, []
        return batches

    def last_time(self) -> int:
        """The time (ms) of the last row."""
        return max(int(batch.time.max()) for batch in self._batches)

    def due(self, until: int) -> SolutionBatch:
        """The rows at or before a time (ms), which leave."""
        due: list[SolutionBatch] = []
        later: list[SolutionBatch] = []
        for batch in self._batches:
            if batch.time.max() <= until:
                due.append(batch)
                continue
            mask = batch.time <= until
            if not mask.any():
                later.append(batch)
            else:
                due.append(batch.take(np.flatnonzero(mask)))
                later.append(batch.take(np.flatnonzero(~mask)))
        self._batches = later
        return SolutionBatch.concat(due, self._columns)

    @property
    def _compact(self) -> list[SolutionBatch]:
        return [batch.compact() for batch in self._batches]
