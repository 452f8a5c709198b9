"""Times of events: time terms, and the grouping of quads of named graphs with their times."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.rdf.columns.event_batch import UNKNOWN_LINE, QuadBlock
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.terms.term import INTEGER_TYPES, split_literal
from spaseq.rdf.terms.times import LIKELY_SECONDS, LIMIT_MS, TIME_UNITS, Time, parse_time, time_ms
from spaseq.records import record


class TimeTerms:
    """Reads the times of a stream's events, and notes integers that seem to be seconds.

    Attributes:
        stream: the stream's IRI.
        scale: milliseconds per unit of an integer.
    """

    def __init__(self, stream: str, unit: str, on_seconds: Callable[[str], None]) -> None:
        """`on_seconds` gets one remark on milliseconds that seem to be seconds."""
        self.scale = TIME_UNITS[unit]
        self.stream, self._on_seconds = stream, on_seconds
        self._noted = self.scale != 1

    @classmethod
    def of_file(cls, stream: str, unit: str, file: str, on_bad: OnBad) -> TimeTerms:
        """The times of events in a file; the remark goes to `on_bad`."""
        return cls(stream, unit, lambda reason: on_bad(time_remark(stream, file, reason)))

    def read(self, text: str) -> int | None:
        """The time (ms) of a literal's N-Triples text, or None if it is no time."""
        time = parse_time(text)
        if time is None or (self._noted and self.scale == 1):
            return time
        if self.scale == 1 and time not in LIKELY_SECONDS:
            return time
        return self._scaled(time) if split_literal(text)[1] in INTEGER_TYPES else time

    def given(self, when: Time) -> int:
        """The time (ms) that a program gives; UsageError if it is invalid."""
        time = time_ms(when, self.scale)
        if not self._noted and time in LIKELY_SECONDS and hasattr(type(when), "__index__"):
            self.note(time)
        return time

    def integers(self, times: Int64s) -> Int64s | None:
        """The times [n] (ms) of integers; None if one is too far from the epoch."""
        most = LIMIT_MS // self.scale
        if not ((times > -most) & (times < most)).all():
            return None
        if not self._noted:
            likely = (times >= LIKELY_SECONDS.start) & (times < LIKELY_SECONDS.stop)
            if likely.any():
                self.note(int(times[likely.argmax()]))
        return times.astype(np.int64) * self.scale

    def note(self, example: int) -> None:
        """Remark that an integer of milliseconds seems to be seconds."""
        if self._noted:
            return
        self._noted = True
        meant = datetime.fromtimestamp(example, UTC).isoformat().removesuffix("+00:00")
        self._on_seconds(
            f"stream <{self.stream}>: the integer time {example} is in 1970 as milliseconds, and "
            f"{meant}Z as seconds; if its times are seconds, say --time-unit s "
            '(time_unit = "s" in spaseq.toml and Python)'
        )

    def _scaled(self, time: int) -> int | None:
        if self.scale == 1:
            self.note(time)
        return time * self.scale if abs(time) * self.scale < LIMIT_MS else None


def time_remark(stream: str, file: str, reason: str) -> BadInput:
    """The remark of a `TimeTerms`: no value is lost, and no event is bad."""
    return BadInput(file, None, reason, lost=(f"time of <{stream}>", 0))


NO_TIME = "event without a timestamp"
LOST_QUAD = "event that has lost a quad to a line that cannot be read"


@dataclass(slots=True)
class OpenEvent:
    """An event under construction: rows first:end so far, and its time if known (ms)."""

    graph: str  # N-Triples text, empty where the format has none
    first: int
    end: int
    line: int
    time: int | None = None
    unreadable: str | None = None  # text of a time that cannot be read
    lost: bool = False  # whether a quad of it could not be read

    def offer(self, text: str, times: TimeTerms) -> None:
        """Give the event a time. The first readable one counts."""
        if self.time is None:
            self.time = times.read(text)
            if self.time is None:
                self.unreadable = text

    def default(self, time: int | None) -> None:
        """Give the event a time (ms), if its graph has none."""
        if self.time is None and self.unreadable is None:
            self.time = time

    @property
    def name(self) -> str | None:
        """The graph's IRI, None if it is a blank node or the format has no graphs."""
        return self.graph[1:-1] if self.graph[:1] == "<" else None

    def complaint(self, file: str) -> BadInput:
        """The report of an event that has lost a quad or has no time."""
        reason = NO_TIME
        if self.time is not None and self.lost:
            reason = LOST_QUAD
        elif self.unreadable is not None:
            reason = f"event without a readable timestamp: {self.unreadable[:200]}"
        return BadInput(file, self.line or None, reason, self.graph[:300])


