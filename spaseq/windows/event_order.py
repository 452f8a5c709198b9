"""Rows of a content in the order of their events, which are counted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spaseq.compiled.arrays import Array, Bools
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import RowSelection


class EventOrder:
    """Puts rows into the order of the events of a window. `events` counts these so far."""

    def __init__(self, plan: QueryPlan, window: int) -> None:
        self.events = 0
        self._streams = np.array(plan.inputs.windows[window].streams, np.int32)
        iris = plan.inputs.streams
        self._ranks = np.array([sorted(iris).index(iri) for iri in iris], np.int32)

    def ordered(self, rows: SolutionBatch) -> SolutionBatch:
        """The rows of the window's streams, by time, k and the stream's IRI."""
        places = self.places(rows)
        return rows if isinstance(places, slice) else rows.take(places)

    def places(self, rows: SolutionBatch) -> RowSelection:
        """The places of the rows of the window's streams, in that order."""
        of_streams: RowSelection = slice(None)
        if len(self._streams) < len(self._ranks):
            of_window = np.isin(rows.stream, self._streams)
            if not of_window.all():
                of_streams = np.flatnonzero(of_window)
        time, k, stream = rows.time[of_streams], rows.k[of_streams], rows.stream[of_streams]
        tied = time[1:] == time[:-1]
        ordered = (time[1:] >= time[:-1]).all() and not ((k[1:] < k[:-1]) & tied).any()
        if ordered and not _differs(stream).any():
            return of_streams
        order = np.lexsort((self._ranks[stream], k, time))
        return order if isinstance(of_streams, slice) else of_streams[order]

    def event_columns(self, rows: SolutionBatch) -> Mapping[str, Array]:
        """The columns of `kept_rows.EVENT_COLUMNS` of some rows in order, the next ones."""
        opens = np.ones(len(rows), np.bool_)
        opens[1:] = _differs(rows.time) | _differs(rows.k) | _differs(rows.stream)
        events = self.events + np.cumsum(opens) - 1
        self.events = int(events[-1]) + 1
        return {"time": rows.time, "opens": opens, "event": events}


def _differs(column: Array) -> Bools:
    differs: Bools = column[1:] != column[:-1]
    return differs
