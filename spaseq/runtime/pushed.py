"""Queries over events that come one by one or in batches: both stages, in this process."""

from __future__ import annotations

import logging
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
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.job.chaining import RegisteredStream, reading_order
from spaseq.stages.sequence import PatternStage, SequenceStage

Found: TypeAlias = "list[tuple[PushedQuery, SolutionBatch | EventRows]]"
"""Solutions with the query that they belong to."""

_LOG = logging.getLogger("spaseq")


@dataclass(slots=True, eq=False)
class PushedQuery:
    """A query with its stages. `held` are answers that are not certain yet.

    `readers` are the queries that read the stream which this one registers. `failure` says why the
    query cannot go on.
    """

    plan: QueryPlan
    matcher: PatternStage
    events: SingleEventStage
    sequence: SequenceStage
    stream: RegisteredStream | None
    readers: list[PushedQuery] = field(default_factory=list)
    held: Sequence[Answer] = field(default_factory=list)
    failure: str | None = None

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
    """Evaluates queries, each after those whose streams it reads. They come and go.

    `match_event` and `match_batch` find the solutions of events and change nothing. `push` takes
    these solutions, in any order of time after the watermark. `advance` gives the answers that are
    certain.

    With `apart`, a query that fails is left out from then on, and the others go on. Otherwise, and
    if it is the last one, the error is raised; if that happens in `advance` or `close`, state is
    lost, and every later call raises a RunError.
    """

    def __init__(
        self,
        plans: Sequence[QueryPlan],
        knowledge: KnowledgeBase,
        options: StageOptions,
        on_bad: OnBad,
        apart: bool = False,
    ) -> None:
        """`plans` are in reading order."""
        self._knowledge, self._options, self._on_bad = knowledge, options, on_bad
        self._apart = apart
        self._counters: dict[str, InstantCounter] = {}
        self._suppressed = 0  # by queries that have gone
        self._failure: str | None = None  # why the state cannot be used any more
        self._connect([self._query(plan) for plan in plans])

    def add(self, plan: QueryPlan, instead: PushedQuery | None = None) -> None:
        """Take another query, perhaps in the place of one. It gets the events from now on.

        Raises:
            UsageError: it registers a stream that another one registers, or queries would read each
                other's streams in a circle. Nothing has changed.
        """
        others = [query for query in self.queries if query is not instead]
        plans = reading_order([*(query.plan for query in others), plan])
        known = {id(query.plan): query for query in [*others, self._query(plan)]}
        if instead is not None:
            self.remove(instead)
        self._connect([known[id(own)] for own in plans])

    def remove(self, query: PushedQuery) -> None:
        """Forget a query with its state. A stream that it registers has no further events."""
        self._suppressed += query.sequence.suppressed
        self._connect([own for own in self.queries if own is not query])

    def _connect(self, queries: Sequence[PushedQuery]) -> None:
        """Let queries read their streams; they are in reading order."""
        self.queries = [*queries]
        self._readers: dict[str, list[PushedQuery]] = {}
        for query in self._running:
            for iri in query.plan.inputs.streams:
                self._readers.setdefault(iri, []).append(query)
        for query in self._running:
            if query.plan.identity.register is not None:
                query.readers = self._readers.get(query.plan.identity.register, [])

    def _query(self, plan: QueryPlan) -> PushedQuery:
        matcher = PatternStage(plan, self._knowledge, self._on_bad, self._options.limits)
        iri = plan.identity.register
        stream = None if iri is None else RegisteredStream(iri, self.counter(iri))
        return PushedQuery(
            plan,
            matcher,
            SingleEventStage(plan, matcher),
            SequenceStage(plan, self._options, self._knowledge, self._on_bad),
            stream,
        )

    @property
    def _running(self) -> list[PushedQuery]:
        return [query for query in self.queries if query.failure is None]

    def _leave_out(self, query: PushedQuery, error: Exception) -> None:
        """Let the others go on without a query that has failed, or raise its error."""
        if not self._apart or self._running == [query]:
            raise error
        query.failure = f"{type(error).__name__}: {error}"
        query.held = []
        _LOG.warning("query %s has failed: %s", query.plan.identity.title, query.failure)
        self._connect(self.queries)

    def counter(self, iri: str) -> InstantCounter:
        """The counter of a stream's instants, whoever makes its events."""
        return self._counters.setdefault(iri, InstantCounter(ordered=True))

    def check(self) -> None:
        """RunError if an earlier failure has lost state."""
        if self._failure is not None:
            raise RunError(f"the engine cannot go on after a failure: {self._failure}")

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Found:
        """The solutions of one event of a stream, at an instant, of the graph `name`."""
        found: Found = []
        for query in self._readers.get(iri, ()):
            try:
                rows = query.events.match(iri, *instant, name, triples)
            except Exception as error:
                self._leave_out(query, error)
                continue
            if rows is not None:
                found.append((query, rows))
        return found

    def match_batch(self, batch: EventBatch) -> Found:
        """The solutions of many events."""
        found: Found = []
        for query in self._readers.get(batch.stream, ()):
            try:
                found.append((query, query.matcher.match(batch)))
            except Exception as error:
                self._leave_out(query, error)
        return found

    def push(self, found: Found) -> None:
        """Take solutions."""
        for query, rows in found:
            if query.failure is None:
                query.sequence.push(rows)

    def advance(self, watermark: int, ahead: bool = False) -> list[tuple[int, Answer]]:
        """(number of the query, answer) of all answers that are certain by a watermark (ms).

        With `ahead`, solutions after the watermark are processed, too. That needs a promise: of the
        events that follow, none has the instant of one that came.
        """
        found: list[tuple[int, Answer]] = []
        try:
            for number, query in enumerate(self.queries):
                if query.failure is not None:
                    continue
                try:
                    answers = query.advance(watermark, ahead)
                except Exception as error:
                    self._leave_out(query, error)
                    continue
                for answer in answers:
                    found.append((number, answer))
        except BaseException as error:
            self._fail(error)
            raise
        return found

    def close(self) -> list[tuple[int, Answer]]:
        """The remaining answers; all streams have ended."""
        found: list[tuple[int, Answer]] = []
        try:
            for number, query in enumerate(self.queries):
                if query.failure is None:
                    try:
                        found += [(number, answer) for answer in query.close()]
                    except Exception as error:
                        self._leave_out(query, error)
        except BaseException as error:
            self._fail(error)
            raise
        return found

    def partials(self) -> list[tuple[int, PartialAnswer]]:
        """The partial matches whose windows have closed since the last call, query by query."""
        return [
            (number, partial)
            for number, query in enumerate(self.queries)
            if query.failure is None
            for partial in query.sequence.partials()
        ]

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit per event so far."""
        return self._suppressed + sum(query.sequence.suppressed for query in self.queries)

    def _fail(self, error: BaseException) -> None:
        """Note a failure in the midst of a sequence, which leaves no state to go on from."""
        self._failure = f"{type(error).__name__}: {error}"
