"""The solutions that matches take: kept as columns, and turned into `Found`s."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.automaton.columns.row_store import Chunk, RowStore
from spaseq.automaton.evaluators.emission import Emission
from spaseq.automaton.machine import Machine
from spaseq.automaton.runs import Row
from spaseq.automaton.sequencer import PartitionKey, PartitionMatch
from spaseq.rdf.batches import SolutionBatch

Int64s: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matched:
    """m matches as numbers of solutions, one match behind the other; `ends` [m] says where each
    ends, `origins` [m] the measure at which it begins."""

    rows: Int64s
    ends: Int64s
    origins: Int64s


class Gathering:
    """The solutions of one query that partial matches have taken, and those of the batch."""

    def __init__(self, machine: Machine) -> None:
        variables = tuple(sorted({v for g in machine.gpms for v in g.variables}))
        self.store = RowStore(machine.gpms, variables)
        self.emission = Emission(machine, None)
        self._batch: Chunk | None = None
        self._places = [
            tuple(g.variables.index(v) for v in machine.partition if v in g.variables)
            for g in machine.gpms
        ]

    def begin(self, rows: SolutionBatch, number: int) -> None:
        """A batch of solutions, numbered from `number` on."""
        rows = replace(rows, numbers={})
        self._batch = Chunk(np.arange(number, number + len(rows)), rows)

    def end(self, taken: npt.NDArray[np.bool_]) -> None:
        """Keep those of the batch that have been taken."""
        assert self._batch is not None
        kept = np.flatnonzero(taken)
        whole = len(kept) == len(taken)
        self.store.add(self._batch if whole else self._batch.part(kept))
        self._batch = None

    def rows(self, numbers: Int64s) -> dict[int, tuple[int, Row]]:
        """Solutions with their GPMs, by number."""
        return self.store.rows(np.unique(numbers), self._batch)

    def matches(self, matched: Matched) -> Iterator[PartitionMatch]:
        """Matches with their bindings."""
        if not len(matched.ends):
            return
        taken = self.rows(matched.rows)
        numbers, first = matched.rows.tolist(), 0
        for end, origin in zip(matched.ends.tolist(), matched.origins.tolist(), strict=True):
            trace = [taken[n] for n in numbers[first:end]]
            yield PartitionMatch(self.partition_of(trace[0]), self.emission.found_of(origin, trace))
            first = end

    def partition_of(self, taken: tuple[int, Row]) -> PartitionKey:
        """The partition of a solution, given with its GPM."""
        gpm, row = taken
        return tuple([row[4][c] for c in self._places[gpm]])
