"""Joins of events with graphs that change: the operator between Order and Sequence.

Rows come in order of instants; each is an event from stage 1, or a change of a graph. At equal
times external changes come first, then answers of queries that maintain a graph, by the query's
name, then events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.algebra.graph_changes import GraphChange, change_of
from spaseq.budget import LimitExceeded
from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.gpm.handed_on import begins, events_of, name_ranks
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.changing_graph import ChangingGraph, without_unused
from spaseq.kb.kernels.timed_triples import FOR_EVER
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.kb.versions import versions_of
from spaseq.limits import Limits
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.plan.query_plan import ChangingGraphs, QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import ExtendedTerms
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.rdf.terms.term import Triple
from spaseq.records import record
from spaseq.stages.graph_joins import GraphJoins, PlacedRows
from spaseq.stages.timed_graphs import CodedRows, PlacedChanges, TimedGraph
from spaseq.stateful import Stateful

GraphsState: TypeAlias = "tuple[int, dict[str, list[Triple]]]"
"""The time (ms) of the last external changes, and the triples of each graph."""

_NEVER = -(2**63)


def _nothing(time: int) -> None:
    """Callback before a change that does nothing."""


@record
class _NumberedRows:
    """The events among the rows of a batch, or the changes of graphs.

    Attributes:
        rows: n rows.
        at: int64 [n], the position of each row's event or change; ascends. Events and changes share
            one numbering.
    """

    rows: SolutionBatch
    at: Int64s

    def between(self, first: int, end: int) -> _NumberedRows:
        """The rows from one position to another, which is excluded."""
        return _NumberedRows(self.rows.take(slice(first, end)), self.at[first:end])


@record
class _CodedBatch:
    """Events and changes of a batch; the changes also as patterns and triples; and the terms of
    both.
    """

    events: PlacedRows
    changes: _NumberedRows
    made: PlacedChanges
    lexicon: ExtendedTerms


def _some(rows: SolutionBatch, places: Indices) -> SolutionBatch:
    """The rows at ascending positions."""
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return rows.take(slice(int(places[0]), int(places[-1]) + 1))
    return rows.take(places)


def _order(rows: SolutionBatch, second: Int64s) -> Indices | slice:
    """The order of rows by time, then by `second`, then by number."""
    keys = rows.time, second, rows.k
    same: Bools = np.ones(max(len(rows) - 1, 0), np.bool_)
    is_in_order = True
    for key in keys:
        is_in_order = is_in_order and not (same & (key[1:] < key[:-1])).any()
        same &= key[1:] == key[:-1]
    return slice(None) if is_in_order else np.lexsort(keys[::-1])


class ChangingKnowledge(Stateful):
    """The graphs that a query reads, as they are at the time of its last row.

    Args:
        plan: a query that reads graphs that change.
        knowledge: the first value of each graph, and its external versions.
        on_bad: as for `PatternStage`.
        limits: as for `PatternStage`.
    """

    STATE = ("_done", "_graphs")

    def __init__(
        self, plan: QueryPlan, knowledge: KnowledgeBase, on_bad: OnBad, limits: Limits
    ) -> None:
        assert plan.changing is not None
        self._changing: ChangingGraphs = plan.changing
        self._whole, self._plan = plan, replace(plan, changing=None)
        self._on_bad, self._limits = on_bad, limits
        self._streams = plan.inputs.streams
        self._first = len(self._streams) - len(self._changing.makers)
        numbers = {iri: number for number, iri in enumerate(self._changing.graphs)}
        # The graph that each of the last streams changes; the last is for other streams.
        self._made = np.array([*(numbers[iri] for iri in self._changing.makers), 0], np.int64)
        splits = self._changing.splits or ()
        self._handed_on = sorted(frozenset[str]().union(*(each.handed_on for each in splits)))
        self._begin(knowledge)

    def _begin(self, knowledge: KnowledgeBase) -> None:
        graphs = self._changing.graphs
        self._knowledge = knowledge
        self._terms = ExtendedTerms(knowledge.terms)
        self._graphs = {
            iri: ChangingGraph(self._terms, knowledge.graphs.get(iri, {})) for iri in graphs
        }
        known = ((time, iri, name) for iri in graphs for time, name in versions_of(knowledge, iri))
        self._versions = sorted(known)
        self._times = np.array([time for time, _, _ in self._versions], np.int64)
        self._done = 0  # versions that have come
        self._before: Callable[[int], None] = _nothing
        self._stage: PatternStage | None = None  # of the present graphs

    def use(self, knowledge: KnowledgeBase) -> None:
        """From now on, take the other graphs from this knowledge base."""
        now = self.snapshot()
        self._begin(knowledge)
        self.restore(now)

    def current(self) -> KnowledgeBase:
        """The present knowledge base."""
        return self._with({iri: graph.relations() for iri, graph in self._graphs.items()})

    def _with(self, changing: Mapping[str, KbGraph]) -> KnowledgeBase:
        """The knowledge base with some values of the graphs that change."""
        known = self._knowledge
        graphs = {iri: g for iri, g in known.graphs.items() if iri in self._plan.inputs.kbs}
        return replace(known, terms=self._terms, graphs={**graphs, **changing})

    def matched(self, rows: SolutionBatch) -> SolutionBatch:
        """The solutions on the events among some rows, which follow all earlier rows."""
        self._forget_terms()
        parts = [*(self.steps(rows) if self._changing.splits is None else self._together(rows))]
        return SolutionBatch.concat(parts, self._plan.patterns.columns)

    def steps(
        self,
        rows: SolutionBatch,
        before: Callable[[int], None] | None = None,
        until: int = _NEVER,
    ) -> Iterator[SolutionBatch]:
        """The solutions, in pieces; for each piece the graphs have their values at its time.

        Args:
            rows: the next rows.
            before: called before each change of a graph, with its time (ms).
            until: at the end the graphs have their values of this time (ms).
        """
        self._before = before or _nothing
        self._forget_terms()
        for come, events, changes in self._runs(rows):
            self._catch_up(come)
            yield from self._one_by_one(events, changes)
        self._catch_up(int(np.searchsorted(self._times, until, side="right")))

    def _forget_terms(self) -> None:
        """Forget terms that no graph has any more."""
        graphs = self._graphs.values()
        again = without_unused(self._terms, lambda: chain(*(graph.codes() for graph in graphs)))
        if again is not None:
            self._terms, self._stage = again[0], None
            for graph in graphs:
                graph.use(*again)

    def _runs(self, rows: SolutionBatch) -> Iterator[tuple[int, _NumberedRows, _NumberedRows]]:
        """The rows, cut at the times of external versions.

        Returns:
            for each run the number of versions that have come, its events, and its changes.
        """
        is_event = rows.stream < self._first
        events, changes = (_some(rows, np.flatnonzero(own)) for own in (is_event, ~is_event))
        # At one time: changes before events, then by stream, then by the query's name.
        events = events.take(_order(events, events.stream.astype(np.int64)))
        makers = name_ranks(changes.event)
        order = _order(changes, changes.stream * (makers.max(initial=0) + 1) + makers)
        changes, makers = changes.take(order), makers[order]
        starts = begins(events), begins(changes)
        starts[1][1:] |= makers[1:] != makers[:-1]
        event_times, change_times = events.time[starts[0]], changes.time[starts[1]]
        first = (
            np.arange(len(event_times)) + np.searchsorted(change_times, event_times, side="right"),
            np.arange(len(change_times)) + np.searchsorted(event_times, change_times),
        )
        parts = [
            _NumberedRows(own, place[np.cumsum(start) - 1])
            for own, place, start in zip((events, changes), first, starts, strict=True)
        ]
        since = [np.searchsorted(self._times, own.rows.time, side="right") for own in parts]
        for come in distinct(np.concatenate(since)).tolist():
            own, made = (
                part.between(*np.searchsorted(each, [come, come + 1]).tolist())
                for part, each in zip(parts, since, strict=True)
            )
            yield come, own, made

    def _one_by_one(self, events: _NumberedRows, changes: _NumberedRows) -> Iterator[SolutionBatch]:
        """The solutions on events, in pieces between two changes."""
        made = first = 0
        before = np.searchsorted(changes.at, events.at)  # rows of changes before each event
        for end in distinct(before).tolist():
            self._change(changes.between(made, end))
            last = int(np.searchsorted(before, end, side="right"))
            rows = events.rows.take(slice(first, last))
            yield rows if self._changing.by_windows else self._solutions(rows)
            made, first = end, last
        self._change(changes.between(made, len(changes.at)))

    def _together(self, rows: SolutionBatch) -> Iterator[SolutionBatch]:
        """The solutions of split GPMs, for many events and changes at once."""
        for come, events, changes in self._runs(rows):
            self._catch_up(come)
            columns = {v: events.rows.values[v] for v in self._handed_on}
            coded = CodedRows.of(changes.rows, self._terms, columns)
            graph = self._made[changes.rows.stream - self._first]
            made = PlacedChanges.of(changes.rows, coded, changes.at, graph)
            placed = PlacedRows(events.rows, events.at, {v: coded.codes[v] for v in columns})
            cuts = made.cuts(thresholds.current.graph_values)
            batch = _CodedBatch(placed, changes, made, coded.lexicon)
            yield from self._cut(batch, (0, FOR_EVER), cuts)

    def _cut(
        self, batch: _CodedBatch, part: tuple[int, int], cuts: Sequence[int]
    ) -> Iterator[SolutionBatch]:
        """The solutions on a part of some rows; the changes at the cuts are made by themselves.

        Args:
            batch: the rows.
            part: the positions of the first event or change, and after the last one.
            cuts: the positions of the cuts.
        """
        first = part[0]
        for cut in cuts:
            yield from self._piece(batch, (first, cut))
            alone = np.searchsorted(batch.changes.at, [cut, cut + 1]).tolist()
            self._change(batch.changes.between(*alone))
            first = cut + 1
        yield from self._piece(batch, (first, part[1]))

    def _piece(self, batch: _CodedBatch, part: tuple[int, int]) -> Iterator[SolutionBatch]:
        """The solutions on a part of some rows, whose changes are made together."""
        changes = batch.made.between(*part)
        events = batch.events.take(slice(*np.searchsorted(batch.events.at, part).tolist()))
        if not len(changes.place) and not len(events.at):
            return
        graphs = {
            iri: TimedGraph(graph, changes.of_graph(number))
            for number, (iri, graph) in enumerate(self._graphs.items())
        }
        joins = GraphJoins(self._whole, graphs, batch.lexicon, self._on_bad, self._limits)
        try:
            solutions = joins.solutions(events)
        except LimitExceeded:  # the cause may be the other triples
            if len(changes.place):
                middle = int(changes.place[len(changes.place) // 2])
                yield from self._cut(batch, part, [middle])
                return
            solutions = joins.within_limits(events)
        joins.finish()
        yield solutions

    def _catch_up(self, come: int) -> None:
        """Apply the first external versions."""
        for time, iri, name in self._versions[self._done : come]:
            self._before(time)
            self._graphs[iri].replace(self._knowledge.graphs[name])
            self._stage = None
        self._done = max(self._done, come)

    def _change(self, changes: _NumberedRows) -> None:
        """Apply answers of queries that maintain graphs."""
        rows = changes.rows
        triples = [*zip(*(rows.texts(name) for name in HANDED_ON), strict=True)]
        cuts = np.flatnonzero(np.diff(changes.at)) + 1
        for first, end in pairwise([0, *cuts.tolist(), len(rows)]) if len(rows) else ():
            self._before(int(rows.time[first]))
            iri = self._changing.makers[int(rows.stream[first]) - self._first]
            self._apply(iri, change_of([t for t in triples[first:end] if t[0] is not None]))

    def _apply(self, iri: str, change: GraphChange) -> None:
        if self._graphs[iri].apply(change):
            self._stage = None

    def _solutions(self, rows: SolutionBatch) -> SolutionBatch:
        """The solutions on events, with the present graphs."""
        if self._stage is None:
            self._stage = PatternStage(self._plan, self.current(), self._on_bad, self._limits)
        solutions = []
        for stream in np.unique(rows.stream).tolist():
            of_stream = rows.take(np.flatnonzero(rows.stream == stream))
            solutions.append(self._stage.match(self._events(stream, of_stream)))
        return SolutionBatch.concat(solutions, self._plan.patterns.columns)

    def _events(self, stream: int, rows: SolutionBatch) -> EventBatch:
        """The events that stage 1 handed on as rows of a stream."""
        return events_of(rows, self._streams[stream])
