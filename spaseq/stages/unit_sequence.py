"""Stage 2 of what is evaluated as one: a query by itself, or a family of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import Values
from spaseq.options import StageOptions
from spaseq.plan.families import Family, UnitPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad, ignore, warn
from spaseq.stages.late_sequence import LateSequence
from spaseq.stages.member_answers import MemberAnswers

FoundAnswers: TypeAlias = Mapping[int, Sequence[Sequence[Answer]]]
"""The answers of each query in some pieces, in order, by the query's number."""


class UnitSequence:
    """A `SequenceStage` whose answers belong to one or several queries, by number."""

    def __init__(
        self,
        unit: UnitPlan,
        options: StageOptions = StageOptions(),
        knowledge: KnowledgeBase | None = None,
        on_bad: OnBad = warn,
    ) -> None:
        self._unit, self._given = unit, (options, knowledge)
        self._number: int | None = None  # of a query by itself
        self._members: MemberAnswers | None = None
        if unit.family is None:
            self._number, _ = unit.only
            self.stage = LateSequence(unit.plan, options, knowledge, on_bad)
        else:
            self._members = MemberAnswers(unit.family, unit.plans)
            limited = self._members.with_limit
            self.stage = LateSequence(unit.plan, options, knowledge, on_bad, limited)

    def use(self, family: Family) -> None:
        """Go on with other members of the family; the unit's plans have those that have come."""
        if self._members is not None:
            self._unit = UnitPlan(self._unit.plans, family)
            self._members.use(family)

    def use_values(self, values: Values) -> None:
        """Evaluate with the values that the knowledge base has at different times."""
        self.stage.use_values(values)

    def forget(self, number: int) -> None:
        """Give no more answers of a member."""
        if self._members is not None:
            self._members.forget(number)

    def push(self, rows: SolutionBatch | EventRows) -> None:
        """Take rows into the reorder buffer."""
        self.stage.push(rows)

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        """The answers that `SequenceStage.advance` gives."""
        return self._by_number(self.stage.advance(watermark, ahead))

    def close(self, open_end: int | None = None) -> FoundAnswers:
        """The remaining answers; all streams have ended. `open_end` is as for `SequenceStage`."""
        return self._by_number(self.stage.close(open_end))

    def _by_number(self, answers: Sequence[Answer]) -> FoundAnswers:
        """The answers since the last call. A member that has failed gives none from then on."""
        if self._members is None:
            assert self._number is not None
            return {self._number: [answers]} if answers else {}
        found = self._members.take()
        for number, excess in self.exceeded().items():
            pieces = found.pop(number, [])
            kept = [[answer for answer in own if answer.end < excess.instant] for own in pieces]
            if any(kept):
                found[number] = [*filter(None, kept)]
        return found

    def exceeded(self) -> dict[int, Excess]:
        """Where queries have had too many partial matches, by the query's number.

        They have no answers that end there or later.
        """
        exceeded, members = self.stage.exceeded, self._members
        if members is None:
            assert self._number is not None
            return {self._number: exceeded[None]} if None in exceeded else {}
        return {n: exceeded[term] for term in exceeded if term for n in members.owners(term)}

    def partials(self) -> list[PartialAnswer]:
        """The partial matches that `SequenceStage.partials` gives; a family has none."""
        return self.stage.partials()

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""
        return self.stage.suppressed

    @property
    def muted(self) -> Mapping[str, int]:
        """By the title of a query: the number of answers that MUTE has left out so far."""
        return self.stage.muted

    def live_states(self, number: int) -> LiveStates:
        """Where the partial matches of a query are now."""
        members = self._members
        if members is None:
            return self.stage.live_states()
        return self.stage.live_states(lambda key: members.is_of(number, key))

    def foreseen(self, number: int, until: int) -> Sequence[Answer]:
        """The answers of a query by a watermark (ms), if nothing further comes."""
        other = UnitSequence(self._unit, *self._given, on_bad=ignore)
        self.stage.copied_into(other.stage)
        return [answer for piece in other.advance(until).get(number, ()) for answer in piece]
