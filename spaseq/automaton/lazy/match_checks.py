"""What must hold between the slots of a match, each checked when its slots have been filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.partial_order import Gap
from spaseq.automaton.run.runs import Row
from spaseq.automaton.run.work_counts import WorkCounts
from spaseq.expr.env import Env

if TYPE_CHECKING:
    from spaseq.automaton.lazy.tree import TreeState

Source: TypeAlias = tuple[int, int]
"""A slot, and a column of the solution in it."""


class Filling(Protocol):
    """A match being filled. Slots that a filter does not look at may hold anything."""

    rows: list[Row]  # by slot
    at: list[Instant]  # by slot
    work: WorkCounts

    def exists(self, absent: Absent) -> bool:
        """Whether a negated step matches beside what has been filled."""


class MatchCheck(Protocol):
    """A test on filled slots."""

    @property
    def slots(self) -> frozenset[int]:
        """The slots it looks at."""

    def passes(self, filling: Filling) -> bool:
        """Whether it holds for what is in those slots."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A variable that two slots may bind has one value."""

    one: Source
    other: Source

    @property
    def slots(self) -> frozenset[int]:
        return frozenset({self.one[0], self.other[0]})

    def passes(self, filling: Filling) -> bool:
        rows, (slot, column), (other, place) = filling.rows, self.one, self.other
        value, old = rows[slot][4][column], rows[other][4][place]
        return value is None or old is None or value == old


@dataclass(frozen=True, slots=True)
class Apart:
    """Two slots hold solutions of different events (operands of AND)."""

    one: int
    other: int

    @property
    def slots(self) -> frozenset[int]:
        return frozenset({self.one, self.other})

    def passes(self, filling: Filling) -> bool:
        one, other = self.one, self.other
        same_instant = filling.at[one] == filling.at[other]
        return not (same_instant and filling.rows[one][0] == filling.rows[other][0])


@dataclass(frozen=True, slots=True)
class Distance:
    """The bound of a gap with several first or last slots."""

    gap: Gap

    @property
    def slots(self) -> frozenset[int]:
        return frozenset(self.gap.lasts + self.gap.firsts)

    def passes(self, filling: Filling) -> bool:
        at = filling.at
        start = max(at[i] for i in self.gap.lasts)
        end = min(at[i] for i in self.gap.firsts)
        return end[0] - start[0] <= self.gap.ms


@dataclass(frozen=True, slots=True, eq=False)
class ConditionCheck:
    """A FILTER of a slot's GPM that looks back. `sources` and `times` are what it sees: by variable
    where its value may be, the slot's own first; by GPM name the slots that its time is of."""

    holds: Callable[[Env], bool]
    sources: Mapping[str, tuple[Source, ...]]
    times: Mapping[str, tuple[int, ...]]
    slots: frozenset[int]

    def passes(self, filling: Filling) -> bool:
        filling.work.conditions += 1
        return self.holds(_Bindings(filling.rows, self))


@dataclass(frozen=True, slots=True, eq=False)
class Absent:
    """A negated step has no match. `ways` are its patterns, as states to search on from."""

    negation: int
    ways: tuple[TreeState, ...]
    slots: frozenset[int]

    def passes(self, filling: Filling) -> bool:
        return not filling.exists(self)


class _Bindings:
    """The variables that a condition sees."""

    __slots__ = ("_condition", "_rows")

    def __init__(self, rows: list[Row], condition: ConditionCheck) -> None:
        self._rows, self._condition = rows, condition

    def value(self, name: str) -> str | None:
        for slot, column in self._condition.sources.get(name, ()):
            value = self._rows[slot][4][column]
            if value is not None:
                return value
        return None

    def previous(self, name: str) -> str | None:
        return None  # no step is repeated

    def group(self, name: str) -> Sequence[str]:
        return ()

    def time(self, gpm: str) -> int | None:
        return max((self._rows[i][1] for i in self._condition.times.get(gpm, ())), default=None)
