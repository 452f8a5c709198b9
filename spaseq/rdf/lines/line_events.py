"""Event batches from N-Quads and N-Triples files: the fast path.

A file is split into chunks. One or more threads tokenize them; events are built in file order: from
named graphs of N-Quads, or of n statements each from N-Triples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.rdf.columns.event_batch import MALFORMED, EventBatch, EventNames, QuadBlock
from spaseq.rdf.columns.term_tables import ExtendedTerms
from spaseq.rdf.events.graph_times import (
    LOST_QUAD,
    GraphTimes,
    OpenEvent,
    TimeTerms,
    left_over,
    triple_text,
)
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import REST, BadInput, OnBad, StreamOptions
from spaseq.rdf.kernels.event_ranges import (
    GIVEN,
    NO_ROW,
    SECOND,
    STRAY,
    TIME_PREDICATE,
    UNTIMED,
    EventRanges,
    named_events,
    sized_events,
)
from spaseq.rdf.kernels.lines import TIMED
from spaseq.rdf.lines.arenas import ArenaPool, BufferGraphNames
from spaseq.rdf.lines.chunks import AfterSizedEvents, BeforeGraphs, Cut, LineChunks
from spaseq.rdf.lines.line_batches import EventBound, LineBatches, LostQuads, times_of
from spaseq.rdf.lines.statements import StatementReader, Statements
from spaseq.rdf.terms.term import iri_text
from spaseq.rdf.terms.times import time_literal
from spaseq.reading_ahead import read_ahead

_POOL = ArenaPool(most=4)


@dataclass(slots=True)
class LineCounter:
    """Counts the lines of a file; `following` is the number of the next line."""

    following: int = 1


def line_events(
    data: IO[bytes],
    file: InputFile,
    options: StreamOptions,
    counter: InstantCounter,
    arrival: Callable[[], int],
    on_bad: OnBad,
    lines: LineCounter | None = None,
) -> Iterator[EventBatch]:
    """The events of an N-Quads or N-Triples file, as `read_file` gives them.

    `lines` counts the lines; it is given if `data` begins within the file. Lines of a document are
    the parser's, which gives blank nodes without a label a random one.
    """
    lines = lines or LineCounter()
    asked = options.predicates
    time = iri_text(options.time_predicate)
    rest = [] if asked is None else [p for p in map(iri_text, asked) if p != time]
    graphs = file.format.has_graphs
    constants = time, *dict.fromkeys(rest)
    times = TimeTerms.of_file(options.iri, options.time_unit, file.path, on_bad)
    how = options.limits, options.larger, times.scale
    reader = StatementReader(graphs, _POOL, constants, True, asked is not None, *how)
    skip_time = asked is not None and options.time_predicate not in asked
    made_up_labels = file.format not in (Format.NQUADS, Format.NTRIPLES)
    bound = EventBound(file.path, options.limits, on_bad)
    most = options.larger * options.batch_events
    batches = LineBatches(options.iri, counter, most, skip_time, bound, made_up_labels)
    events: GraphEvents | SizedEvents
    cut: Cut
    if graphs:
        events = GraphEvents(batches, file.path, times, on_bad, options.default_time)
        cut = BeforeGraphs(reader)
    else:
        assert options.triples_per_event is not None, "resolve_paths sees to it"
        clock = arrival if options.arrival_time else times
        size = options.triples_per_event
        events = SizedEvents(batches, file.path, size, clock, on_bad)
        cut = AfterSizedEvents(size)
    is_cut, threads = False, max(options.threads, 1)
    read = line_statements(data, file.path, reader, cut, threads, on_bad, lines)
    for statements, line, is_cut in read:
        yield from events.add(statements, line, is_cut)
        del statements  # releases its arena
    yield from events.finish(is_cut)


def line_statements(
    data: IO[bytes],
    file: str,
    reader: StatementReader,
    cut: Cut,
    threads: int,
    on_bad: OnBad,
    lines: LineCounter | None = None,
) -> Iterator[tuple[Statements, int, bool]]:
    """The statements of a file by chunk; malformed lines are reported first.

    Yields (statements of a chunk, number of its first line, whether the file cannot be read beyond
    it).
    """
    lines = lines or LineCounter()
    chunks = iter(LineChunks(data, reader.pool, cut, reader.limits, reader.larger))
    for chunk, statements in read_ahead(reader.read, chunks, threads):
        if (dropped := chunk.dropped) is not None:
            if dropped.reason:
                on_bad(BadInput(file, lines.following, dropped.reason, dropped.text))
            lines.following += dropped.lines
        line = lines.following
        lines.following = line + statements.lines
        if chunk.fault is not None:
            on_bad(BadInput(file, lines.following, f"{REST}{chunk.fault}"))
        for bad in statements.bad:
            on_bad(BadInput(file, line + bad.line, bad.reason, bad.text))
        yield statements, line, chunk.fault is not None
        del statements


class SizedEvents:
    """The events of one N-Triples file. Only its last chunk may end within an event.

    A malformed line counts as one of the n statements, and makes their event bad. n malformed lines
    are not an event. `times` reads the times of events, or gives their times of arrival.
    """

    def __init__(
        self,
        batches: LineBatches,
        file: str,
        size: int,
        times: TimeTerms | Callable[[], int],
        on_bad: OnBad,
    ) -> None:
        self._batches = batches
        self._file = file
        self._size = size
        self._times = times
        self._on_bad = on_bad

    def add(self, statements: Statements, line: int, is_cut: bool) -> Iterator[EventBatch]:
        """The events of the next chunk, whose first line has the number `line`."""
        count = len(statements) // self._size
        first = np.arange(count, dtype=np.int64) * self._size
        read = (statements.s[: count * self._size] != MALFORMED).reshape(count, self._size)
        whole = read.all(axis=1)
        first = first[read.any(axis=1)]
        if isinstance(self._times, TimeTerms):
            first, time = self._timed(statements, line, first, self._times)
            time = time[whole[first // self._size]]
            first = self._whole(statements, line, first, whole)
        else:
            first = self._whole(statements, line, first, whole)
            time = np.array([self._times() for _ in first], np.int64)
        names = EventNames.none(len(first))
        yield from self._batches.batches(statements, line, first, first + self._size, time, names)
        left = len(statements) - count * self._size
        if left and not is_cut:
            where = line + int(statements.line[-left])
            self._on_bad(left_over(self._file, where, left, self._size))

    def finish(self, is_cut: bool) -> Iterator[EventBatch]:
        """Nothing: each chunk's events are complete."""
        return iter(())

    def _whole(self, statements: Statements, line: int, first: Int64s, whole: Bools) -> Int64s:
        """The first rows of events that have lost no line; reports the others."""
        kept = whole[first // self._size]
        for row in first[~kept].tolist():
            where = line + int(statements.line[row])
            self._on_bad(BadInput(self._file, where, LOST_QUAD))
        return first[kept]

    def _timed(
        self, statements: Statements, line: int, first: Int64s, times: TimeTerms
    ) -> tuple[Int64s, Int64s]:
        """(first rows, times) of the events with a time; reports the other events."""
        size = self._size
        ms, timed, unreadable = sized_events(size, len(statements), times_of(statements, times))
        event = first // size
        for i in np.flatnonzero(~timed[event]).tolist():
            row, time = int(first[i]), int(unreadable[event[i]])
            untimed = OpenEvent("", row, row + size, line + int(statements.line[row]))
            if time >= 0:
                untimed.unreadable = statements.terms[int(statements.o[time])]
            self._on_bad(untimed.complaint(self._file))
        kept = timed[event]
        return first[kept], ms[event][kept]


_LOST = -1
"""The kind of finding that an event has lost a quad; the kernel has the other kinds."""


class _EventRows(NamedTuple):
    """The rows first:end of one event; `line` is the number of the statements' first line."""

    statements: Statements
    line: int
    first: int
    end: int


class _LastEvent:
    """The event at the end of a chunk.

    `waiting` is the open event, unless it is in a batch already. `completed` is a completed event
    of an earlier chunk, and its time.
    """

    def __init__(self) -> None:
        self.waiting: _EventRows | None = None
        self.completed: tuple[_EventRows, int] | None = None

    def complete(self, event: OpenEvent) -> None:
        """Record that an event has ended."""
        if self.waiting is not None:
            assert event.time is not None
            self.completed, self.waiting = (self.waiting, event.time), None


class GraphEvents:
    """The events of one N-Quads file. Each run of quads of a graph lies in one chunk."""

    def __init__(
        self,
        batches: LineBatches,
        file: str,
        times: TimeTerms,
        on_bad: OnBad,
        default_time: int | None = None,
    ) -> None:
        """Events whose graph has no time get `default_time` (ms), if there is one."""
        self._batches = batches
        self._default = default_time is not None, default_time or 0
        self._file = file
        self._on_bad = on_bad
        self._at_end = _LastEvent()
        self._times = GraphTimes(file, times, on_bad, self._at_end.complete, default_time)
        self._rows = 0  # of the chunks so far
        self._lost = LostQuads()

    def add(self, statements: Statements, line: int, is_cut: bool) -> Iterator[EventBatch]:
        """The events of the next chunk, whose first line has the number `line`.

        `is_cut` says that the file cannot be read beyond the chunk. An event at its end may then be
        incomplete.
        """
        rows = len(statements)
        self._rows += statements.apart  # so the open event does not continue
        lost = self._lost_rows(statements)
        named = statements.g >= 0
        start = int(named.argmax()) if named.any() else rows
        self._default_run(statements, line, 0, start)
        if start < rows:
            ranges = self._found(statements, line, start, lost)
            last = self._last(statements, line, ranges)
            self._default_run(statements, line, last.end, rows)
            yield from self._take_completed()
            event = self._times.open
            assert event is not None
            event.lost |= bool(((lost >= last.first) & (lost < last.end)).any())
            is_cut = is_cut and last.end == rows
            waits = event.time is None or event.lost or is_cut or statements.goes_on
            yield from self._batch(ranges, last, None if waits else event.time)
            self._at_end.waiting = last if waits else None
        self._rows += rows

    def finish(self, is_cut: bool) -> Iterator[EventBatch]:
        """The last events, at the end of the file."""
        self._times.finish(is_cut, self._rows)
        yield from self._take_completed()

    def _lost_rows(self, statements: Statements) -> Int64s:
        """A row of each event that has lost a quad; notes whether the open event has."""
        event = self._times.open
        lost, is_open = self._lost.find(statements, None if event is None else event.graph)
        if event is not None and self._at_end.waiting is not None:
            event.lost |= is_open
        return lost

    def _found(self, statements: Statements, line: int, start: int, lost: Int64s) -> EventRanges:
        """The events from the row `start`, the first of a named graph, to the last named graph.

        Events with a row in `lost` are reported and left out.
        """
        event = self._begin(statements, line, start)
        ranges: EventRanges = named_events(
            statements.g,
            statements.s,
            times_of(statements, self._times.times),
            start,
            event.time is not None,
            event.time or 0,
            NO_ROW if event.unreadable is None else GIVEN,
            self._default,
        )
        kept = ~(np.searchsorted(lost, ranges.first) < np.searchsorted(lost, ranges.end))
        findings = ranges.kind, ranges.row, ranges.detail
        if not kept.all():
            findings = _with_lost(ranges, ranges.first[~kept])
        for kind, row, detail in zip(*(column.tolist() for column in findings), strict=True):
            self._report(statements, line, kind, row, detail, event)
        if ranges.left != start:
            following = self._event(statements, line, ranges.left)
            following.time = ranges.time if ranges.has_time else None
            following.unreadable = _text(statements, ranges.unreadable, event)
            self._times.open = following
        return ranges._replace(first=ranges.first[kept], end=ranges.end[kept], ms=ranges.ms[kept])

    def _begin(self, statements: Statements, line: int, row: int) -> OpenEvent:
        """Open the event that begins with a row and end the one before."""
        event = self._event(statements, line, row)
        return self._times.graph_run(event.graph, event.first, event.end, event.line)

    def _event(self, statements: Statements, line: int, row: int) -> OpenEvent:
        graph = statements.terms[int(statements.g[row])]
        first = self._rows + row
        return OpenEvent(graph, first, first + 1, line + int(statements.line[row]))

    def _last(self, statements: Statements, line: int, ranges: EventRanges) -> _EventRows:
        """The rows of the last named graph; its event gets the times in them."""
        first, event = ranges.left, self._times.open
        assert event is not None
        others = statements.g[first:] != statements.g[first]
        end = first + int(others.argmax()) if others.any() else len(statements)
        event.end = self._rows + end
        run = slice(first, end)
        timed = statements.p[run] == TIME_PREDICATE
        inside = np.flatnonzero(timed & (statements.s[run] == statements.g[run]))
        for code in statements.o[run][inside].tolist():
            event.offer(statements.terms[code], self._times.times)
        return _EventRows(statements, line, first, end)

    def _default_run(self, statements: Statements, line: int, first: int, end: int) -> None:
        """Process rows of the default graph before the first or after the last named graph."""
        if first < end:
            block = _block(statements, line, first, end)
            self._times.default_run(block, block.p == TIME_PREDICATE, 0, end - first)

    def _take_completed(self) -> Iterator[EventBatch]:
        if self._at_end.completed is not None:
            (statements, line, first, end), time = self._at_end.completed
            self._at_end.completed = None
            yield from self._batches.batches(
                statements,
                line,
                np.array([first], np.int64),
                np.array([end], np.int64),
                np.array([time], np.int64),
                BufferGraphNames(statements.terms, statements.g[first : first + 1].copy()),
            )

    def _batch(
        self, ranges: EventRanges, last: _EventRows, time: int | None
    ) -> Iterator[EventBatch]:
        """Batches of the kernel's events, and of the last event if its time is known."""
        first, end, ms = ranges.first, ranges.end, ranges.ms
        if time is not None:
            first, end = np.append(first, last.first), np.append(end, last.end)
            ms = np.append(ms, time)
        statements = last.statements
        names = BufferGraphNames(statements.terms, statements.g[first])
        yield from self._batches.batches(statements, last.line, first, end, ms, names)

    def _report(
        self, statements: Statements, line: int, kind: int, row: int, detail: int, given: OpenEvent
    ) -> None:
        """Report a finding of the kernel."""
        where = line + int(statements.line[row])
        match kind:
            case _ if kind == _LOST:
                name = statements.terms[int(statements.g[row])]
                self._on_bad(BadInput(self._file, where, LOST_QUAD, name[:300]))
            case _ if kind == UNTIMED:
                event = self._event(statements, line, row)
                event.unreadable = _text(statements, detail, given)
                self._on_bad(event.complaint(self._file))
            case _ if kind == STRAY:
                text = triple_text(_block(statements, line, row, row + 1), 0)
                self._times.report_strays(detail, where, text)
            case _:
                graph = statements.terms[int(statements.s[row])]
                self._times.report_time(kind == SECOND, where, graph)


def _with_lost(ranges: EventRanges, rows: Int64s) -> tuple[Any, Any, Any]:
    """The findings (kinds, rows, details), with events that have lost a quad in `rows`."""
    before = np.searchsorted(np.maximum.accumulate(ranges.row), rows)
    return (
        np.insert(ranges.kind, before, _LOST),
        np.insert(ranges.row, before, rows),
        np.insert(ranges.detail, before, 0),
    )


def _text(statements: Statements, row: int, given: OpenEvent) -> str | None:
    """The unreadable time in a row, or (row GIVEN) the one that the `given` event has."""
    if row == GIVEN:
        return given.unreadable
    return None if row == NO_ROW else statements.terms[int(statements.o[row])]


def _block(statements: Statements, line: int, first: int, end: int) -> QuadBlock:
    """Rows as a block; `line` is the number of the chunk's first line."""
    rows = slice(first, end)
    terms = ExtendedTerms(statements.terms)
    o = statements.o[rows].copy()
    timed = np.flatnonzero(o == TIMED)
    times = statements.time[rows][timed].tolist()
    o[timed] = terms.encode([*map(time_literal, times)])
    return QuadBlock(
        statements.s[rows],
        statements.p[rows],
        o,
        statements.g[rows],
        statements.line[rows].astype(np.int64) + line,
        terms,
    )
