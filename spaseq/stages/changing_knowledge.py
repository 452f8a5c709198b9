"""Matches events with graphs that change: the part of stage 2 between order and sequence.

Rows come in order of instants, each an event that stage 1 handed on, or a change of a graph. At one
time changes from outside come first, then answers of queries that maintain a graph, by the query's
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
from spaseq.compiled.arrays import Int64s
from spaseq.gpm.handed_on import begins, events_of, name_ranks
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.changing_graph import ChangingGraph, without_unused
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
from spaseq.stages.graph_joins import GraphJoins, PlacedRows
from spaseq.stages.timed_graphs import CodedRows, PlacedChanges, TimedGraph

GraphsState: TypeAlias = "tuple[int, dict[str, list[Triple]]]"
"""The time (ms) of the last changes from outside, and the triples of each graph."""

_NEVER = -(2**63)


def _nothing(time: int) -> None:
    """Nothing has to be done before a change."""


class ChangingKnowledge:
    """The graphs that a query reads, as they are at the time of its last row.

    Args:
        plan: a query that reads graphs that change.
        knowledge: what each graph has before the first change, and its versions from outside.
        on_bad: as for `PatternStage`.
        limits: as for `PatternStage`.
    """

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
        found = ((time, iri, name) for iri in graphs for time, name in versions_of(knowledge, iri))
        self._versions = sorted(found)
        self._times = np.array([time for time, _, _ in self._versions], np.int64)
        self._done = 0  # versions that have come
        self._before: Callable[[int], None] = _nothing
        self._stage: PatternStage | None = None  # of the graphs as they are now

    def use(self, knowledge: KnowledgeBase) -> None:
        """From now on the other graphs are those of this knowledge base."""
        now = self.snapshot()
        self._begin(knowledge)
        self.restore(now)

    def current(self) -> KnowledgeBase:
        """The knowledge base as it is now."""
        return self._with({iri: graph.relations() for iri, graph in self._graphs.items()})

    def _with(self, changing: Mapping[str, KbGraph]) -> KnowledgeBase:
        """The knowledge base with some values of the graphs that change."""
        known = self._knowledge
        own = {iri: g for iri, g in known.graphs.items() if iri in self._plan.inputs.kbs}
        return replace(known, terms=self._terms, graphs={**own, **changing})

    def matched(self, rows: SolutionBatch) -> SolutionBatch:
        """The solutions on the events among some rows; rows come after all rows before."""
        self._forget_terms()
        parts = [*(self.steps(rows) if self._changing.splits is None else self._together(rows))]
        return SolutionBatch.concat(parts, self._plan.patterns.columns)

    def steps(
        self,
        rows: SolutionBatch,
        before: Callable[[int], None] | None = None,
        until: int = _NEVER,
    ) -> Iterator[SolutionBatch]:
        """The solutions, in pieces: the graphs are as they are for a piece when it is given.

        Args:
            rows: the next rows.
            before: called before each change of a graph, with its time (ms).
            until: in the end the graphs are as they are at this time (ms).
        """
        self._before = before or _nothing
        self._forget_terms()
        for come, own, number in self._runs(rows):
            self._catch_up(come)
            yield from self._one_by_one(own, number)
        self._catch_up(int(np.searchsorted(self._times, until, side="right")))

    def _forget_terms(self) -> None:
        """Forget terms that no graph has any more."""
        graphs = self._graphs.values()
        again = without_unused(self._terms, lambda: chain(*(graph.codes() for graph in graphs)))
        if again is not None:
            self._terms, self._stage = again[0], None
            for graph in graphs:
                graph.use(*again)

    def _runs(self, rows: SolutionBatch) -> Iterator[tuple[int, SolutionBatch, Int64s]]:
        """The rows in order, cut where versions from outside come.

        Returns:
            for each run how many versions have come, the rows, and the number of the event or
            change that each row is of, ascending.
        """
        is_event = rows.stream < self._first
        makers = np.zeros(len(rows), np.int64)  # the rank of each change's query
        changes = np.flatnonzero(~is_event)
        makers[changes] = name_ranks(rows.event.take(changes))
        # At one time: changes before events, then by stream, then by the query's name.
        place = rows.stream * (makers.max(initial=0) + 1) + makers
        order = np.lexsort((rows.k, np.where(is_event, place + 2**32, place), rows.time))
        rows, makers = rows.take(order), makers[order]
        first = begins(rows)
        first[1:] |= makers[1:] != makers[:-1]
        number = np.cumsum(first) - 1
        since = np.searchsorted(self._times, rows.time, side="right")
        for come in distinct(since).tolist():
            own = slice(*np.searchsorted(since, [come, come + 1]).tolist())
            yield come, rows.take(own), number[own] - number[own][0]

    def _one_by_one(self, rows: SolutionBatch, number: Int64s) -> Iterator[SolutionBatch]:
        """The solutions on rows in order, in pieces between two changes."""
        cuts = np.flatnonzero(np.diff(rows.stream < self._first)) + 1
        for first, end in pairwise([0, *cuts.tolist(), len(rows)]) if len(rows) else ():
            part = rows.take(slice(first, end))
            if part.stream[0] >= self._first:
                self._change(part, number[first:end])
            else:
                yield self._solutions(part)

    def _together(self, rows: SolutionBatch) -> Iterator[SolutionBatch]:
        """The solutions of GPMs that are split, of many events and changes at once."""
        for come, own, number in self._runs(rows):
            self._catch_up(come)
            coded = CodedRows.of(own, self._handed_on, self._terms)
            graph = self._made[np.maximum(own.stream - self._first, -1)]
            changes = PlacedChanges.of(own, coded, number, graph)
            placed = PlacedRows(own, number, {v: coded.codes[v] for v in self._handed_on})
            part, cuts = (0, int(number[-1]) + 1), changes.cuts(thresholds.current.graph_values)
            yield from self._cut(placed, part, changes, coded.lexicon, cuts)

    def _cut(
        self,
        placed: PlacedRows,
        part: tuple[int, int],
        changes: PlacedChanges,
        lexicon: ExtendedTerms,
        cuts: Sequence[int],
    ) -> Iterator[SolutionBatch]:
        """The solutions on a part of some rows; the changes at some places are made by themselves.

        Args:
            part: the place of its first event or change, and of the first one after it.
            cuts: the places.
        """
        first = part[0]
        for place in cuts:
            yield from self._piece(placed, (first, place), changes, lexicon)
            alone = slice(*np.searchsorted(placed.at, [place, place + 1]).tolist())
            self._change(placed.rows.take(alone), placed.at[alone])
            first = place + 1
        yield from self._piece(placed, (first, part[1]), changes, lexicon)

    def _piece(
        self,
        placed: PlacedRows,
        part: tuple[int, int],
        changes: PlacedChanges,
        lexicon: ExtendedTerms,
    ) -> Iterator[SolutionBatch]:
        """The solutions on a part of some rows, the changes among which are made together."""
        first, end = np.searchsorted(placed.at, part).tolist()
        if first == end:
            return
        changes = changes.between(*part)
        graphs = {
            iri: TimedGraph(graph, changes.of_graph(number))
            for number, (iri, graph) in enumerate(self._graphs.items())
        }
        joins = GraphJoins(self._whole, graphs, lexicon, self._on_bad, self._limits)
        is_event = placed.rows.stream[first:end] < self._first
        events = placed.take(first + np.flatnonzero(is_event))
        try:
            found = joins.solutions(events)
        except LimitExceeded:  # it may be so because of the other triples
            if len(changes.place):
                middle = int(changes.place[len(changes.place) // 2])
                yield from self._cut(placed, part, changes, lexicon, [middle])
                return
            found = joins.within_limits(events)
        joins.finish()
        yield found

    def _catch_up(self, come: int) -> None:
        """Take the first versions from outside."""
        for time, iri, name in self._versions[self._done : come]:
            self._before(time)
            self._graphs[iri].replace(self._knowledge.graphs[name])
            self._stage = None
        self._done = max(self._done, come)

    def _change(self, rows: SolutionBatch, number: Int64s) -> None:
        """Take answers of queries that maintain graphs; `number` is each row's change."""
        triples = [*zip(*(rows.texts(name) for name in HANDED_ON), strict=True)]
        cuts = np.flatnonzero(np.diff(number)) + 1
        for first, end in pairwise([0, *cuts.tolist(), len(rows)]):
            self._before(int(rows.time[first]))
            iri = self._changing.makers[int(rows.stream[first]) - self._first]
            self._apply(iri, change_of([t for t in triples[first:end] if t[0] is not None]))

    def _apply(self, iri: str, change: GraphChange) -> None:
        if self._graphs[iri].apply(change):
            self._stage = None

    def _solutions(self, rows: SolutionBatch) -> SolutionBatch:
        """The solutions on events, with the graphs as they are now."""
        if self._stage is None:
            self._stage = PatternStage(self._plan, self.current(), self._on_bad, self._limits)
        found = []
        for stream in np.unique(rows.stream).tolist():
            own = rows.take(np.flatnonzero(rows.stream == stream))
            found.append(self._stage.match(self._events(stream, own)))
        return SolutionBatch.concat(found, self._plan.patterns.columns)

    def _events(self, stream: int, rows: SolutionBatch) -> EventBatch:
        """The events that were handed on as rows of a stream."""
        return events_of(rows, self._streams[stream])

    def snapshot(self) -> GraphsState:
        """The graphs now, for `restore`."""
        return self._done, {iri: graph.triples() for iri, graph in self._graphs.items()}

    def restore(self, state: GraphsState) -> None:
        """Go on from a snapshot."""
        self._done, graphs = state
        for iri, triples in graphs.items():
            self._graphs[iri].restore(triples)
        self._stage = None
