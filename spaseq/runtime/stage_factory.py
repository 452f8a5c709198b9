"""Makes the stages of units of queries over pushed events, to run in this process."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.unit_plan import UnitPlan
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.runtime.unit_stages import MatchingStage, UnitStage
from spaseq.stages.family_patterns import patterns_of
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.unit_sequence import UnitSequence


@dataclass(frozen=True, slots=True)
class StageFactory:
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

    def patterns(self, unit: UnitPlan) -> MatchingStage:
        """Stage 1 of a unit."""
        return patterns_of(unit, self.knowledge, self.on_bad, self.options.limits, self.joint)

    def sequence(self, unit: UnitPlan) -> UnitStage:
        """Stage 2 of a unit."""
        return UnitSequence(unit, self.options, self.knowledge, self.on_bad)

    def idle(self, index: VerticalPartition) -> Set[object]:
        """First stages that are known to have no solutions on a batch."""
        return self.joint.idle(index)

    def begin(self, due: Mapping[Any, int]) -> None:
        """Learn to which watermark (ms) each unit will be advanced next, in this order."""
