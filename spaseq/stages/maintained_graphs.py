"""A graph that queries maintain: its present value, and its recent past.

It reads the changes as the graph's readers do, and gives later readers its value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.algebra.graph_changes import (
    GraphChange,
    change_of,
    changes_of,
    deletion,
    fits,
    insertion,
    wildcard,
)
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.handed_on import begins, events_of, handed_on, name_ranks
from spaseq.kb.changing_graph import ChangingGraph, without_unused
from spaseq.kb.graph_updates import graph_triples
from spaseq.kb.knowledge import KbGraph, KnowledgeBase
from spaseq.kb.knowledge_versions import LATEST, KnowledgeVersions
from spaseq.kb.versions import versions_of
from spaseq.plan.changing_graphs import HANDED_ON
from spaseq.plan.families import EventReader
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.rdf.columns.term_tables import ExtendedTerms, TermsSoFar, TermTable
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.terms.term import Triple
from spaseq.records import record
from spaseq.stages.timed_graphs import CodedRows, PlacedChanges, TimedGraph
from spaseq.stateful import Parts, Stateful

MaintainedState: TypeAlias = "tuple[int, int | None, list[Triple] | None, list[Any]]"
"""The number of changes, the time (ms) of the last, the triples; then the changes since."""

_COLUMNS = SolutionColumns(HANDED_ON, ())


@record
class GraphThen:
    """The value of a graph at some time.

    Attributes:
        count: the number of changes so far.
        since: the time (ms) of the last change; None if there was none.
        graph, terms: its triples.
    """

    count: int
    since: int | None
    graph: KbGraph
    terms: TermTable


@record
class GraphPast:
    """The values of a graph from some time on. Immutable, so other threads may read it.

    Attributes:
        first: the first value.
        changes: the later changes, as rows in order.
        versions: the value from some times (ms) on, by external changes.
    """

    first: GraphThen
    changes: SolutionBatch
    versions: Sequence[tuple[int, KbGraph]]

    def times(self) -> list[int]:
        """The times (ms) of the changes of queries, ascending."""
        return [*map(int, np.unique(self.changes.time))]

    def values(self, terms: ExtendedTerms) -> Iterator[tuple[int, KbGraph]]:
        """(time in ms, the graph from then on) for each of `times`.

        `terms` extends the table of the first value; it gets the terms of the changes.
        """
        rows, replay = self.changes, _Replay(self.first, self.versions, terms)
        for time in self.times():
            some = slice(*np.searchsorted(rows.time, [time, time + 1]).tolist())
            replay.make(rows.take(some))
            yield time, replay.graph.relations()

    def at(self, time: int) -> GraphThen | None:
        """The value at a time (ms); None if that is not known any more."""
        first = self.first
        if first.since is not None and time < first.since:
            return None
        rows = self.changes.take(slice(0, int(bisect_right(self.changes.time, time))))
        replay = _Replay(first, self.versions)
        replay.make(rows)
        replay.come(time)
        return replay.now()

    def triples(self, time: int) -> list[Triple]:
        """The triples at a time (ms) that is known."""
        then = self.at(time)
        assert then is not None
        return [*graph_triples(then.graph, then.terms)]

    def held_until(self, triple: Triple, time: int) -> int | None:
        """The time (ms) at which a triple of the graph was removed; None if it was not."""
        rows = self.changes
        rows = rows.take(slice(int(bisect_right(rows.time, time)), len(rows)))
        for at, change in _changes(rows):
            gone = any(fits(pattern, triple, {}) for pattern in change.deleted)
            if gone and triple not in change.inserted:
                return at
        return None


class MaintainedGraph(Stateful):
    """A graph that takes changes from all queries that maintain it.

    Args:
        iri: the graph.
        first: the value before the first change.
        terms: the terms of its codes.
        versions: the values from some times (ms) on, by changes that are known from the start.
    """

    def __init__(
        self, iri: str, first: KbGraph, terms: TermTable, versions: Iterable[tuple[int, KbGraph]]
    ) -> None:
        self.iri, self._stream = iri, changes_of(iri)
        self._settled = _Replay(GraphThen(0, None, first, terms), versions)
        self._coming: list[SolutionBatch] = []
        self._size = self._room = 0  # rows of pending changes: now, and before the next check

    # --- changes ----------------------------------------------------------------------------------

    def match_batch(self, events: EventBatch) -> SolutionBatch:
        """Take changes, as rows."""
        index = VerticalPartition(events)
        return handed_on(index, np.arange(len(events)), 0, _COLUMNS)

    def push(self, rows: SolutionBatch) -> None:
        """Take changes."""
        self._coming.append(rows)
        self._size += len(rows)

    def settle(self, until: int) -> None:
        """Apply old changes; no pending change is at or before `until` (ms).

        The last ones are kept as changes, so that the value before them is known.
        """
        kept = thresholds.current.kept_changes
        if self._size <= max(2 * kept, self._room):
            return
        rows = self._in_order()
        starts = np.append(np.flatnonzero(_begins(rows)), len(rows))
        most = min(len(rows) - kept, int(bisect_right(rows.time, until)))
        end = int(starts[bisect_right(starts, most) - 1])
        old = rows.take(slice(0, end))
        self._settled.make(old)
        self._settled.forget_terms()
        self._keep(rows.take(slice(end, len(rows))).compact())
        self._room = 2 * self._size

    def _keep(self, rows: SolutionBatch) -> None:
        self._coming, self._size = [rows], len(rows)

    def _in_order(self) -> SolutionBatch:
        """The pending changes: by time, then by the query's name, then by arrival."""
        rows = SolutionBatch.concat(self._coming, _COLUMNS)
        order = np.lexsort((rows.k, name_ranks(rows.event), rows.time))
        rows = rows if (order[1:] > order[:-1]).all() else rows.take(order)
        self._keep(rows)
        return rows

    # --- value ------------------------------------------------------------------------------------

    def past(self) -> GraphPast:
        """The present and recent values."""
        return GraphPast(self._settled.now(), self._in_order(), (*self._settled.versions,))

    def tell(self, reader: EventReader) -> None:
        """Give the value to a reader that knows only the first one."""
        for events in self._events():
            reader.push(reader.match_batch(events))

    def _events(self) -> Iterator[EventBatch]:
        settled = self._settled
        if settled.since is not None:
            everything = deletion(*map(wildcard, "spo"))
            triples = [everything, *(insertion(*triple) for triple in settled.graph.triples())]
            # Pending changes of its time have names, which sort after this one.
            yield batch_from_events(self._stream, [(settled.since, "", triples)], InstantCounter())
        rows = self._in_order()
        if len(rows):
            yield events_of(rows, self._stream)

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> MaintainedState:
        """The state, for `restore`."""
        settled, rows = self._settled, self._in_order()
        triples = None if settled.since is None else settled.graph.triples()
        terms = [rows.texts(name) for name in HANDED_ON]
        columns = [rows.time.tolist(), rows.k.tolist(), rows.event.texts(), *terms]
        return settled.count, settled.since, triples, columns

    def restore(self, state: MaintainedState) -> None:
        """Restore from a snapshot."""
        count, since, triples, (time, k, names, *terms) = state
        if triples is not None and since is not None:
            self._settled.restore(count, since, [(s, p, o) for s, p, o in triples])
        n = len(time)
        columns = (TermColumn.of(texts) for texts in terms)
        self._keep(
            SolutionBatch(
                np.zeros(n, np.int32),
                np.array(time, np.int64),
                np.array(k, np.int32),
                np.full(n, BARE, np.int32),
                EventNames.of(names),
                dict(zip(HANDED_ON, columns, strict=True)),
            )
        )


