"""The states, edges and checks of a Tree NFA; other modules build and search them.

A step of the pattern is *matched* when the partial match holds a solution for it. The states are
sets of matched steps. An edge matches one step more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.run.runs import Row
from spaseq.automaton.run.work_counts import WorkCounts
from spaseq.records import record

StepSet: TypeAlias = frozenset[int]

Source: TypeAlias = tuple[int, int]
"""A step, and a column of its solution."""


class PartOfMatch(Protocol):
    """The steps matched so far. Steps that a check does not look at may hold anything."""

    rows: list[Row]  # by step
    at: list[Instant]  # by step
    work: WorkCounts

    def exists(self, ways: Sequence[TreeState]) -> bool:
        """Whether some search from these states of a negated step finds a match."""


class MatchCheck(Protocol):
    """A check that a partial match must pass once some steps are matched."""

    @property
    def steps(self) -> StepSet:
        """The steps that the check looks at."""

    def passes(self, partial: PartOfMatch) -> bool:
        """Whether the check holds for these steps."""


@record
class Bounds:
    """How matched steps bound the instants of the next solution."""

    after: tuple[int, ...]  # steps right before it
    before: tuple[int, ...]  # steps right after it
    within: tuple[tuple[int, int], ...]  # (earlier step, gap in ms)
    since: tuple[tuple[int, int], ...]  # (later step, gap in ms)
    together: tuple[int, ...]  # steps with the same timestamp


@dataclass(frozen=True, slots=True, eq=False)
class TreeEdge:
    """Matches one step more.

    The `cached` checks look at the new solution and at the steps `beside`, but not at the step that
    the search started from. So a later search with the same solutions beside can use their outcome
    again. The solutions they are made for lie within `cached_bounds`.
    """

    step: int
    gpm: int
    columns: tuple[int, ...]  # of the join key
    sources: tuple[Source, ...]  # of the key's values
    bounds: Bounds
    not_last: bool  # its event must come before the event that the search started from
    cached: tuple[MatchCheck, ...]
    beside: tuple[int, ...]
    cached_bounds: Bounds
    checks: tuple[MatchCheck, ...]  # all others
    target: StepSet

    @property
    def is_checked(self) -> bool:
        """Whether a solution in reach may fail a check."""
        return bool(self.cached or self.checks)


class TreeStates(Protocol):
    """Makes the states of a tree when a search reaches them."""

    def state(self, matched: StepSet) -> TreeState:
        """The state in which some steps are matched."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeState:
    """Some steps are matched; without edges, all of them are."""

    tree: TreeStates
    matched: StepSet
    edges: tuple[TreeEdge, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AbsenceCheck:
    """A negated step has no match. `ways` are its patterns, as states to search on from."""

    negation: int
    ways: tuple[TreeState, ...]
    steps: StepSet

    def passes(self, partial: PartOfMatch) -> bool:
        return not partial.exists(self.ways)
