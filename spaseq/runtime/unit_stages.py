"""The stages of units of queries over pushed events, and what makes them for a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess, Member
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.families import Family
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.stages.family_stage import FamilyPatterns, FamilySequence
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.late_sequence import LateSequence
from spaseq.stages.unit_sequence import FoundAnswers

if TYPE_CHECKING:
    from spaseq.runtime.pushed_units import Unit

Rows: TypeAlias = "SolutionBatch | EventRows"
"""Solutions of many events or of one."""


class MatchingStage(Protocol):
    """Stage 1 of a query or a family."""

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of a batch's events; stages share `index`."""


class OrderedStage(Protocol):
    """Stage 2 of a query or a family, as `SequenceStage` documents it.

    A state is bytes, or a list of them if the stage is in parts.
    """

    def push(self, rows: Rows) -> None: ...

    def advance(self, watermark: int, ahead: bool = False) -> Sequence[Answer]: ...

    def close(self) -> Sequence[Answer]: ...

    def partials(self) -> Sequence[PartialAnswer]: ...

    @property
    def exceeded(self) -> Mapping[Member, Excess]: ...

    @property
    def suppressed(self) -> int: ...

    def live_runs(self) -> int: ...

    def live_states(self) -> LiveStates: ...

    def snapshot(self) -> Any: ...

    def restore(self, snapshot: Any) -> None: ...


class MemberStage(Protocol):
    """Stage 2 of a family, as `FamilySequence` documents it."""

    @property
    def stage(self) -> OrderedStage: ...

    @property
    def suppressed(self) -> int: ...

    def exceeded(self) -> Mapping[int, Excess]: ...

    def use(self, family: Family) -> None: ...

    def forget(self, number: int) -> None: ...

    def push(self, rows: Rows) -> None: ...

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers: ...

    def close(self) -> FoundAnswers: ...

    def live_states(self, number: int) -> LiveStates: ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the stages of all queries have in common; it makes them, to run in this process."""

    knowledge: KnowledgeBase
    options: StageOptions
    on_bad: OnBad
    joint: JointPatterns = field(default_factory=JointPatterns, init=False, compare=False)

    @property
    def takes_parts(self) -> bool:
        """Whether its stages go on from states in parts."""
        return False

    def check(self, plan: QueryPlan) -> None:
        """UsageError if its stages cannot evaluate a query."""

    def patterns(self, plan: QueryPlan) -> MatchingStage:
        """Stage 1 of a query."""
        limits = self.options.limits
        return PatternStage(plan, self.knowledge, self.on_bad, limits, joint=self.joint.lone)

    def family_patterns(self, family: Family, plans: Mapping[int, QueryPlan]) -> MatchingStage:
        """Stage 1 of a family; `plans` has its members, and soon those that will come."""
        limits = self.options.limits
        return FamilyPatterns(family, plans, self.knowledge, self.on_bad, limits, self.joint)

    def sequence(self, plan: QueryPlan) -> OrderedStage:
        """Stage 2 of a query."""
        return LateSequence(plan, self.options, self.knowledge, self.on_bad)

    def family_sequence(self, family: Family, plans: Mapping[int, QueryPlan]) -> MemberStage:
        """Stage 2 of a family; `plans` is as for `family_patterns`."""
        return FamilySequence(family, plans, self.options, self.knowledge, self.on_bad)

    def idle(self, index: VerticalPartition) -> Set[object]:
        """First stages that are known to have no solutions on a batch."""
        return self.joint.idle(index)

    def begin(self, due: Mapping[Unit, int]) -> None:
        """Learn to which watermark (ms) each unit will be advanced next, in this order."""
