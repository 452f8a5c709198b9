"""The stages of units of queries over pushed events, and what makes them for a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.plan.families import Family
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stages.unit_sequence import FoundAnswers

Rows: TypeAlias = "SolutionBatch | EventRows"
"""Solutions of many events or of one."""


class MatchingStage(Protocol):
    """Stage 1 of a query or a family."""

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of a batch's events; stages share `index`."""


class OrderedStage(Protocol):
    """What waits in stage 2 of a unit, as `SequenceStage` documents it.

    A state is bytes, or a list of them if the stage is in parts.
    """

    def live_runs(self) -> int: ...

    def sleeps(self, watermark: int) -> bool: ...

    def waits_after(self, watermark: int) -> bool: ...

    def snapshot(self) -> Any: ...

    def restore(self, snapshot: Any) -> None: ...


class UnitStage(Protocol):
    """Stage 2 of a unit, as `UnitSequence` documents it."""

    @property
    def stage(self) -> OrderedStage: ...

    @property
    def suppressed(self) -> int: ...

    @property
    def muted(self) -> Mapping[str, int]: ...

    def exceeded(self) -> Mapping[int, Excess]: ...

    def use(self, family: Family) -> None: ...

    def forget(self, number: int) -> None: ...

    def push(self, rows: Rows) -> None: ...

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers: ...

    def close(self, open_end: int | None = None) -> FoundAnswers: ...

    def partials(self) -> Sequence[PartialAnswer]: ...

    def live_states(self, number: int) -> LiveStates: ...

    def foreseen(self, number: int, until: int) -> Sequence[Answer]: ...
