"""The members of a family whose partial matches begin with their member.

Partitions do not belong to a member then: the first solution of a run has the member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

import numpy as np

from spaseq.automaton.batch.match_builder import MatchBuilder
from spaseq.automaton.registers.compiled.run_state import RunState
from spaseq.automaton.run.waiting_limit import Member
from spaseq.compiled.arrays import Bools, Int64s


class CarriedMembers:
    """The members of runs; `variable` has the member in their first solutions."""

    def __init__(self, runs: RunState, builder: MatchBuilder, variable: str) -> None:
        self._runs, self._builder, self.variable = runs, builder, variable

    def counts(self, lowest: int) -> Counter[Member]:
        """Number of waiting runs of each member that began at the measure `lowest` or later."""
        firsts = self._runs.first_rows()[self._runs.waiting(lowest)]
        numbers, counts = np.unique(firsts, return_counts=True)
        found = Counter[Member]()
        for member, count in zip(self._of_rows(numbers), counts.tolist(), strict=True):
            found[member] += count
        return found

    def of_members(self, members: Collection[Member]) -> Bools:
        """[runs] whether they are of some members."""
        return self.wanted(lambda member: member in members)

    def wanted(self, is_wanted: Callable[[Member], bool]) -> Bools:
        """[runs] whether their members are wanted."""
        numbers, place = np.unique(self._runs.first_rows(), return_inverse=True)
        known = np.array([is_wanted(member) for member in self._of_rows(numbers)], np.bool_)
        found: Bools = known[place]
        return found

    def _of_rows(self, numbers: Int64s) -> list[Member]:
        """The members of first solutions, given by ascending number."""
        return self._builder.texts(numbers, self.variable)
