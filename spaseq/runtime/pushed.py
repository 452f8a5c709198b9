"""Queries over events that come one by one or in batches: both stages, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.errors import RunError
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.stages.sequence import PatternStage, SequenceStage

Found: TypeAlias = "list[tuple[PushedQuery, SolutionBatch | EventRows]]"
"""Solutions with the query that they belong to."""


@dataclass(slots=True, eq=False)
class PushedQuery:
    """A query with its stages. `held` are answers that are not certain yet.

    `readers` are the queries that read the stream which this one registers.
    """

    plan: QueryPlan
    matcher: PatternStage
    events: SingleEventStage
    sequence: SequenceStage
    stream: RegisteredStream | None
    readers: list[PushedQuery] = field(default_factory=list)
    held: Sequence[Answer] = field(default_factory=list)

    def advance(self, watermark: int, ahead: bool) -> Sequence[Answer]:
        """The answers that are certain by a watermark, which its readers get, too."""
        answers = self.sequence.advance(watermark, ahead)
        if not answers and not self.held:  # the usual case
            return answers
        answers = [*self.held, *answers]
        certain = len(answers)
        while certain and answers[certain - 1].end[0] > watermark:  # they are in order
            certain -= 1
        self.held = answers[certain:]
        return self._told(answers[:certain])

    def close(self) -> Sequence[Answer]:
        """The remaining answers."""
        answers, self.held = [*self.held, *self.sequence.close()], []
        return self._told(answers)

    def _told(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        if answers and self.readers and self.stream is not None:
            events = self.stream.events(answers)
            for reader in self.readers:
                reader.sequence.push(reader.matcher.match(events))
        return answers


class PushedQueries:
    """Evaluates queries, each after those whose streams it reads.

    `match_event` and `match_batch` find the solutions of events and change nothing. `push` takes
    these solutions, in any order of time after the watermark. `advance` gives the answers that are
    certain. If `advance` or `close` fails, state is lost; every later call raises a RunError.
    """

    def __init__(
        self,
        plans: Sequence[QueryPlan],
        knowledge: KnowledgeBase,
        options: StageOptions,
        on_bad: OnBad,
    ) -> None:
        self.queries = [_query(plan, knowledge, options, on_bad) for plan in plans]
        self._readers: dict[str, list[PushedQuery]] = {}
        for query in self.queries:
            for iri in query.plan.inputs.streams:
                self._readers.setdefault(iri, []).append(query)
        for query in self.queries:
            if query.plan.identity.register is not None:
                query.readers = self._readers.get(query.plan.identity.register, [])
        self._failure: str | None = None  # why the state cannot be used any more

    def check(self) -> None:
        """RunError if an earlier failure has lost state."""
        if self._failure is not None:
            raise RunError(f"the engine cannot go on after a failure: {self._failure}")

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Found:
        """The solutions of one event of a stream, at an instant, of the graph `name`."""
        found: Found = []
        for query in self._readers[iri]:
            rows = query.events.match(iri, *instant, name, triples)
            if rows is not None:
                found.append((query, rows))
        return found

    def match_batch(self, batch: EventBatch) -> Found:
        """The solutions of many events."""
        return [(query, query.matcher.match(batch)) for query in self._readers[batch.stream]]

    def push(self, found: Found) -> None:
        """Take solutions."""
        for query, rows in found:
            query.sequence.push(rows)

    def advance(self, watermark: int, ahead: bool = False) -> list[tuple[int, Answer]]:
        """(number of the query, answer) of all answers that are certain by a watermark (ms).

        With `ahead`, solutions after the watermark are processed, too. That needs a promise: of the
        events that follow, none has the instant of one that came.
        """
        found: list[tuple[int, Answer]] = []
        try:
            for number, query in enumerate(self.queries):
                for answer in query.advance(watermark, ahead):
                    found.append((number, answer))
        except BaseException as error:
            self._fail(error)
            raise
        return found

    def close(self) -> list[tuple[int, Answer]]:
        """The remaining answers; all streams have ended."""
        try:
            return [(n, a) for n, query in enumerate(self.queries) for a in query.close()]
        except BaseException as error:
            self._fail(error)
            raise

    def partials(self) -> list[tuple[int, PartialAnswer]]:
        """The partial matches whose windows have closed since the last call, query by query."""
        return [
            (number, partial)
            for number, query in enumerate(self.queries)
            for partial in query.sequence.partials()
        ]

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit per event so far."""
        return sum(query.sequence.suppressed for query in self.queries)

    def _fail(self, error: BaseException) -> None:
        """Note a failure in the midst of a sequence, which leaves no state to go on from."""
        self._failure = f"{type(error).__name__}: {error}"


def _query(
    plan: QueryPlan, knowledge: KnowledgeBase, options: StageOptions, on_bad: OnBad
) -> PushedQuery:
    matcher = PatternStage(plan, knowledge, on_bad, options.limits)
    register = plan.identity.register
    return PushedQuery(
        plan,
        matcher,
        SingleEventStage(plan, matcher),
        SequenceStage(plan, options, knowledge, on_bad),
        None if register is None else RegisteredStream(register),
    )
