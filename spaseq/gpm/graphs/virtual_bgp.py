"""Basic graph patterns over lifted events, without their triples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.algebra.nodes import PatternTerm, TriplePattern
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.solutions.lazy_columns import ComputedColumn, LazyColumn
from spaseq.lift.lifted_graphs import LiftedEvents, Way, unified, way_rows
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import row_order


class VirtualBgp:
    """One basic graph pattern, unified with the template of the events' lift."""

    def __init__(self, triples: Sequence[TriplePattern], variables: Sequence[str]) -> None:
        self._triples, self._variables = triples, variables
        self._known: tuple[object, list[Way] | None] | None = None  # template, and its ways

    def solutions(
        self, events: EventBatch
    ) -> tuple[Int64s, Sequence[LazyColumn] | list[Int32s]] | None:
        """(event of each solution, columns of the variables), distinct per event.

        None if the events are not lifted as columns, or the pattern needs triples.
        """
        if not isinstance(events, LiftedEvents):
            return None
        ways = self._ways(events)
        if ways is None:
            return None
        of_ways = [(way_rows(way, events), way) for way in ways]
        if len(of_ways) == 1:
            event, way = of_ways[0]
            return event, [_column(events, way.columns[v], event) for v in self._variables]
        return self._united(events, of_ways)

    def _ways(self, events: LiftedEvents) -> list[Way] | None:
        template = events.graphs.template
        if self._known is None or self._known[0] is not template:
            self._known = template, unified(self._triples, template)
        return self._known[1]

    def _united(
        self, events: LiftedEvents, of_ways: Sequence[tuple[Int64s, Way]]
    ) -> tuple[Int64s, list[Int32s]]:
        """The distinct solutions of several ways."""
        event = np.concatenate([np.empty(0, np.int64), *(event for event, _ in of_ways)])
        rows = [np.empty(0, np.int32)] * len(self._variables)
        for number, variable in enumerate(self._variables):
            coded = [_column(events, way.columns[variable], event).codes for event, way in of_ways]
            rows[number] = np.concatenate([rows[number], *coded])
        return distinct_solutions(event, rows)


def _column(events: LiftedEvents, term: PatternTerm, event: Int64s) -> LazyColumn:
    graphs = events.graphs
    everywhere = events.rows is None and len(event) == graphs.size
    rows = event if events.rows is None else events.rows[event]
    return ComputedColumn(lambda: graphs.codes(term) if everywhere else graphs.codes(term)[rows])


def distinct_solutions(event: Int64s, rows: Sequence[Int32s]) -> tuple[Int64s, list[Int32s]]:
    """The distinct solutions of each event, in order of events."""
    order = row_order([event, *reversed(rows)])
    event, rows = event[order], [row[order] for row in rows]
    new = np.ones(len(event), np.bool_)
    if len(event):
        new[1:] = event[1:] != event[:-1]
        for row in rows:
            new[1:] |= row[1:] != row[:-1]
    return event[new], [row[new] for row in rows]
