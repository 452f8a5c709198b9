"""What is evaluated as one over pushed events: a query, or a family of queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.expr.casts import CASTS
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.options import StageOptions
from spaseq.plan.families import Family
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.in_memory.program_events import batch_of_event
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.stages.family_stage import FamilyPatterns, FamilySequence
from spaseq.stages.sequence import SequenceStage

Rows: TypeAlias = "SolutionBatch | EventRows"
"""Solutions of many events or of one."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the stages of all queries have in common."""

    knowledge: KnowledgeBase
    options: StageOptions
    on_bad: OnBad


@dataclass(slots=True, eq=False)
class PushedQuery:
    """A query. `held` are answers that are not certain yet.

    `readers` read the stream which the query registers. `failure` says why it cannot go on.
    """

    plan: QueryPlan
    stream: RegisteredStream | None = None
    readers: list[Unit] = field(default_factory=list)
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
        return answers


class Unit(Protocol):
    """Queries that are evaluated as one; all read the same streams."""

    @property
    def queries(self) -> Sequence[PushedQuery]:
        """Its queries, at least one."""

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Rows | None:
        """The solutions of one event of a stream, at an instant, of the graph `name`."""

    def match_batch(self, events: EventBatch) -> SolutionBatch:
        """The solutions of many events."""

    def push(self, rows: Rows) -> None:
        """Take solutions."""

    def advance(
        self, watermark: int, ahead: bool
    ) -> Iterable[tuple[PushedQuery, Sequence[Answer]]]:
        """The answers that are certain by a watermark."""

    def close(self) -> Iterable[tuple[PushedQuery, Sequence[Answer]]]:
        """The remaining answers."""

    def partials(self) -> Sequence[PartialAnswer]:
        """The partial matches whose windows have closed, if there is one query."""

    @property
    def suppressed(self) -> int:
        """The number of answers beyond the limit per event so far."""


class QueryUnit:
    """A query by itself."""

    def __init__(self, query: PushedQuery, how: Evaluation) -> None:
        plan = query.plan
        self.query, self.queries = query, (query,)
        self._matcher = PatternStage(plan, how.knowledge, how.on_bad, how.options.limits)
        self._events = SingleEventStage(plan, self._matcher)
        self._sequence = SequenceStage(plan, how.options, how.knowledge, how.on_bad)

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Rows | None:
        return self._events.match(iri, *instant, name, triples)

    def match_batch(self, events: EventBatch) -> SolutionBatch:
        return self._matcher.match(events)

    def push(self, rows: Rows) -> None:
        self._sequence.push(rows)

    def advance(
        self, watermark: int, ahead: bool
    ) -> Iterable[tuple[PushedQuery, Sequence[Answer]]]:
        answers = self.query.certain(self._sequence.advance(watermark, ahead), watermark)
        return ((self.query, answers),) if answers else ()

    def close(self) -> Iterable[tuple[PushedQuery, Sequence[Answer]]]:
        return ((self.query, self.query.rest(self._sequence.close())),)

    def partials(self) -> Sequence[PartialAnswer]:
        return self._sequence.partials()

    @property
    def suppressed(self) -> int:
        return self._sequence.suppressed


class FamilyUnit:
    """The queries of a family. They may come and go; a row of the table is never used twice."""

    def __init__(self, family: Family, queries: Sequence[PushedQuery], how: Evaluation) -> None:
        """`queries` has a query at least at the numbers of the family's members."""
        self._how, self._family = how, family
        self._members = {number: queries[number] for number in family.members}
        self._plans = [query.plan for query in queries]
        self._sequence = FamilySequence(family, self._plans, how.options, how.knowledge, how.on_bad)
        self._holding: set[int] = set()  # members that hold answers
        self._come: dict[int, QueryPlan] = {}  # members that have no row yet
        self._gone: list[int] = []  # numbers whose rows are not needed any more
        self._set_rows()

    @property
    def queries(self) -> Sequence[PushedQuery]:
        return [*self._members.values()]

    def _set_rows(self) -> None:
        """Let the table have the rows of the members that there are."""
        self._family = self._family.changed(self._come, self._gone)
        self._come.clear()
        self._gone.clear()
        how, family = self._how, self._family
        limits = how.options.limits
        self._patterns = FamilyPatterns(family, self._plans, how.knowledge, how.on_bad, limits)
        self._sequence.use(family)

    def takes(self, plan: QueryPlan) -> bool:
        """Whether a query can become a member."""
        return self._family.takes(plan) and not may_fail(plan)

    def add(self, query: PushedQuery) -> None:
        """Take another member, for the events from now on."""
        self._members[len(self._plans)] = query
        self._come[len(self._plans)] = query.plan
        self._plans.append(query.plan)

    def remove(self, query: PushedQuery) -> None:
        """Forget a member; its partial matches leave with their windows."""
        number = next(n for n, own in self._members.items() if own is query)
        del self._members[number]
        self._sequence.forget(number)
        if self._come.pop(number, None) is None:
            self._gone.append(number)

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Rows | None:
        rows = self.match_batch(batch_of_event(iri, *instant, name, triples))
        return rows if len(rows) else None

    def match_batch(self, events: EventBatch) -> SolutionBatch:
        if self._come or self._gone:
            self._set_rows()
        return self._patterns.match(events)

    def push(self, rows: Rows) -> None:
        self._sequence.push(rows)

    def advance(
        self, watermark: int, ahead: bool
    ) -> Iterator[tuple[PushedQuery, Sequence[Answer]]]:
        found = self._sequence.advance(watermark, ahead)
        due, self._holding = sorted({*found, *self._holding} & self._members.keys()), set()
        for number in due:
            query = self._members[number]
            answers = [answer for piece in found.get(number, ()) for answer in piece]
            certain = query.certain(answers, watermark)
            if query.held:
                self._holding.add(number)
            if certain:
                yield query, certain

    def close(self) -> Iterator[tuple[PushedQuery, Sequence[Answer]]]:
        found = self._sequence.close()
        for number, query in self._members.items():
            answers = [answer for piece in found.get(number, ()) for answer in piece]
            yield query, query.rest(answers)

    def partials(self) -> Sequence[PartialAnswer]:
        return ()  # a query that gives partial matches is no member

    @property
    def suppressed(self) -> int:
        return self._sequence.suppressed


def may_fail(plan: QueryPlan) -> bool:
    """Whether a query calls a function of the user's, so that it may fail where others do not."""
    return plan.shaped is not None and any(
        isinstance(node, ast.FunctionCall) and node.function.value not in CASTS
        for node in walk(plan.shaped.shape.query)
    )
