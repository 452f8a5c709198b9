"""Stage 1 of queries that are in no family, evaluated together.

GPMs of one template are evaluated once for all queries, and joined with the constants of each. The
first query that asks makes the solutions of all, which the index of the batch keeps. A query
without solutions costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from spaseq import thresholds
from spaseq.collection_pause import collection_paused
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.plan.pattern_templates import (
    PatternTemplate,
    TemplateUse,
    is_stateless,
    template_of,
)
from spaseq.rdf.columns.solution_batch import SolutionBatch

if TYPE_CHECKING:
    from spaseq.stages.shared_matching import SharedMatching

_GROWTH = 16
"""New queries wait for others until they are this share of all."""


_StageInShared: TypeAlias = "tuple[SharedMatching, int, SolutionBatch]"
"""What evaluates a stage, its number there, and a batch of no rows."""


class LonePatterns:
    """The first stages of a run's lone queries.

    Stages may come and go. One that comes later is evaluated by itself until a batch before which
    none came, so that a run to which queries are added all the time does not join them each time.
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
        """Take another stage, as long as somebody else refers to it."""
        plan = stage.plan
        asks = bool(plan.inputs.kbs and stage.knowledge.endpoints)
        if is_stateless(plan) and not asks:
            self._stages[stage] = ()
            self._new += 1
            self._waits = self._has_begun

    def solutions(self, stage: PatternStage, index: VerticalPartition) -> SolutionBatch | None:
        """The solutions of a stage on a whole batch; None if it must make them by itself."""
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
        """Join the stages, if enough have come or gone, and more are not to be expected at once."""
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
                from spaseq.stages.shared_matching import SharedMatching  # it is for many

                together = SharedMatching([(stage, self._uses(stage, known)) for stage in stages])
                self._together.append(together)
                for i, stage in enumerate(stages):
                    nothing = SolutionBatch.empty(stage.plan.patterns.columns)
                    self._joined[stage] = together, i, nothing
        self._joined_size = len(self._joined)

    def _uses(
        self, stage: PatternStage, known: dict[PatternTemplate, PatternTemplate]
    ) -> Sequence[TemplateUse | None]:
        """The templates of a stage's GPMs, made once; `known` has the templates of all stages."""
        if not self._stages[stage]:
            plan = stage.plan
            self._stages[stage] = [template_of(plan, gpm, known) for gpm in plan.patterns.gpms]
        return self._stages[stage]
