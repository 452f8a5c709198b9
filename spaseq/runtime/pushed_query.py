"""A query over pushed events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spaseq.algebra.answers import Answer
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.job.chaining import RegisteredStream


class EventReader(Protocol):
    """What reads the events of a registered stream."""

    def match_batch(self, events: EventBatch) -> SolutionBatch:
        """The solutions of many events."""

    def push(self, rows: SolutionBatch) -> None:
        """Take solutions."""


@dataclass(slots=True, eq=False)
class PushedQuery:
    """A query. `held` are answers that are not certain yet.

    `readers` read the stream which the query registers. `failure` says why it cannot go on.
    """

    plan: QueryPlan
    stream: RegisteredStream | None = None
    readers: Sequence[EventReader] = field(default_factory=list)
    held: Sequence[Answer] = field(default_factory=list)
    failure: str | None = None

    def certain(self, answers: Sequence[Answer], watermark: int) -> Sequence[Answer]:
        """The answers that are certain by a watermark, which its readers get, too."""
        if not answers and not self.held:  # the usual case
            return answers
        answers = [*self.held, *answers]
        certain = len(answers)
        while certain and answers[certain - 1].end[0] > watermark:  # they are in order
            certain -= 1
        self.held = answers[certain:]
        return self._told(answers[:certain])

    def rest(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """All answers that are left; the streams have ended."""
        answers, self.held = [*self.held, *answers], []
        return self._told(answers)

    def _told(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        if answers and self.readers and self.stream is not None:
            events = self.stream.events(answers)
            for reader in self.readers:
                reader.push(reader.match_batch(events))
        return answers if self.plan.maintained is None else []