class MaintainedGraphs(Parts[str, MaintainedGraph]):
    """The graphs that the queries of a run maintain, by IRI.

    Args:
        first: the values before their first changes.
        knowledge: has their versions at later times.
    """

    def __init__(self, first: KnowledgeVersions, knowledge: KnowledgeBase) -> None:
        super().__init__(self._new)
        self._first, self._knowledge = first, knowledge

    def _new(self, iri: str) -> MaintainedGraph:
        """A graph that no query has changed."""
        known = self._knowledge
        versions = ((time, known.graphs[own]) for time, own in sorted(versions_of(known, iri)))
        return MaintainedGraph(iri, *self._first.last(iri), versions)

    def adopt(self, others: MaintainedGraphs) -> list[str]:
        """Adopt graphs that are not among these; return their IRIs."""
        new = [iri for iri in others if iri not in self]
        self.update((iri, others[iri]) for iri in new)
        return new

    def tell(self, reader: EventReader, plan: QueryPlan) -> None:
        """Give the evaluator of a query the values of the graphs that it reads."""
        for iri in _read(plan):
            if iri in self:
                self[iri].tell(reader)

    def forget_others(self, plans: Iterable[QueryPlan]) -> None:
        """Drop the graphs that none of some queries maintains or reads."""
        used = {iri for plan in plans for iri in (plan.maintained, *_read(plan))}
        for iri in self.keys() - used:
            del self[iri]

    def settle(self, until: int) -> None:
        """See `MaintainedGraph.settle`."""
        for graph in self.values():
            graph.settle(until)