def left_over(file: str, line: int, left: int, size: int) -> BadInput:
    """The report of `left` triples, the first in `line`, that are fewer than `size`, an event."""
    triples = "1 triple is" if left == 1 else f"{left} triples are"
    reason = f"{triples} left at the end of the file; {size} make an event"
    return BadInput(file, line or None, reason)


_MOST_BETWEEN = 100_000
"""Maximum number of timestamps that wait for the next event; more belong to no event."""


@record
class _Timestamp:
    """A timestamp in the default graph that no event has used yet."""

    graph: str  # N-Triples text
    text: str
    line: int


@dataclass(slots=True)
class _Between:
    """Triples of the default graph since the last named graph."""

    timestamps: deque[_Timestamp] = field(default_factory=deque)
    stray: int = 0  # triples that are not timestamps
    stray_line: int = UNKNOWN_LINE  # of the first of them
    stray_text: str = ""


class GraphTimes:
    """Assigns timestamps to events, given runs of rows in file order.

    Calls `emit` with each complete event that has a time and all its quads, and reports others.
    Events without a time get the default time (ms), if there is one.
    """

    def __init__(
        self,
        file: str,
        times: TimeTerms,
        on_bad: OnBad,
        emit: Callable[[OpenEvent], None],
        default_time: int | None = None,
    ) -> None:
        self._file, self._default_time = file, default_time
        self.times, self._on_bad = times, on_bad
        self._emit = emit
        self.open: OpenEvent | None = None
        self._between = _Between()

    def graph_run(self, graph: str, first: int, end: int, line: int) -> OpenEvent:
        """A run of quads of one named graph: it continues the open event or starts another."""
        event = self.open
        if event is not None and event.graph == graph and event.end == first:
            event.end = end
            return event
        event = OpenEvent(graph, first, end, line)
        self._close(event)
        return event

    def default_run(self, block: QuadBlock, timed: Bools, first: int, end: int) -> None:
        """Triples first:end of the default graph: timestamps and stray triples.

        `timed` [m] says which rows of the block have the time predicate.
        """
        between = self._between
        for row in range(first, end):
            if not timed[row]:
                if not between.stray:
                    between.stray_line = int(block.line[row])
                    between.stray_text = triple_text(block, row)
                between.stray += 1
                continue
            graph, text = block.terms[block.s[row]], block.terms[block.o[row]]
            event = self.open
            if event is not None and event.graph == graph and event.time is None:
                event.offer(text, self.times)
            else:
                between.timestamps.append(_Timestamp(graph, text, int(block.line[row])))
                if len(between.timestamps) > _MOST_BETWEEN:
                    self._settle(between.timestamps.popleft(), event, None)

    def finish(self, cut: bool, rows: int) -> None:
        """The end of the file after `rows` rows; `cut` if the rest of the file cannot be read."""
        if cut and self.open is not None and self.open.end == rows:
            self.open = None
        if cut:
            self._between.timestamps.clear()
        self._close(None)

    def _close(self, following: OpenEvent | None) -> None:
        """End the open event and settle the default graph's triples before the following event."""
        before, between = self.open, self._between
        if before is not None:
            before.default(self._default_time)
            if before.time is None or before.lost:
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
        """Give an unused timestamp to the following event, or report it."""
        graph = timestamp.graph
        if following is not None and following.graph == graph and following.time is None:
            following.offer(timestamp.text, self.times)
            return
        neighbours = [e for e in (before, following) if e is not None and e.graph == graph]
        if neighbours:
            time = self.times.read(timestamp.text)
            if any(event.time == time for event in neighbours):
                return
        self.report_time(bool(neighbours), timestamp.line, graph)

    def report_time(self, second: bool, line: int, graph: str) -> None:
        """Report a timestamp of no event, or (`second`) of an event with another time."""
        reason = "timestamp of a graph without triples right before or after it"
        if second:
            reason = "second timestamp of an event, which has the first"
        self._on_bad(BadInput(self._file, line or None, reason, graph))

    def report_strays(self, count: int, line: int, text: str) -> None:
        """Report stray triples of the default graph; `line` and `text` belong to the first."""
        triples, belong = ("1 triple", "belongs") if count == 1 else (f"{count} triples", "belong")
        reason = f"{triples} of the default graph that {belong} to no event"
        self._on_bad(BadInput(self._file, line or None, reason, text))


def triple_text(block: QuadBlock, row: int) -> str:
    """A row's triple as text for a report."""
    # A term that no query reads has no code.
    codes = (int(column[row]) for column in (block.s, block.p, block.o))
    s, p, o = (block.terms[code] if code >= 0 else "..." for code in codes)
    return f"{s} {p} {o} ."[:300]
