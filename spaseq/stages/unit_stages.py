"""The stages of units of queries, and the factory that makes them for a run.

A unit is evaluated together: it is a single query, or a family of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import KnowledgeVersions, Values
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.measures import Measures
from spaseq.options import StageOptions
from spaseq.plan.families import Family, UnitPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, warn
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.unit_sequence import FoundAnswers, UnitSequence

_GROWTH = 64
"""Maximum growth of the number of events that are matched together."""

UnitPatterns: TypeAlias = "PatternStage | FamilyPatterns"
"""Stage 1 of a unit."""

Rows: TypeAlias = "SolutionBatch | EventRows"
"""Solutions of many events or of one."""


class FamilyPatterns:
    """Stage 1 of a family: the solutions of the GPMs of all members.

    An event on which all members together exceed a limit is matched for each member by itself.
    Families that share `joint` are matched together where they have GPMs in common.
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
        # Events at a time: at first the number that fits if each member has a solution on each.
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
            # The number of events that may give about the maximum number of rows, judged from the
            # last ones.
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
        """Report an event beyond a limit for each of some queries."""

        def take(bad: BadInput) -> None:
            for name in names if bad.over_limit else ():
                self._on_bad(replace(bad, file=name))

        return take


def _unless_over_limit(on_bad: OnBad) -> OnBad:
    """Report errors that concern all members."""

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

    `measures` are of single queries.
    """
    if unit.family is None:
        return PatternStage(unit.plan, knowledge, on_bad, limits, measures, joint.lone)
    shared = None if unit.plan.inputs.windows or unit.family.begins_with_member else joint
    return FamilyPatterns(unit.family, unit.plans, knowledge, on_bad, limits, shared)


class MatchingStage(Protocol):
    """Stage 1 of a query or a family."""

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of a batch's events; stages share `index`."""


class UnitStage(Protocol):
    """Stage 2 of a unit, as `UnitSequence` documents it.

    Before `next_due` (ms) `advance` gives nothing and changes nothing, unless rows are pushed.
    `on_wake` is called when that time becomes unknown. Without `has_state` there are no partial
    matches. A state is bytes, or a list of bytes if the stage is in parts.
    """

    on_wake: Callable[[], object] | None

    @property
    def next_due(self) -> int: ...

    @property
    def has_state(self) -> bool: ...

    @property
    def suppressed(self) -> int: ...

    @property
    def muted(self) -> Mapping[str, int]: ...

    def exceeded(self) -> Mapping[int, Excess]: ...

    def use(self, family: Family) -> None: ...

    def use_values(self, values: Values) -> None: ...

    def forget(self, number: int) -> None: ...

    def push(self, rows: Rows) -> None: ...

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers: ...

    def close(self, open_end: int | None = None) -> FoundAnswers: ...

    def partials(self) -> Sequence[PartialAnswer]: ...

    def live_states(self, number: int) -> LiveStates: ...

    def foreseen(self, number: int, until: int) -> Sequence[Answer]: ...

    def live_runs(self) -> int: ...

    def waits_after(self, watermark: int) -> bool: ...

    def snapshot(self) -> Any: ...

    def restore(self, snapshot: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class StageFactory:
    """Makes the stages of all queries, to run in this process; holds their common parts.

    `measures` are of the graph patterns of single queries.
    """

    knowledge: KnowledgeBase
    options: StageOptions
    on_bad: OnBad
    measures: Measures | None = field(default=None, kw_only=True)
    joint: JointPatterns = field(default_factory=JointPatterns, init=False, compare=False)
    versions: KnowledgeVersions = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", KnowledgeVersions(self.knowledge))

    @property
    def takes_parts(self) -> bool:
        """Whether its stages can restore from states in parts."""
        return False

    def check(self, plan: QueryPlan) -> None:
        """UsageError if its stages cannot evaluate a query."""

    def patterns(self, unit: UnitPlan, before: MatchingStage | None = None) -> MatchingStage:
        """Stage 1 of a unit.

        With `before`, the stage 1 until graphs changed, it reuses stages where possible.
        """
        known = {id(stage.knowledge): stage for stage in _stages_of(before)}
        how = self.on_bad, self.options.limits, self.joint, self.measures
        stages = [
            (since, known.get(id(value)) or patterns_of(unit, value, *how))
            for since, value in self.versions.of(unit.plan.inputs.kbs)
        ]
        first = stages[0][1]
        return first if len(stages) == 1 else TimedPatterns(stages, unit.plan.patterns.columns)

    def sequence(self, unit: UnitPlan) -> UnitStage:
        """Stage 2 of a unit."""
        values = self.versions.of(unit.plan.inputs.kbs)
        stage = UnitSequence(unit, self.options, values[0][1], self.on_bad)
        stage.use_values(values)
        return stage

    def idle(self, index: VerticalPartition) -> Set[object]:
        """Stage 1 objects that are known to have no solutions on a batch."""
        return self.joint.idle(index)

    def begin(self, due: Callable[[], Mapping[Any, int]]) -> None:
        """Learn to which watermark (ms) each unit will advance next, in this order."""


def _stages_of(stage: MatchingStage | None) -> Sequence[UnitPatterns]:
    """The stages for single values of the graphs."""
    stages = [each for _, each in stage.stages] if isinstance(stage, TimedPatterns) else [stage]
    return [each for each in stages if isinstance(each, PatternStage | FamilyPatterns)]


class LazyPatterns:
    """Stage 1 of a unit, made by `make` at the first events."""

    def __init__(self, make: Callable[[], MatchingStage]) -> None:
        self._make, self._made = make, list[MatchingStage]()

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of a batch's events."""
        if not self._made:
            self._made.append(self._make())
        return self._made[0].match(events, index)


@dataclass(frozen=True, slots=True)
class LazyStages(StageFactory):
    """Makes each stage 1 at its first events, for a task that matches only registered streams."""

    def patterns(self, unit: UnitPlan, before: MatchingStage | None = None) -> MatchingStage:
        """Stage 1 of a unit, as from `StageFactory`."""
        return LazyPatterns(partial(StageFactory.patterns, self, unit))


# Stage 1 of a unit while its graphs have several values: each event is matched with its own


class TimedPatterns:
    """Stage 1 with the values of graphs at different times.

    Args:
        stages: (time in ms from which it counts, stage); times ascend, and no event is before the
            first.
        columns: of the solutions.
    """

    def __init__(
        self, stages: Sequence[tuple[int, MatchingStage]], columns: SolutionColumns
    ) -> None:
        self.stages, self._columns = stages, columns
        self._since = np.array([since for since, _ in stages], np.int64)

    def match(self, events: EventBatch, index: VerticalPartition | None = None) -> SolutionBatch:
        """The solutions of the batch's events; `index` is as for `PatternStage.match`."""
        number = np.searchsorted(self._since, events.time, side="right") - 1
        numbers = np.unique(number).tolist()
        if len(numbers) == 1:
            return self.stages[int(numbers[0])][1].match(events, index)
        parts = [self.stages[n][1].match(events.take(np.flatnonzero(number == n))) for n in numbers]
        return SolutionBatch.concat(parts, self._columns)
