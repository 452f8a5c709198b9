"""Stage 1 of a unit while its graphs have several values: each event is matched with its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns


class Matching(Protocol):
    """Stage 1 with one value of the graphs."""

    def match(
        self, events: EventBatch, index: VerticalPartition | None = None
    ) -> SolutionBatch: ...


class TimedPatterns:
    """Stage 1 with the values that graphs have at different times.

    Args:
        stages: the time (ms) from which each counts, and the stage; times ascend, and no event is
            before the first.
        columns: of the solutions.
    """

    def __init__(self, stages: Sequence[tuple[int, Matching]], columns: SolutionColumns) -> None:
        self.stages, self._columns = stages, columns
        self._since = np.array([since for since, _ in stages], np.int64)

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of the batch's events; `index` is as for `PatternStage.match`."""
        number = np.searchsorted(self._since, events.time, side="right") - 1
        numbers = np.unique(number).tolist()
        if len(numbers) == 1:
            return self.stages[int(numbers[0])][1].match(events, index)
        parts = [self.stages[n][1].match(events.take(np.flatnonzero(number == n))) for n in numbers]
        return SolutionBatch.concat(parts, self._columns)
