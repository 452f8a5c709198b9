"""Stage 1 of what is evaluated as one: a query by itself, or a family of queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.measures import Measures
from spaseq.plan.families import Family, UnitPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, warn
from spaseq.stages.joint_patterns import JointPatterns

_GROWTH = 64
"""How many times as many events may be matched next."""


UnitPatterns: TypeAlias = "PatternStage | FamilyPatterns"
"""Stage 1 of a unit."""


class FamilyPatterns:
    """Stage 1 of a family: the solutions of the GPMs of all members.

    An event on which all members together exceed a limit is matched for each member by itself.
    Families that share `joint` are matched together, as far as they have GPMs in common.
    """

    def __init__(
        self,
        family: Family,
        plans: Mapping[int, QueryPlan],
        knowledge: KnowledgeBase,
        on_bad: OnBad = warn,
        limits: Limits = DEFAULT_LIMITS,
        joint: JointPatterns | None = None,
    ) -> None:
        self.family, self.knowledge, self.limits = family, knowledge, limits
        self._plans, self._on_bad = plans, on_bad
        self.stage = PatternStage(family.plan, knowledge, _unless_over_limit(on_bad), limits)
        # At a time: at first as many as if each member had a solution of each.
        self._events = max(
            thresholds.current.family_events, thresholds.current.family_rows // len(family.members)
        )
        self._joint = joint
        if joint is not None:
            joint.add(self)

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of the batch's events; `index` is as for `PatternStage.match`."""
        if self._joint is not None and index is not None:
            joint = self._joint.solutions(self, index)
            if joint is not None:
                return joint
        parts, first = list[SolutionBatch](), 0
        while first < len(events):
            part = events.part(first, min(first + self._events, len(events)))
            whole = len(part) == len(events)
            rows = self._matched(part, index if whole else None)
            parts.append(rows)
            first += len(part)
            # As many events as may give about the most rows, judged from the last ones.
            likely = thresholds.current.family_rows * len(part) // max(1, len(rows))
            self._events = max(thresholds.current.family_events, min(likely, _GROWTH * len(part)))
            if not len(rows):
                self._events = thresholds.current.family_rows
        return SolutionBatch.concat([f for f in parts if len(f)], self.family.plan.patterns.columns)

    def _matched(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        rows = self.stage.match(events, index)
        if not self.stage.exceeding:
            return rows
        columns = self.family.plan.patterns.columns
        part = events.take(np.array(self.stage.exceeding, np.int64))
        return SolutionBatch.concat([rows, *self._one_by_one(part)], columns)

    def _one_by_one(self, events: EventBatch) -> Iterator[SolutionBatch]:
        """The solutions of some events, for the members of one row of the table at a time."""
        for row, owners in enumerate(self.family.owners):
            if not owners:
                continue
            names = [self._plans[number].identity.name for number in owners]
            plan = self.family.only(row)
            stage = PatternStage(plan, self.knowledge, self._naming(names), self.limits)
            yield stage.match(events)

    def _naming(self, names: Sequence[str]) -> OnBad:
        """Reports an event beyond a limit for each of some queries."""

        def take(bad: BadInput) -> None:
            for name in names if bad.over_limit else ():
                self._on_bad(replace(bad, file=name))

        return take


def _unless_over_limit(on_bad: OnBad) -> OnBad:
    """Reports what is bad for all members."""

    def take(bad: BadInput) -> None:
        if not bad.over_limit:
            on_bad(bad)

    return take


def patterns_of(
    unit: UnitPlan,
    knowledge: KnowledgeBase,
    on_bad: OnBad,
    limits: Limits,
    joint: JointPatterns,
    measures: Measures | None = None,
) -> UnitPatterns:
    """A new stage 1 of a unit; units that share `joint` are matched together.

    `measures` are of queries by themselves.
    """
    if unit.family is None:
        return PatternStage(unit.plan, knowledge, on_bad, limits, measures, joint.lone)
    shared = None if unit.plan.inputs.windows or unit.family.begins_with_member else joint
    return FamilyPatterns(unit.family, unit.plans, knowledge, on_bad, limits, shared)
