"""Named graphs to events: which quads are one event, and which time is its own.

LANGUAGE section 1: an event is the quads of one named graph that stand together. Between two events
the default graph is searched for `<graph> time-predicate time`, which belongs to the event right
before or right after it whose graph it names. An event takes the first readable time it is offered
- right before its quads, inside them, right after them - and a time in the default graph is used
once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from spaseq.compiled.arrays import Bools
from spaseq.rdf.batches import BadInput
from spaseq.rdf.blocks import DEFAULT_GRAPH, UNKNOWN_LINE, OnBad, QuadBlock
from spaseq.rdf.buffer import EventBuffer
from spaseq.rdf.terms import iri_text
from spaseq.rdf.times import parse_time


class Assembly(Protocol):
    """Makes events out of the blocks of one file, in order, and puts them into a buffer."""

    def add(self, block: QuadBlock) -> None:
        """The next block."""

    def finish(self, cut: bool) -> None:
        """The end of the file; `cut` if the file goes on but cannot be read."""

    @property
    def keep(self) -> int:
        """The first row that an event still open has, or may have."""


@dataclass(slots=True)
class OpenEvent:
    """An event until its last row and its time are known."""

    graph: str  # N-Triples text, empty where the format has none
    first: int
    end: int
    line: int
    time: int | None = None
    unreadable: str | None = None  # text of a time that cannot be read

    def offer(self, text: str) -> None:
        """A time for this event, which counts if it is the first that can be read."""
        if self.time is None:
            self.time = parse_time(text)
            if self.time is None:
                self.unreadable = text

    @property
    def name(self) -> str | None:
        """The graph's IRI, None if it is a blank node or the format has no graphs."""
        return self.graph[1:-1] if self.graph[:1] == "<" else None

    def complaint(self, file: str) -> BadInput:
        """What is wrong with an event that has no time."""
        reason = "event without a timestamp"
        if self.unreadable is not None:
            reason = f"event without a readable timestamp: {self.unreadable[:200]}"
        return BadInput(file, self.line or None, reason, self.graph)


@dataclass(frozen=True, slots=True)
class _Timestamp:
    """A time in the default graph that no event has used."""

    graph: str  # N-Triples text
    text: str
    line: int


@dataclass(slots=True)
class _Between:
    """What stands in the default graph since the last named graph."""

    timestamps: list[_Timestamp] = field(default_factory=list)
    stray: int = 0  # triples that are no timestamps
    stray_line: int = UNKNOWN_LINE  # of the first of them
    stray_text: str = ""


class GraphTimes:
    """Which time is which graph's, for runs of rows in the order of their file.

    `emit` is called with each event that has a time, once nothing can belong to it any more; the
    others are reported.
    """

    def __init__(self, file: str, on_bad: OnBad, emit: Callable[[OpenEvent], None]) -> None:
        self._file = file
        self._on_bad = on_bad
        self._emit = emit
        self.open: OpenEvent | None = None
        self._between = _Between()

    def graph_run(self, graph: str, first: int, end: int, line: int) -> OpenEvent:
        """Quads of one named graph: more of the open event, or a new one."""
        event = self.open
        if event is not None and event.graph == graph and event.end == first:
            event.end = end
            return event
        event = OpenEvent(graph, first, end, line)
        self._close(event)
        return event

    def default_run(self, own: QuadBlock, timed: Bools, first: int, end: int) -> None:
        """Triples of the default graph: times for the event before or after, and strays."""
        between = self._between
        for row in range(first, end):
            if not timed[row]:
                if not between.stray:
                    between.stray_line = int(own.line[row])
                    between.stray_text = triple_text(own, row)
                between.stray += 1
                continue
            graph, text = own.terms[own.s[row]], own.terms[own.o[row]]
            event = self.open
            if event is not None and event.graph == graph and event.time is None:
                event.offer(text)
            else:
                between.timestamps.append(_Timestamp(graph, text, int(own.line[row])))

    def finish(self, cut: bool, rows: int) -> None:
        """The end of the file after so many rows; `cut` if it goes on but cannot be read."""
        if cut and self.open is not None and self.open.end == rows:
            self.open = None
        if cut:
            self._between.timestamps.clear()
        self._close(None)

    def _close(self, following: OpenEvent | None) -> None:
        """The open event has ended, and so has what stood between it and the following one."""
        before, between = self.open, self._between
        if before is not None:
            if before.time is None:
                self._on_bad(before.complaint(self._file))
            else:
                self._emit(before)
        self.open = following
        if between.stray:
            self.report_strays(between.stray, between.stray_line, between.stray_text)
        for timestamp in between.timestamps:
            self._settle(timestamp, before, following)
        if between.stray or between.timestamps:
            self._between = _Between()

    def _settle(
        self, timestamp: _Timestamp, before: OpenEvent | None, following: OpenEvent | None
    ) -> None:
        """Give a timestamp that the event before had no use for to the following one."""
        graph = timestamp.graph
        if following is not None and following.graph == graph and following.time is None:
            following.offer(timestamp.text)
            return
        neighbours = [e for e in (before, following) if e is not None and e.graph == graph]
        if neighbours:
            time = parse_time(timestamp.text)
            if any(event.time == time for event in neighbours):
                return
        self.report_time(bool(neighbours), timestamp.line, graph)

    def report_time(self, second: bool, line: int, graph: str) -> None:
        """Report a time that is no event's, or an event's that has another."""
        reason = "timestamp of a graph without triples right before or after it"
        if second:
            reason = "second timestamp of an event, which has the first"
        self._on_bad(BadInput(self._file, line or None, reason, graph))

    def report_strays(self, count: int, line: int, text: str) -> None:
        """Report triples of the default graph; `line` and `text` are those of the first."""
        triples = "1 triple" if count == 1 else f"{count} triples"
        reason = f"{triples} of the default graph that belong to no event"
        self._on_bad(BadInput(self._file, line or None, reason, text))


class GraphAssembly:
    """Events of the formats with named graphs."""

    def __init__(self, buffer: EventBuffer, file: str, time_predicate: str, on_bad: OnBad) -> None:
        self._buffer = buffer
        self._predicate = iri_text(time_predicate)
        self._times = GraphTimes(file, on_bad, self._emit)

    @property
    def keep(self) -> int:
        event = self._times.open
        return self._buffer.rows if event is None else event.first

    def add(self, block: QuadBlock) -> None:
        base = self._buffer.rows
        own = self._buffer.add(block)
        timed = own.p == self._buffer.code(self._predicate)
        inside = deque(np.flatnonzero(timed & (own.s == own.g)).tolist())
        edges = np.flatnonzero(np.diff(own.g, prepend=-2, append=-2)).tolist()
        graphs, lines = own.g[edges[:-1]].tolist(), own.line[edges[:-1]].tolist()
        for graph, line, first, end in zip(graphs, lines, edges[:-1], edges[1:], strict=True):
            if graph == DEFAULT_GRAPH:
                self._times.default_run(own, timed, first, end)
                continue
            event = self._times.graph_run(own.terms[graph], base + first, base + end, line)
            while inside and inside[0] < end:
                event.offer(own.terms[own.o[inside.popleft()]])

    def finish(self, cut: bool) -> None:
        self._times.finish(cut, self._buffer.rows)

    def _emit(self, event: OpenEvent) -> None:
        assert event.time is not None
        self._buffer.close(event.time, event.name, event.first, event.end)


def triple_text(own: QuadBlock, row: int) -> str:
    """A row as a report shows it."""
    s, p, o = (own.terms[column[row]] for column in (own.s, own.p, own.o))
    return f"{s} {p} {o} ."[:300]
