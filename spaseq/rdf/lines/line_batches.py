"""Event batches from statements and the row ranges of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.kernels.date_times import NO_TIME
from spaseq.rdf.kernels.event_ranges import TIME_PREDICATE, TimestampRows, event_rows
from spaseq.rdf.lines.statements import Statements
from spaseq.rdf.terms.times import parse_time


class LineBatches:
    """Builds the batches of one stream and numbers its events in the order of the calls.

    `skip_time` leaves out the triples with the time predicate (code TIME_PREDICATE).
    """

    def __init__(
        self, stream: str, counter: InstantCounter, batch_events: int, skip_time: bool
    ) -> None:
        self._stream = stream
        self._counter = counter
        self._most = batch_events
        self._skip_time = skip_time

    def batches(
        self,
        statements: Statements,
        first: Int64s,
        end: Int64s,
        time: Int64s,
        graph: Sequence[str | None],
    ) -> Iterator[EventBatch]:
        """Batches of n events: rows first:end [n], times [n] (ms) and graph IRIs [n]."""
        if not len(first):
            return
        own = statements
        start, s, p, o, skipped = event_rows(first, end, own.s, own.p, own.o, self._skip_time)
        k = self._counter.assign(time)
        batch = EventBatch(self._stream, time, k, graph, start, s, p, o, own.terms, skipped)
        for begin in range(0, len(batch), self._most):
            yield batch.part(begin, min(begin + self._most, len(batch)))


def times_of(statements: Statements) -> TimestampRows:
    """The rows with the time predicate, and their times."""
    rows = np.flatnonzero(statements.p == TIME_PREDICATE)
    ms = statements.time[rows]
    readable = ms != NO_TIME
    for i in np.flatnonzero(~readable).tolist():
        time = parse_time(statements.terms[int(statements.o[rows[i]])])
        if time is not None:
            ms[i], readable[i] = time, True
    return TimestampRows(rows, ms, readable)
