"""Stage 1 of several queries or families at once, where they have graph patterns in common.

The first request for the solutions of a batch computes the solutions of all; the index of the batch
keeps them. A query or family without solutions costs next to nothing. The GPMs of queries in no
family are evaluated once for each template, and joined with the constants of each query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.compiled.arrays import Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.shapes import QUERY
from spaseq.limits import Limits
from spaseq.memory import collection_paused
from spaseq.plan.families import Family, row_term
from spaseq.plan.pattern_templates import (
    PatternTemplate,
    TemplateUse,
    template_of,
)
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import TermColumn, TextArray, TextMemo, text_array
from spaseq.rdf.inputs.stream_options import ignore
from spaseq.records import record

if TYPE_CHECKING:
    from spaseq.plan.joint_plans import JointPlan
    from spaseq.stages.shared_matching import SharedMatching


_GROWTH = 16
"""New queries are joined when they are this share of all."""

_StageInShared: TypeAlias = "tuple[SharedMatching, int, SolutionBatch]"
"""The evaluator of a stage, its number there, and a batch without rows."""


class LonePatterns:
    """The first stages of a run's lone queries.

    Stages may come and go. A new stage is evaluated by itself until a batch before which none came,
    so that a run with a steady flow of new queries does not join them each time.
    """

    def __init__(self) -> None:
        self._stages: WeakKeyDictionary[PatternStage, Sequence[TemplateUse | None]] = (
            WeakKeyDictionary()
        )
        self._joined: WeakKeyDictionary[PatternStage, _StageInShared] = WeakKeyDictionary()
        self._together: list[SharedMatching] = []
        self._new = self._joined_size = 0
        self._has_begun, self._waits = False, False

    def add(self, stage: PatternStage) -> None:
        """Add a stage, for as long as others refer to it."""
        if stage.plan.is_stateless and not stage.may_ask:
            self._stages[stage] = ()
            self._new += 1
            self._waits = self._has_begun

    def solutions(self, stage: PatternStage, index: VerticalPartition) -> SolutionBatch | None:
        """The solutions of a stage on a whole batch; None if the stage must compute them itself."""
        index.remembered(self, self._begin_batch)
        joined = self._joined.get(stage)
        if joined is None:
            return None
        together, number, nothing = joined
        solutions = index.remembered(together, lambda: together.matched(index))
        return None if number in solutions.apart else solutions.found.get(number, nothing)

    def idle(self, index: VerticalPartition) -> set[PatternStage]:
        """The stages that are known to have no solutions on a whole batch."""
        index.remembered(self, self._begin_batch)
        stages = set[PatternStage]()
        for together in self._together:
            solutions = index.remembered(together, partial(together.matched, index))
            stages.update(together.others(solutions.found.keys() | solutions.apart))
        return stages

    def _begin_batch(self) -> None:
        """Join the stages, if enough have come or gone, and none came just now."""
        waits, self._has_begun, self._waits = self._waits, True, False
        gone = self._joined_size - len(self._joined)
        if not waits and (_GROWTH * self._new > self._joined_size or 2 * gone > self._joined_size):
            self._new = 0
            with collection_paused():
                self._join()

    def _join(self) -> None:
        self._joined.clear()
        self._together.clear()
        uses = (use for some in self._stages.values() for use in some if use is not None)
        known = {use.template: use.template for use in uses}
        alike: dict[object, list[PatternStage]] = {}
        for stage in [*self._stages]:
            alike.setdefault((id(stage.knowledge), stage.limits), []).append(stage)
        for stages in alike.values():
            if len(stages) >= thresholds.current.template_queries:
                from spaseq.stages.shared_matching import SharedMatching  # the stage is for many

                together = SharedMatching([(stage, self._uses(stage, known)) for stage in stages])
                self._together.append(together)
                for i, stage in enumerate(stages):
                    nothing = SolutionBatch.empty(stage.plan.patterns.columns)
                    self._joined[stage] = together, i, nothing
        self._joined_size = len(self._joined)

    def _uses(
        self, stage: PatternStage, known: dict[PatternTemplate, PatternTemplate]
    ) -> Sequence[TemplateUse | None]:
        """The templates of a stage's GPMs, from the shared templates `known`."""
        if not self._stages[stage]:
            plan = stage.plan
            self._stages[stage] = [template_of(plan, gpm, known) for gpm in plan.patterns.gpms]
        return self._stages[stage]


class JoinedStage(Protocol):
    """The part of a family's stage 1 that is evaluated together with others."""

    @property
    def family(self) -> Family: ...

    @property
    def knowledge(self) -> KnowledgeBase: ...

    @property
    def limits(self) -> Limits: ...


