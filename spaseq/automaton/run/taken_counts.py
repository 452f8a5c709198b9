"""Counts of the solutions that partial matches or matches have taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from spaseq import thresholds
from spaseq.automaton.run.runs import Row
from spaseq.compiled.arrays import Bytes, Int32s


@dataclass(slots=True)
class TakenCounts:
    """Counts by GPM of one process since its start, over all partitions; no snapshot keeps them."""

    taken: Counter[int] = field(default_factory=Counter, compare=False)

    def taken_so_far(self, wanted: object | None) -> Counter[int] | None:
        """A copy of `taken`; None if only some partitions are wanted, as it has no partitions."""
        return Counter(self.taken) if wanted is None else None

    def take(self, gpm: Int32s, taken: Bytes) -> None:
        """Count the solutions of a batch for which `taken` [n] is 1, given the GPM of each [n]."""
        if len(taken) <= thresholds.current.few_rows:
            for number in compress(gpm.tolist(), taken.tolist()):
                self.taken[number] += 1
            return
        is_taken = taken == 1
        for number in range(int(gpm.max(initial=-1)) + 1):
            count = np.count_nonzero(is_taken & (gpm == number))
            if count:
                self.taken[number] += int(count)

    def take_nodes(self, nodes: Iterable[tuple[int, Row, int]]) -> None:
        """Count the solutions in the nodes that an instant has added to a trace, each once."""
        for gpm, _ in {(gpm, id(row)) for gpm, row, _ in nodes}:
            self.taken[gpm] += 1
