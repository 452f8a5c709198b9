"""Queries over events that come one by one or in batches: both stages, in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from functools import partial
from operator import itemgetter
from typing import TypeAlias

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.algebra.graph_changes import changes_of
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import RunError
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.single_event.event_graph import EventGraph
from spaseq.kb.knowledge_versions import TimedChange
from spaseq.memory import collection_paused
from spaseq.plan import families as families_module
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.kept_groups import keeping_lasting
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import FewEvents
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.job.unit_graph import order_with, stream_of
from spaseq.runtime.pushed_units import PushedQuery, PushedUnit, may_fail, restored_unit
from spaseq.runtime.running_units import RunningUnits, UnitCounts
from spaseq.stages.maintained_graphs import MaintainedGraphs, MaintainedState
from spaseq.stages.unit_stages import Rows, StageFactory
from spaseq.stateful import go_on, state_of

Found: TypeAlias = "list[tuple[PushedUnit, Rows]]"
"""Solutions by query."""

PushedState: TypeAlias = (
    "tuple[list[tuple[list[str], bytes]], dict[str, str], dict[str, MaintainedState]]"
)
"""The titles and the snapshot of each unit, the failures of queries by title, and the maintained
graphs by IRI.
"""

_LOG = logging.getLogger("spaseq")


class Tolerated(Enum):
    """The kinds of query failures that do not end the run."""

    NONE = "none"
    OTHERS = "as long as another query is left"
    ALL = "all"


class PushedQueries:
    """Evaluates changing queries, each after the queries whose streams it reads.

    `match_event` and `match_batch` find the solutions of events and change nothing. `push` takes
    these solutions, in any order of time after the watermark. `advance` and `advance_streams`
    return the answers that are certain.

    With `families`, queries that differ in constants only are evaluated together. If a query fails,
    `tolerated` says whether it is left out from then on, or the error is raised; if that happens in
    `advance` or `close`, state is lost, and every later call raises a RunError.

    Attributes:
        queries: all queries, in reading order.
        maintained: the graphs that they maintain.
        graphs: the values of these graphs, and of those that a query still reads.
        running: the units of the queries that have not failed.
    """

    def __init__(
        self,
        plans: Sequence[QueryPlan],
        how: StageFactory,
        families: bool = False,
        tolerated: Tolerated = Tolerated.NONE,
    ) -> None:
        """`plans` are in reading order; `how` makes their stages."""
        plans = [keeping_lasting(plan, plan.inputs.kbs) for plan in plans]
        self._how = how
        self._families, self._tolerated = families, tolerated
        self._counters: dict[str, InstantCounter] = {}
        self.seconds: dict[str, float] = {}  # of work, by query or family
        self._suppressed = 0  # by queries that have gone
        self._counts = UnitCounts()
        self._failure: str | None = None  # why the state cannot be used any more
        self.graphs = MaintainedGraphs(how.versions, how.knowledge)
        queries = [self._query(plan) for plan in plans]
        self._unit_of: dict[PushedQuery, PushedUnit] = {}
        self._may_begin = families_module.may_begin(how.options)
        alike = families_module.families_of(plans, self._may_begin) if families else ()
        for family in alike:
            if not may_fail(family.first):
                unit = PushedUnit({n: queries[n] for n in family.members}, self._how, family)
                self._unit_of.update((query, unit) for query in unit.queries)
        for query in queries:
            if query not in self._unit_of:
                self._unit_of[query] = PushedUnit({0: query}, self._how)
        self._connect(queries)

    def unit(self, query: PushedQuery) -> PushedUnit:
        """The unit that evaluates a query."""
        return self._unit_of[query]

    def query_of(self, title: str) -> PushedQuery | None:
        """The query with a title."""
        return self._titled.get(title)

    def check_plan(self, plan: QueryPlan, coming: Sequence[QueryPlan] = ()) -> None:
        """Check that a query can be added, perhaps as a replacement of the query of its title.

        `coming` are queries that will be added, too.

        Raises:
            UsageError: as from `add`.
        """
        self._how.check(plan)
        if not coming and not self._is_chained(plan):
            return
        others = [*(query.plan for query in self.queries), *coming]
        title = plan.identity.title
        order_with([other for other in others if other.identity.title != title], plan)

    def add(self, plan: QueryPlan, instead: PushedQuery | None = None) -> None:
        """Add a query, perhaps as a replacement. It gets the events from now on.

        Raises:
            UsageError: it registers a stream that another one registers, or queries would read each
                other's streams in a circle, or its stages cannot evaluate it. Nothing has changed.
        """
        plan = keeping_lasting(plan, plan.inputs.kbs)
        if instead is None and not self._is_chained(plan):
            query = self._query(plan)
            self._connect_last(query, self._unit_for(query))
            return
        others = [query for query in self.queries if query is not instead]
        plans, plan = order_with([query.plan for query in others], plan)
        query = self._query(plan)
        known = {id(each.plan): each for each in [*others, query]}
        if instead is not None:
            self._remove(instead)
        self._unit_of[query] = self._unit_for(query)
        self._connect([known[id(each)] for each in plans])
        self.graphs.forget_others(query.plan for query in self.queries)

    def _is_chained(self, plan: QueryPlan) -> bool:
        """Whether a query registers a stream, or reads a registered one."""
        read = {*plan.inputs.streams, *map(changes_of, plan.inputs.kbs)}
        return plan.identity.register is not None or not self.running.made.isdisjoint(read)

    def _unit_for(self, query: PushedQuery) -> PushedUnit:
        """The unit that evaluates a new query: a family, if one takes it."""
        family = next((unit for unit in self.running.families if unit.takes(query.plan)), None)
        if family is not None:
            family.add(query)
            self.running.grown(family)
        return family or self._begun(query) or self._alone(query)

    def _alone(self, query: PushedQuery) -> PushedUnit:
        """A unit of a single query, with the values of the graphs that others maintain."""
        unit = PushedUnit({0: query}, self._how)
        self.graphs.tell(unit, query.plan)
        return unit

    def adopt(self, plan: QueryPlan, other: PushedQueries) -> None:
        """Add a query with its state, from an object that has it alone.

        Its changes of a graph count if no other query has changed the graph.

        Raises:
            UsageError: as from `add`.
        """
        (adopted,) = other.queries
        snapshot = other.unit(adopted).snapshot()
        plan = keeping_lasting(plan, plan.inputs.kbs)
        plans, plan = order_with([query.plan for query in self.queries], plan)
        query, new = self._query(plan), self.graphs.adopt(other.graphs)
        known = {id(each.plan): each for each in [*self.queries, query]}
        self._unit_of[query] = restored_unit(snapshot, [query], self._how)
        self._connect([known[id(each)] for each in plans])
        for iri in new:
            for unit in self.running.readers(changes_of(iri)):
                self.graphs[iri].tell(unit)

    def _begun(self, query: PushedQuery) -> PushedUnit | None:
        """A new family for a query that is added, if enough others of its shape run alone."""
        key = families_module.family_key(query.plan)
        if key is None or not self._families or may_fail(query.plan):
            return None
        if self.running.alone(key) < thresholds.current.family_queries - 1:
            return None
        family = families_module.family_begun_by(query.plan, self._may_begin)
        return None if family is None else PushedUnit({0: query}, self._how, family)

    def remove(self, query: PushedQuery) -> None:
        """Remove a query with its state.

        A stream that it registers has no further events. A graph that it maintains stays as it is
        as long as a query reads it.
        """
        self._remove(query)
        self.graphs.forget_others(query.plan for query in self.queries)

    def _remove(self, query: PushedQuery) -> None:
        unit = self._unit_of.pop(query)
        unit.remove(query)
        if unit not in self._unit_of.values():
            self._suppressed += unit.sequence.suppressed
            self.seconds.pop(unit.title, None)
        self._connect([each for each in self.queries if each is not query])

    def _connect_last(self, query: PushedQuery, unit: PushedUnit) -> None:
        """Let one more query read its streams; no other query registers any of them."""
        self._unit_of[query] = unit
        self._numbers[query] = len(self.queries)
        self._titled[query.plan.identity.title] = query
        self.queries.append(query)
        if len(unit.queries) == 1:  # the unit is new
            self.running.add(unit)
            self._counts.note(unit)

    def _connect(self, queries: Sequence[PushedQuery]) -> None:
        """Let queries read their streams; they are in reading order."""
        self.queries = [*queries]
        self._titled = {query.plan.identity.title: query for query in queries}
        self.maintained = {q.plan.maintained for q in queries if q.plan.maintained is not None}
        self._numbers = {query: number for number, query in enumerate(self.queries)}
        self._counts = UnitCounts()
        for unit in {*self._unit_of.values()}:
            self._counts.note(unit)
        running = [query for query in self.queries if query.failure is None]
        # A family comes after the streams that its first member reads, and all read the same.
        self.running = RunningUnits(dict.fromkeys(self._unit_of[query] for query in running))
        for query in running:
            if query.plan.maintained is not None and query.stream is not None:
                query.stream.readers.insert(0, self.graphs[query.plan.maintained])

    def _query(self, plan: QueryPlan) -> PushedQuery:
        self._how.check(plan)
        iri = plan.identity.register  # several queries may maintain one graph
        counter = self.counter(iri) if iri is not None and plan.maintained is None else None
        return PushedQuery(plan, stream_of(plan, counter))

    def leave_out(self, unit: PushedUnit, error: Exception) -> None:
        """Leave failed queries out, or raise their error."""
        last = [*self.running] == [unit]
        if self._tolerated is Tolerated.NONE or (self._tolerated is Tolerated.OTHERS and last):
            raise error
        for query in unit.queries:
            _note_failure(query, f"{type(error).__name__}: {error}")
        self._connect(self.queries)

    def fail(self, query: PushedQuery, reason: str) -> None:
        """Leave a query out from now on, but not the others of its family."""
        unit = self._unit_of[query]
        if len(unit.queries) > 1:
            unit.remove(query)
            self._unit_of[query] = PushedUnit({0: query}, self._how)
        _note_failure(query, reason)
        self._connect(self.queries)

    def counter(self, iri: str) -> InstantCounter:
        """The counter of a stream's instants, also of a registered stream."""
        return self._counters.setdefault(iri, InstantCounter(ordered=True))

    def check(self) -> None:
        """RunError if an earlier failure has lost state."""
        if self._failure is not None:
            raise RunError(f"the engine cannot go on after a failure: {self._failure}")

    def match_event(
        self, iri: str, instant: tuple[int, int], name: str | None, triples: Sequence[Triple]
    ) -> Found:
        """The solutions of one event of a stream, at an instant, of the graph `name`."""
        return self._match_few(FewEvents(iri, [(*instant, name, triples)]))

    def match(self, events: EventBatch | FewEvents) -> Found:
        """The solutions of events. A few are matched one by one, by the units they may concern."""
        if isinstance(events, EventBatch):
            return self.match_batch(events)
        if len(events.events) > thresholds.current.graphs_one_by_one:
            return self.match_batch(events.columns())
        return self._match_few(events)

    def _match_few(self, few: FewEvents) -> Found:
        solutions: Found = []
        in_columns = dict[PushedUnit, None]()
        for ms, k, name, triples in few.events:
            graph = EventGraph(triples)
            for unit in self.running.concerned(few.stream, graph):
                at = time.perf_counter()
                try:
                    stages = unit.single_events()
                    if not stages:
                        in_columns[unit] = None
                    for stage in stages:
                        rows = stage.match(few.stream, ms, k, name, graph)
                        if rows is not None:
                            solutions.append((unit, rows))
                except Exception as error:
                    self.leave_out(unit, error)
                self._add_seconds(unit, at)
        if in_columns:
            solutions += self._in_columns(VerticalPartition(few.columns()), in_columns)
        return solutions

    @collection_paused()
    def match_batch(self, batch: EventBatch) -> Found:
        """The solutions of many events."""
        index = VerticalPartition(batch)
        idle = self._how.idle(index)
        return self._in_columns(index, self.running.readers(batch.stream), idle)

    def _in_columns(
        self, index: VerticalPartition, units: Iterable[PushedUnit], idle: Set[object] = frozenset()
    ) -> Found:
        """The solutions of some units; the stages 1 in `idle` have none."""
        solutions: Found = []
        for unit in units:
            at = time.perf_counter()
            try:
                if idle and all(map(idle.__contains__, unit.tables())):
                    continue
                solutions.append((unit, unit.match_batch(index.batch, index)))
            except Exception as error:
                self.leave_out(unit, error)
            self._add_seconds(unit, at)
        return solutions

    def change_graph(self, change: TimedChange) -> None:
        """Change a graph; no event at or after the time of the change has come."""
        self._how.versions.add(change)
        for unit in self.running:
            unit.graphs_changed([change.graph])

    def drop_values(self, before: int) -> None:
        """Drop the values of graphs that no event after a time (ms) needs."""
        if self.graphs:
            self.graphs.settle(before)
        versions = self._how.versions
        if versions.have_changed and versions.drop(before):
            for unit in self.running:
                unit.graphs_changed(versions.changed)

    def push(self, solutions: Found) -> None:
        """Take solutions."""
        for unit, rows in solutions:
            unit.push(rows)

    def advance(self, watermark: int, ahead: bool = False) -> list[tuple[int, Answer]]:
        """(number of the query, answer) of all answers that are certain by a watermark (ms).

        With `ahead`, solutions after the watermark are processed, too. That needs a promise: of the
        events that follow, none has the instant of one that came.
        """
        awake = self.running.awake(lambda _: watermark)
        answers = self._answers((unit, unit.advance(watermark, ahead)) for unit, _ in awake)
        self.drop_values(watermark)
        return answers

    @collection_paused()
    def advance_streams(self, marks: Mapping[str, int]) -> list[tuple[int, Answer]]:
        """(number of the query, answer) of all answers that are certain at the watermarks of
        streams.

        `marks` has by stream IRI the time (ms) at or before which no event follows.
        """
        self._how.begin(partial(self.running.due, marks))
        awake = self.running.awake(self.running.watermarks(marks).__getitem__)
        answers = self._answers((unit, unit.advance(mark, False)) for unit, mark in awake)
        self.drop_values(min(marks.values()))
        return answers

    def _add_seconds(self, unit: PushedUnit, since: float) -> None:
        """Count the time of work for a unit that began at a reading of the clock."""
        seconds = time.perf_counter() - since
        self.seconds[unit.title] = self.seconds.get(unit.title, 0.0) + seconds

    @collection_paused()
    def close(self, open_end: int | None = None) -> list[tuple[int, Answer]]:
        """The remaining answers; all streams have ended. `open_end` is as for `SequenceStage`."""
        return self._answers((unit, unit.close(open_end)) for unit in self.running)

    def _answers(
        self, units: Iterable[tuple[PushedUnit, Iterable[tuple[PushedQuery, Sequence[Answer]]]]]
    ) -> list[tuple[int, Answer]]:
        """The answers of some units, query by query, as a generator."""
        numbered: list[tuple[int, Answer]] = []
        try:
            for unit, by_query in units:
                self._counts.note(unit)
                at = time.perf_counter()
                try:
                    for query, answers in by_query:
                        number = self._numbers[query]
                        numbered += [(number, answer) for answer in answers]
                except Exception as error:
                    self.leave_out(unit, error)
                self._add_seconds(unit, at)
        except BaseException as error:
            self._fail(error)
            raise
        if len(self.running) < len(self.queries):  # a family's answers come together
            numbered.sort(key=itemgetter(0))
        return numbered

    def partials(self) -> list[tuple[int, PartialAnswer]]:
        """The partial matches whose windows have closed since the last call, query by query."""
        return [
            (self._numbers[unit.queries[0]], partial)
            for unit in self.running.partial
            for partial in unit.sequence.partials()
        ]

    @property
    def suppressed(self) -> int:
        """Number of answers beyond the limit per event so far."""
        return self._suppressed + self._counts.counted().suppressed

    @property
    def muted(self) -> dict[str, int]:
        """Number of answers that MUTE has left out so far, by the title of the query."""
        return {**self._counts.counted().muted}

    def exceeded(self) -> Mapping[PushedQuery, Excess]:
        """The instants at which queries exceeded the limit on partial matches, by query."""
        exceeded = self._counts.counted().exceeded
        return {query: excess for query, excess in exceeded.items() if query.failure is None}

    def _fail(self, error: BaseException) -> None:
        """Record a failure within a sequence, after which the state cannot be used."""
        self._failure = f"{type(error).__name__}: {error}"

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> PushedState:
        """The state; all answers so far were certain."""
        units = [([_title(q) for q in unit.queries], unit.snapshot()) for unit in self.running]
        failures = {_title(q): q.failure for q in self.queries if q.failure is not None}
        return units, failures, state_of(self.graphs)

    def restore(self, state: PushedState) -> None:
        """Restore from a snapshot of the same queries.

        Raises:
            OtherStateError: a query's state is of an incompatible version. Nothing has changed.
            RunError: it is of other queries, of another version, or damaged.
        """
        units, failures, graphs = state
        known = {_title(query): query for query in self.queries}
        titles = [title for some, _ in units for title in some]
        if sorted([*titles, *failures]) != sorted(known):
            raise RunError("the state of the run is damaged: it is of other queries")
        unit_of: dict[PushedQuery, PushedUnit] = {}
        for some, snapshot in units:
            queries = [known[title] for title in some]
            unit = restored_unit(snapshot, queries, self._how)
            unit_of.update(dict.fromkeys(queries, unit))
        self._unit_of.update(unit_of)
        for query in self.queries:
            query.failure = failures.get(_title(query))
        go_on(self.graphs, graphs)
        self._connect(self.queries)


def _note_failure(query: PushedQuery, reason: str) -> None:
    query.failure, query.held = reason, []
    _LOG.warning("query %s has failed: %s", _title(query), reason)


def _title(query: PushedQuery) -> str:
    return query.plan.identity.title
