"""Stage 2 of a query by itself, whose answers come as one list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spaseq.algebra.answers import Answer
from spaseq.automaton.run.live_states import LiveStates
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.families import UnitPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.unit_sequence import UnitSequence


class SingleQuery:
    """A `UnitSequence` of one query; `unit` is that."""

    def __init__(self, plan: QueryPlan, knowledge: KnowledgeBase | None = None) -> None:
        self.unit = UnitSequence(UnitPlan({0: plan}), knowledge=knowledge)
        self.push, self.partials = self.unit.push, self.unit.partials
        self.live_runs, self.waits = self.unit.live_runs, self.unit.waits
        self.snapshot, self.restore = self.unit.snapshot, self.unit.restore

    def sleeps(self, watermark: int) -> bool:
        """Whether `advance` to a watermark (ms) gives nothing and changes nothing."""
        return watermark < self.unit.next_due

    def advance(self, watermark: int, ahead: bool = False) -> list[Answer]:
        """The answers that are certain by a watermark."""
        return _listed(self.unit.advance(watermark, ahead))

    def close(self) -> list[Answer]:
        """The remaining answers."""
        return _listed(self.unit.close())

    def live_states(self) -> LiveStates:
        """Where the partial matches are now."""
        return self.unit.live_states(0)


def _listed(found: Mapping[int, Sequence[Iterable[Answer]]]) -> list[Answer]:
    return [answer for pieces in found.values() for piece in pieces for answer in piece]
