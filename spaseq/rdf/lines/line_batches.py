"""Event batches from statements and the row ranges of events; bad events with lost quads.

A malformed line belongs to the event next to it whose graph it names. If its graph cannot be read,
it may belong to the event before it and to the one after it. An event that has lost a quad is bad
as a whole.
"""

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


class LostQuads:
    """Finds the events of one file that have lost a quad, chunk by chunk."""

    def __init__(self) -> None:
        self._ahead: set[str | None] = set()  # names of malformed lines before the next event

    def find(self, statements: Statements, earlier: str | None) -> tuple[Int64s, bool]:
        """Rows of named graphs, one or more of each event that has lost a quad, ascending.

        `earlier` is the graph of the last event before the statements; the second value says
        whether that event has lost a quad, too.
        """
        lost = [bad for bad in statements.bad if bad.may_be_quad]
        if not lost and not self._ahead:
            return np.empty(0, np.int64), False
        sides = _Sides(statements, earlier)
        sides.begin(self._ahead)
        self._ahead = self._ahead if not len(sides.named) else set()
        for bad in lost:
            if bad.graph is None:
                sides.both(bad.line)
            else:
                sides.called(bad.graph, bad.line)
        self._ahead |= sides.ahead
        return np.array(sorted(sides.found), np.int64), sides.is_earlier


class _Sides:
    """The events on both sides of malformed lines.

    `found` has rows of events that have lost a quad, `ahead` the names of lines that may belong to
    the next chunk's first event, and `is_earlier` says whether the event before has lost one.
    """

    def __init__(self, statements: Statements, earlier: str | None) -> None:
        rows = statements
        is_time = (rows.g < 0) & (rows.p == TIME_PREDICATE)
        self._statements, self._earlier = statements, earlier
        # the graph that a row is of, or gives a time
        self._owner = np.where(is_time, rows.s, rows.g)
        self._owned = np.flatnonzero((rows.g >= 0) | is_time)
        self.named = np.flatnonzero(rows.g >= 0)
        self.found: set[int] = set()
        self.ahead: set[str | None] = set()
        self.is_earlier = False

    def begin(self, names: set[str | None]) -> None:
        """Find the first event, if lines before the chunk name it or have no name."""
        if len(self.named) and (None in names or self._graph(self.named[0]) in names):
            self.found.add(int(self.named[0]))

    def called(self, graph: str, line: int) -> None:
        """Find the event of a graph on one side of a line."""
        lines = self._statements.line[self.named]
        after = int(np.searchsorted(lines, line))
        if after and self._graph(self.named[after - 1]) == graph:
            self.found.add(int(self.named[after - 1]))
        elif not after and graph == self._earlier:
            self.is_earlier = True
        elif after == len(self.named):
            self.ahead.add(graph)
        elif self._graph(self.named[after]) == graph:
            self.found.add(int(self.named[after]))

    def both(self, line: int) -> None:
        """Find the events on both sides of a line without a name.

        The time of an event is a part of it.
        """
        lines = self._statements.line[self._owned]
        after = int(np.searchsorted(lines, line))
        if after:
            self._of(int(self._owned[after - 1]))
        else:
            self.is_earlier = True
        if after < len(lines):
            self._of(int(self._owned[after]))
        else:
            self.ahead.add(None)

    def _of(self, row: int) -> None:
        """Find the event of a row of a named graph, or the one right beside whose time it is."""
        code, place = self._owner[row], int(np.searchsorted(self.named, row))
        for side in (place, place - 1):
            if 0 <= side < len(self.named) and self._statements.g[self.named[side]] == code:
                self.found.add(int(self.named[side]))
                return
        graph = self._statements.terms[int(code)]
        if place == 0 and graph == self._earlier:
            self.is_earlier = True
        elif place == len(self.named):
            self.ahead.add(graph)

    def _graph(self, row: np.int64) -> str:
        return self._statements.terms[int(self._statements.g[row])]
