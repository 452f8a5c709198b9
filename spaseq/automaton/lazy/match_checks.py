"""Checks between the steps of a match: joins, different events, gaps and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spaseq.automaton.lazy.tree_nodes import PartOfMatch, Source, StepSet
from spaseq.automaton.program.partial_order import Gap
from spaseq.automaton.run.runs import Row
from spaseq.expr.env import Env
from spaseq.records import record


@record
class JoinCheck:
    """A variable that two steps may bind has one value."""

    one: Source
    other: Source

    @property
    def steps(self) -> StepSet:
        return frozenset({self.one[0], self.other[0]})

    def passes(self, partial: PartOfMatch) -> bool:
        rows, (step, column), (other, place) = partial.rows, self.one, self.other
        value, known = rows[step][4][column], rows[other][4][place]
        return value is None or known is None or value == known


@record
class DifferentEventsCheck:
    """Two steps hold solutions of different events (operands of AND)."""

    steps: StepSet

    def passes(self, partial: PartOfMatch) -> bool:
        one, other = self.steps
        same_instant = partial.at[one] == partial.at[other]
        return not (same_instant and partial.rows[one][0] == partial.rows[other][0])


@record
class GapCheck:
    """The bound of a gap with several first or last steps."""

    gap: Gap

    @property
    def steps(self) -> StepSet:
        return frozenset(self.gap.lasts + self.gap.firsts)

    def passes(self, partial: PartOfMatch) -> bool:
        at = partial.at
        start = max(at[i] for i in self.gap.lasts)
        end = min(at[i] for i in self.gap.firsts)
        return end[0] - start[0] <= self.gap.ms


@dataclass(frozen=True, slots=True, eq=False)
class ConditionCheck:
    """A FILTER of the GPM of `step` that looks back at other steps.

    `sources` gives, by variable, where its value may be, the step's own column first. `times`
    gives, by GPM name, the steps whose times TIMESTAMP ranges over.
    """

    holds: Callable[[Env], bool]
    step: int
    sources: Mapping[str, tuple[Source, ...]]
    times: Mapping[str, tuple[int, ...]]
    steps: StepSet

    def passes(self, partial: PartOfMatch) -> bool:
        partial.work.conditions += 1
        return self.holds(_ConditionEnv(partial.rows, self))


class _ConditionEnv:
    """The variables that a condition sees."""

    __slots__ = ("_condition", "_rows")

    def __init__(self, rows: list[Row], condition: ConditionCheck) -> None:
        self._rows, self._condition = rows, condition

    def value(self, name: str) -> str | None:
        for step, column in self._condition.sources.get(name, ()):
            value = self._rows[step][4][column]
            if value is not None:
                return value
        return None

    def previous(self, name: str) -> str | None:
        return None  # no step is repeated

    def group(self, name: str) -> Sequence[str]:
        return ()

    def time(self, gpm: str) -> int | None:
        return max((self._rows[i][1] for i in self._condition.times.get(gpm, ())), default=None)

    def now(self) -> int | None:
        return self._rows[self._condition.step][1]
