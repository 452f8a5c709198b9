"""Event batches from statements and the row ranges of events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.compiled.arrays import Indices, Int64s
from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import EventBatch, GraphNames
from spaseq.rdf.columns.term_tables import TermTable
from spaseq.rdf.events.blank_labels import relabelled
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.kernels.date_times import NO_TIME
from spaseq.rdf.kernels.event_ranges import TIME_PREDICATE, TimestampRows, event_rows
from spaseq.rdf.lines.statements import Statements
from spaseq.records import record


@record
class EventBound:
    """Reports events of a file that exceed the limit on their bytes."""

    file: str
    limits: Limits
    on_bad: OnBad

    def short(
        self, read: Statements, line: int, first: Int64s, end: Int64s, graph: GraphNames
    ) -> Indices | None:
        """The events with the rows first:end [n] that do not exceed it; None if none does.

        `line` is the number of the first line that was read. The others are reported.
        """
        most = self.limits.event_bytes
        if read.at[-1] - read.at[0] <= most:
            return None
        long = read.at[end - 1] - read.at[first] > most
        for i in np.flatnonzero(long).tolist():
            where = line + int(read.line[first[i]])
            text = f"<{graph[i]}>" if graph[i] else ""
            self.on_bad(BadInput(self.file, where, long_event(self.limits), text))
        return np.flatnonzero(~long)


class LineBatches:
    """Builds the batches of one stream and numbers its events in the order of the calls.

    `skip_time` leaves out the triples with the time predicate (code TIME_PREDICATE).
    `made_up_labels` says that blank nodes without a label have a random one.
    """

    def __init__(
        self,
        stream: str,
        counter: InstantCounter,
        batch_events: int,
        skip_time: bool,
        bound: EventBound | None = None,
        made_up_labels: bool = False,
    ) -> None:
        self._stream = stream
        self._made_up_labels = made_up_labels
        self._counter = counter
        self._most = batch_events
        self._skip_time = skip_time
        self._bound = bound

    def batches(
        self,
        statements: Statements,
        line: int,
        first: Int64s,
        end: Int64s,
        time: Int64s,
        graph: GraphNames,
    ) -> Iterator[EventBatch]:
        """Batches of n events: rows first:end [n], times [n] (ms) and graph IRIs [n].

        `line` is the number of the statements' first line, for reports.
        """
        if len(first) and self._bound is not None:
            short = self._bound.short(statements, line, first, end, graph)
            if short is not None:
                first, end, time = first[short], end[short], time[short]
                graph = graph.take(short)
        if not len(first):
            return
        rows = statements
        start, s, p, o, skipped = event_rows(first, end, rows.s, rows.p, rows.o, self._skip_time)
        terms: TermTable = rows.terms
        if self._made_up_labels:
            s, o, terms = relabelled(start, s, o, terms)
        k = self._counter.assign(time)
        batch = EventBatch(self._stream, time, k, graph, start, s, p, o, terms, skipped)
        for begin in range(0, len(batch), self._most):
            yield batch.part(begin, min(begin + self._most, len(batch)))


def times_of(statements: Statements, times: TimeTerms) -> TimestampRows:
    """The rows with the time predicate, and their times."""
    if statements.seconds:
        times.note(statements.seconds)
    rows = np.flatnonzero(statements.p == TIME_PREDICATE)
    ms = statements.time[rows]
    readable = ms != NO_TIME
    for i in np.flatnonzero(~readable).tolist():
        time = times.read(statements.terms[int(statements.o[rows[i]])])
        if time is not None:
            ms[i], readable[i] = time, True
    return TimestampRows(rows, ms, readable)
