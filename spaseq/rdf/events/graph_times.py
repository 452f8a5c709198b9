"""Named graphs to events: which quads are one event, and which time is its own.

LANGUAGE section 1: an event is the quads of one named graph that stand together. Between two events
the default graph is searched for `<graph> time-predicate time`, which belongs to the event right
before or right after it whose graph it names. An event takes the first readable time it is offered
- right before its quads, inside them, right after them - and a time in the default graph is used
once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spaseq.compiled.arrays import Bools
from spaseq.rdf.columns.quad_block import UNKNOWN_LINE, QuadBlock
from spaseq.rdf.events.open_event import OpenEvent
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.terms.times import parse_time


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


def triple_text(own: QuadBlock, row: int) -> str:
    """A row as a report shows it."""
    s, p, o = (own.terms[column[row]] for column in (own.s, own.p, own.o))
    return f"{s} {p} {o} ."[:300]
