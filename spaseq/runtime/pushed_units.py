"""What is evaluated as one over pushed events: a query, or a family of queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import RunError
from spaseq.expr.casts import CASTS
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.plan.families import Family, family_again
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.in_memory.program_events import batch_of_event
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.runtime.unit_stages import Evaluation, MatchingStage, OrderedStage, Rows
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain


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

    @property
    def title(self) -> str:
        """The title of the query, or of the family."""

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Rows | None:
        """The solutions of one event of a stream, at an instant, of the graph `name`."""

    def match_batch(
        self, events: EventBatch, index: VerticalPartition | None = None
    ) -> SolutionBatch:
        """The solutions of many events; units share `index`."""

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

    def exceeded(self) -> Mapping[PushedQuery, Excess]:
        """Which of its queries have had too many partial matches, and when."""

    def live_runs(self) -> int:
        """The number of partial matches that wait."""

    def live_states(self, query: PushedQuery) -> LiveStates:
        """Where the partial matches of one of its queries are."""

    @property
    def stage(self) -> OrderedStage:
        """Its stage 2."""

    def tables(self) -> Sequence[MatchingStage]:
        """Its stage 1, for the queries that it has now: the solutions of all of these."""

    def snapshot(self) -> bytes:
        """The state, for `restored_unit`; no query holds answers."""


class QueryUnit:
    """A query by itself."""

    def __init__(self, query: PushedQuery, how: Evaluation) -> None:
        plan = query.plan
        self.query, self.queries, self.title = query, (query,), plan.identity.title
        self._matcher, self.stage = how.patterns(plan), how.sequence(plan)
        self._events = (
            SingleEventStage(plan, self._matcher)
            if isinstance(self._matcher, PatternStage)
            else None
        )

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Rows | None:
        assert self._events is not None  # single events are pushed in this process only
        return self._events.match(iri, *instant, name, triples)

    def match_batch(
        self, events: EventBatch, index: VerticalPartition | None = None
    ) -> SolutionBatch:
        return self._matcher.match(events, index)

    def push(self, rows: Rows) -> None:
        self.stage.push(rows)

    def advance(
        self, watermark: int, ahead: bool
    ) -> Iterable[tuple[PushedQuery, Sequence[Answer]]]:
        answers = self.query.certain(self.stage.advance(watermark, ahead), watermark)
        return ((self.query, answers),) if answers else ()

    def close(self) -> Iterable[tuple[PushedQuery, Sequence[Answer]]]:
        return ((self.query, self.query.rest(self.stage.close())),)

    def partials(self) -> Sequence[PartialAnswer]:
        return self.stage.partials()

    @property
    def suppressed(self) -> int:
        return self.stage.suppressed

    def exceeded(self) -> Mapping[PushedQuery, Excess]:
        excess = self.stage.exceeded.get(None)
        return {} if excess is None else {self.query: excess}

    def live_runs(self) -> int:
        return self.stage.live_runs()

    def live_states(self, query: PushedQuery) -> LiveStates:
        return self.stage.live_states()

    def tables(self) -> Sequence[MatchingStage]:
        return (self._matcher,)

    def snapshot(self) -> bytes:
        assert not self.query.held
        return dump_plain([self.stage.snapshot()])

    def restore(self, sequence: Any) -> None:
        """Go on from the state of a sequence."""
        self.stage.restore(sequence)


_RECENT = 64
"""The most rows of the table of members that have come lately, in a family that is small."""


class FamilyUnit:
    """The queries of a family. They may come and go; a row of the table is never used twice."""

    def __init__(self, family: Family, members: Mapping[int, PushedQuery], how: Evaluation) -> None:
        """`members` are the family's members, by number; its table has their rows."""
        self._how, self._family, self._members = how, family, {**members}
        self._plans = {number: query.plan for number, query in self._members.items()}
        self._next = max(self._members) + 1  # the number of the next member
        self._sequence = how.family_sequence(family, self._plans)
        self._holding: set[int] = set()  # members that hold answers
        self._come: dict[int, QueryPlan] = {}  # members that have no row yet
        self._gone: list[int] = []  # numbers whose rows are not needed any more
        self._tabled = len(family.rows)  # rows that are in the first table, or in none
        self._tables = [self._how.family_patterns(family, self._plans)]

    @property
    def queries(self) -> Sequence[PushedQuery]:
        return [*self._members.values()]

    @property
    def title(self) -> str:
        return self._family.plan.identity.title

    def _set_rows(self) -> None:
        """Let the table have the rows of the members that there are."""
        has_gone = bool(self._gone)
        self._family = self._family.changed(self._come, self._gone)
        for number in self._gone:
            del self._plans[number]
        self._come.clear()
        self._gone.clear()
        self._sequence.use(self._family)
        count = len(self._family.rows)
        # Members that have come lately are in a table of their own, which is small.
        if has_gone or count - self._tabled > max(_RECENT, self._tabled // 16):
            self._tabled = count
            self._tables = [self._how.family_patterns(self._family.tabled(), self._plans)]
        else:
            recent = self._family.tabled(self._tabled)
            self._tables[1:] = [self._how.family_patterns(recent, self._plans)]

    def takes(self, plan: QueryPlan) -> bool:
        """Whether a query can become a member."""
        return self._family.takes(plan) and not may_fail(plan)

    def add(self, query: PushedQuery) -> None:
        """Take another member, for the events from now on."""
        number, self._next = self._next, self._next + 1
        self._members[number] = query
        self._come[number] = self._plans[number] = query.plan

    def remove(self, query: PushedQuery) -> None:
        """Forget a member; its partial matches leave with their windows."""
        number = self._number(query)
        del self._members[number]
        self._sequence.forget(number)
        if self._come.pop(number, None) is None:
            self._gone.append(number)
        else:
            del self._plans[number]

    def _number(self, query: PushedQuery) -> int:
        return next(n for n, own in self._members.items() if own is query)

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Rows | None:
        rows = self.match_batch(batch_of_event(iri, *instant, name, triples))
        return rows if len(rows) else None

    def match_batch(
        self, events: EventBatch, index: VerticalPartition | None = None
    ) -> SolutionBatch:
        found = [table.match(events, index) for table in self.tables()]
        return SolutionBatch.concat(found, self._family.plan.patterns.columns)

    def tables(self) -> Sequence[MatchingStage]:
        if self._come or self._gone:
            self._set_rows()
        return self._tables

    @property
    def stage(self) -> OrderedStage:
        return self._sequence.stage

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

    def exceeded(self) -> Mapping[PushedQuery, Excess]:
        own = self._sequence.exceeded().items()
        return {self._members[n]: excess for n, excess in own if n in self._members}

    def live_runs(self) -> int:
        return self.stage.live_runs()

    def live_states(self, query: PushedQuery) -> LiveStates:
        return self._sequence.live_states(self._number(query))

    def snapshot(self) -> bytes:
        assert not self._holding
        if self._come or self._gone:
            self._set_rows()
        owners = self._family.owners
        row = {number: row for row, some in enumerate(owners) for number in some}
        members = [(n, row[n], plan.signature.canonical) for n, plan in self._plans.items()]
        head = self._family.places, len(owners), members
        return dump_plain([self.stage.snapshot(), *head])

    @classmethod
    def again(
        cls, head: Sequence[Any], queries: Sequence[PushedQuery], how: Evaluation
    ) -> FamilyUnit | None:
        """The unit that has written a snapshot; None if the queries are others."""
        places, row_count, members = head
        found = [*zip(members, queries, strict=True)]
        if any(query.plan.signature.canonical != text for (_, _, text), query in found):
            return None
        rows = [(number, row, query.plan) for (number, row, _), query in found]
        family = family_again(places, row_count, rows)
        if family is None:
            return None
        return cls(family, {number: query for (number, _, _), query in found}, how)

    def restore(self, sequence: Any) -> None:
        """Go on from the state of a sequence."""
        self.stage.restore(sequence)


def restored_unit(snapshot: bytes, queries: Sequence[PushedQuery], how: Evaluation) -> Unit:
    """The unit that has written a snapshot.

    `queries` are its queries, in the order in which `Unit.queries` had them.

    Raises:
        RunError: the snapshot is damaged, or of other queries.
    """
    title = queries[0].plan.identity.title
    try:
        sequence, *head = load_plain(snapshot)
        if head:
            unit: QueryUnit | FamilyUnit | None = FamilyUnit.again(head, queries, how)
        else:
            (query,) = queries
            unit = QueryUnit(query, how)
    except BROKEN as error:
        raise RunError(f"the state of query {title} is damaged: {error}") from error
    if unit is None:
        raise RunError(f"the state of query {title} and its family is of other queries")
    if isinstance(sequence, list) and not how.takes_parts:
        raise RunError(f"the state of query {title} is in parts, as Spark keeps it: go on there")
    unit.restore(sequence)
    return unit


def may_fail(plan: QueryPlan) -> bool:
    """Whether a query calls a function of the user's, so that it may fail where others do not."""
    return plan.shape is not None and any(
        isinstance(node, ast.FunctionCall) and node.function.value not in CASTS
        for node in walk(plan.shape.query)
    )