def _read(plan: QueryPlan) -> tuple[str, ...]:
    """The maintained graphs that a query reads."""
    return () if plan.changing is None else plan.changing.makers


def _begins(rows: SolutionBatch) -> Bools:
    """A mask of the rows that begin a change; rows stand in order."""
    is_first = begins(rows)
    names = rows.event.strings().dictionary_encode().indices.to_numpy()
    is_first[1:] |= names[1:] != names[:-1]
    return is_first


def _changes(rows: SolutionBatch) -> Iterator[tuple[int, GraphChange]]:
    """(time in ms, change) of rows in order."""
    triples: Sequence[Any] = [*zip(*(rows.texts(name) for name in HANDED_ON), strict=True)]
    starts = np.flatnonzero(_begins(rows)).tolist()
    for first, end in pairwise([*starts, len(rows)]) if starts else ():
        of_change = [triple for triple in triples[first:end] if triple[0] is not None]
        yield int(rows.time[first]), change_of(of_change)


class _Replay:
    """Applies changes to a graph, one after the other.

    Args:
        first: the first value.
        versions: the values from some times (ms) on; ascend.
        terms: extends the table of `first`; by default a new one.
    """

    def __init__(
        self,
        first: GraphThen,
        versions: Iterable[tuple[int, KbGraph]],
        terms: ExtendedTerms | None = None,
    ) -> None:
        self.count, self.since = first.count, first.since
        self.versions = deque(versions)
        self._terms = ExtendedTerms(first.terms) if terms is None else terms
        self.graph = ChangingGraph(self._terms, first.graph)

    def now(self) -> GraphThen:
        """The present value."""
        terms = TermsSoFar(self._terms)
        return GraphThen(self.count, self.since, self.graph.relations(), terms)

    def make(self, rows: SolutionBatch) -> None:
        """Apply changes, given as rows in order, and the versions between them."""
        while len(rows):
            self.come(int(rows.time[0]))
            next_time = self.versions[0][0] if self.versions else LATEST
            end = int(bisect_left(rows.time, next_time))
            self._make(rows.take(slice(0, end)))
            rows = rows.take(slice(end, len(rows)))

    def come(self, time: int) -> None:
        """Apply the versions up to a time (ms)."""
        while self.versions and self.versions[0][0] <= time:
            self.graph.replace(self.versions.popleft()[1])

    def _make(self, rows: SolutionBatch) -> None:
        """Apply changes, given as rows in order, at least one."""
        number: Int64s = np.cumsum(_begins(rows)) - 1
        coded = CodedRows.of(rows, self._terms)
        changes = PlacedChanges.of(rows, coded, number, np.zeros(len(rows), np.int64))
        count, first = int(number[-1]) + 1, 0
        for cut in [*changes.cuts(thresholds.current.graph_values), count]:
            TimedGraph(self.graph, changes.between(first, cut)).finish()
            if cut < count:  # this change must be applied by itself
                alone = rows.take(slice(*np.searchsorted(number, [cut, cut + 1]).tolist()))
                for _, change in _changes(alone):
                    self.graph.apply(change)
            first = cut + 1
        self.count, self.since = self.count + count, int(rows.time[-1])

    def forget_terms(self) -> None:
        """Drop terms that the graph has no more."""
        again = without_unused(self._terms, self.graph.codes)
        if again is not None:
            self._terms = again[0]
            self.graph.use(*again)

    def restore(self, count: int, since: int, triples: Sequence[Triple]) -> None:
        """Continue with these triples."""
        self.count, self.since = count, since
        self.come(since)
        self.graph.restore(triples)
