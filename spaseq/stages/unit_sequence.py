"""Stage 2 of what is evaluated as one: a query by itself, or a family of queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stages.late_sequence import LateSequence

FoundAnswers: TypeAlias = Mapping[int, Sequence[Sequence[Answer]]]
"""The answers of each query in some pieces, in order, by the query's number."""


class UnitSequence(ABC):
    """A `SequenceStage` whose answers belong to one or several queries."""

    stage: LateSequence

    @abstractmethod
    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        """The answers that `SequenceStage.advance` gives."""

    @abstractmethod
    def close(self) -> FoundAnswers:
        """The remaining answers; all streams have ended."""

    @abstractmethod
    def exceeded(self) -> Mapping[int, Excess]:
        """Where queries have had too many partial matches, by the query's number.

        They have no answers that end there or later.
        """

    def push(self, rows: SolutionBatch | EventRows) -> None:
        """Take rows into the reorder buffer."""
        self.stage.push(rows)

    def partials(self) -> list[PartialAnswer]:
        """The partial matches that `SequenceStage.partials` gives; a family has none."""
        return self.stage.partials()

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit so far."""
        return self.stage.suppressed


class QuerySequence(UnitSequence):
    """Stage 2 of a query by itself."""

    def __init__(self, number: int, stage: LateSequence) -> None:
        self.stage, self._number = stage, number

    def advance(self, watermark: int, ahead: bool = False) -> FoundAnswers:
        return {self._number: [self.stage.advance(watermark, ahead)]}

    def close(self) -> FoundAnswers:
        return {self._number: [self.stage.close()]}

    def exceeded(self) -> Mapping[int, Excess]:
        own = self.stage.exceeded.get(None)
        return {} if own is None else {self._number: own}