class JointPatterns:
    """The first stages of a run's families, grouped by common patterns, and of `lone` queries.

    Stages may come and go; new ones are joined as in `LonePatterns`.
    """

    def __init__(self) -> None:
        self.lone = LonePatterns()
        self._stages: WeakKeyDictionary[JoinedStage, None] = WeakKeyDictionary()
        self._joined: WeakKeyDictionary[JoinedStage, tuple[_JointStage, int]] = WeakKeyDictionary()
        self._has_new, self._has_begun, self._waits = False, False, False

    def add(self, stage: JoinedStage) -> None:
        """Add a stage, for as long as others refer to it."""
        self._stages[stage] = None
        self._has_new, self._waits = True, self._has_begun

    def solutions(self, stage: JoinedStage, index: VerticalPartition) -> SolutionBatch | None:
        """The solutions of a stage on a whole batch; None if the stage must compute them itself."""
        index.remembered(self, self._begin_batch)
        joint, number = self._joined.get(stage, (None, 0))
        if joint is None:
            return None
        found = index.remembered(joint, partial(joint.matched, index))
        if found is None:
            return None
        columns = stage.family.plan.patterns.columns
        return found.rows(number, columns) if number in found else SolutionBatch.empty(columns)

    def idle(self, index: VerticalPartition) -> set[JoinedStage | PatternStage]:
        """The stages that are known to have no solutions on a whole batch.

        This evaluates all joined stages.
        """
        index.remembered(self, self._begin_batch)
        idle: set[JoinedStage | PatternStage] = {*self.lone.idle(index)}
        for stage, (joint, number) in self._joined.items():
            solutions = index.remembered(joint, partial(joint.matched, index))
            if solutions is not None and number not in solutions:
                idle.add(stage)
        return idle

    def _begin_batch(self) -> bool:
        """Join the stages, if some have come before, and none came just now."""
        joins = self._has_new and not self._waits
        self._has_begun, self._waits = True, False
        if joins:
            self._has_new = False
            self._join()
        return joins

    def _join(self) -> None:
        self._joined.clear()
        alike: dict[object, list[JoinedStage]] = {}
        for stage in self._stages:
            alike.setdefault((id(stage.knowledge), stage.limits), []).append(stage)
        if not alike:
            return
        from spaseq.plan.joint_plans import joint_plans  # it is for families

        for stages in alike.values():
            for plan in joint_plans([stage.family for stage in stages]):
                joined = [stages[number] for number in plan.families]
                joint = _JointStage(plan, joined[0].knowledge, joined[0].limits)
                self._joined.update((stages[number], (joint, number)) for number in plan.families)


class _JointStage:
    """Stage 1 of some families at once."""

    def __init__(self, plan: JointPlan, knowledge: KnowledgeBase, limits: Limits) -> None:
        self._stage = PatternStage(plan.plan, knowledge, ignore, limits)
        origins = np.array(plan.origins, np.int32).reshape(-1, 3)
        self._family, self._gpm, self._row = (np.ascontiguousarray(c) for c in origins.T)
        self._terms: TextArray = text_array([row_term(i) for i in range(int(self._row.max()) + 1)])
        self._per_event: float | None = None  # solutions, as far as known
        self._rest, self._left = 1, 0  # batches without it after a failure, and until the next

    def matched(self, index: VerticalPartition) -> FamilyRows | None:
        """The solutions of the families that have some.

        None if there may be too many, or an event exceeds a limit, which a single family may not.
        """
        self._left -= 1
        if self._left >= 0 or self._has_many(index):
            return None
        rows = self._stage.match(index.batch, index)
        if self._stage.exceeding:
            self._rest = min(2 * self._rest, thresholds.current.longest_rest)
            self._left = self._rest
            return None
        self._rest, self._per_event = 1, len(rows) / max(1, len(index.batch))
        return self._by_family(rows)

    def _has_many(self, index: VerticalPartition) -> bool:
        """Whether a batch may have too many solutions, estimated from some of its events."""
        events, most = index.batch, thresholds.current.joint_rows / max(1, len(index.batch))
        if len(events) > thresholds.current.probed_events and (
            self._per_event is None or self._per_event > most
        ):
            self._per_event = (
                len(self._stage.match(events.part(0, thresholds.current.probed_events)))
                / thresholds.current.probed_events
            )
        return self._per_event is not None and self._per_event > most

    def _by_family(self, rows: SolutionBatch) -> FamilyRows:
        column = rows.values.get(QUERY)
        if column is None or not len(rows):
            return FamilyRows(rows, {})
        origin = table_rows_of(column.terms)[column.codes]
        order = np.argsort(self._family[origin], kind="stable")
        origin = origin[order]
        rows = replace(rows.take(order), gpm=self._gpm[origin])
        rows.values[QUERY] = TermColumn(self._row[origin], self._terms)
        family = self._family[origin]
        starts = np.flatnonzero(np.diff(family, prepend=-1)).tolist()
        parts = map(slice, starts, [*starts[1:], len(family)])
        return FamilyRows(rows, dict(zip(family[starts].tolist(), parts, strict=True)))


@record
class FamilyRows:
    """The solutions of several families on one batch; `parts` has the rows of each family."""

    together: SolutionBatch
    parts: Mapping[int, slice]

    def __contains__(self, family: int) -> bool:
        return family in self.parts

    def rows(self, family: int, columns: SolutionColumns) -> SolutionBatch:
        """The solutions of a family, with its columns."""
        rows = self.together.take(self.parts[family])
        if len(columns.variables) < len(rows.values) or len(columns.numbers) < len(rows.numbers):
            values = {v: rows.values[v] for v in columns.variables}
            numbers = {v: rows.numbers[v] for v in columns.numbers}
            return replace(rows, values=values, numbers=numbers)
        return rows


def _table_rows(terms: TextArray) -> Int64s:
    numbers = pc.cast(pc.utf8_slice_codeunits(terms, 1, -1), "int64")  # as `row_of`
    rows: Int64s = numbers.to_numpy(zero_copy_only=False)
    return rows


table_rows_of = TextMemo(_table_rows)
"""The rows [n] of a family's table for n texts; batches mostly share the texts."""
