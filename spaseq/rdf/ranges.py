"""Event batches from the files of a stream, in order of arrival; and independent byte ranges of
files.

A range begins and ends between two events. Reading it gives the same events as reading the whole
file, given the state before the range: the number of the first line, and the number of earlier
events of the stream at each time in the range (see `TimeScan`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.errors import InputError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter, UncountedInstants
from spaseq.rdf.inputs.files import STDIN, InputFile, announced, report_after_end, resolve_paths
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions, ignore
from spaseq.rdf.kernels.event_ranges import TIME_PREDICATE
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import AfterSizedEvents, LineChunks, chunk_of
from spaseq.rdf.lines.line_events import LineCounter, line_events
from spaseq.rdf.lines.statements import StatementReader, Statements
from spaseq.rdf.terms.term import iri_text
from spaseq.records import record

_WINDOW = 1 << 16
_MOST_WINDOW = 1 << 22
_GROWTH = 4  # factor for the next window, if the window contains no boundary of events
_WHOLE_BATCH = 1 << 40
_COUNTED_BYTES = 1 << 20


class ArrivalClock:
    """A clock for times of arrival (ms) that never goes back, even if the wall clock does."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._last: int | None = None

    def __call__(self) -> int:
        now = int(self._wall() * 1000)
        self._last = now if self._last is None else max(now, self._last)
        return self._last


def read_stream(
    options: StreamOptions,
    on_bad: OnBad,
    counter: InstantCounter | None = None,
    arrival: ArrivalClock | None = None,
) -> Iterator[EventBatch]:
    """The events of a stream in order of arrival: file by file, each from start to end.

    Args:
        options: the stream's paths and how to read them.
        on_bad: called for each part of the input that cannot become an event, before the batch
            that is read along with it.
        counter: numbers the events of equal time, continuing from earlier events.
        arrival: clock for `arrival_time`.

    Raises:
        InputError: a path cannot be resolved. The call raises it, not the iterator.
    """
    files = resolve_paths(options)
    return read_files(
        files, options, on_bad, counter or InstantCounter(), arrival or ArrivalClock()
    )


def read_files(
    files: Sequence[InputFile],
    options: StreamOptions,
    on_bad: OnBad,
    counter: InstantCounter,
    arrival: ArrivalClock,
) -> Iterator[EventBatch]:
    """The events of files, in the given order. An event never spans two files."""
    for file in files:
        yield from read_file(file, options, on_bad, counter, arrival)


def read_file(
    file: InputFile,
    options: StreamOptions,
    on_bad: OnBad,
    counter: InstantCounter,
    arrival: ArrivalClock,
) -> Iterator[EventBatch]:
    """The events of one file."""
    with file.open(options.limits) as opened:
        data, file = announced(opened, file)
        if file.format in (Format.NQUADS, Format.NTRIPLES):
            from spaseq.rdf.lines.line_events import line_events  # it loads numba

            yield from line_events(data, file, options, counter, arrival, on_bad)
        elif file.format.is_messages:
            from spaseq.rdf.messages.read_messages import message_file_events

            yield from message_file_events(data, file, options, counter, on_bad)
        else:
            from spaseq.rdf.documents.document_events import document_events

            yield from document_events(data, file, options, counter, arrival, on_bad)
        report_after_end(opened, file.path, on_bad)


@record
class FileRange:
    """Bytes begin:end of a file (to its end if None); the first line has the number `line`."""

    file: InputFile
    begin: int = 0
    end: int | None = None
    line: int = 1


@record
class TimeScan:
    """The times (ms) of a range's events, in order, and its number of lines."""

    times: Int64s
    lines: int


def is_line_format(file: InputFile) -> bool:
    """Whether the file is N-Quads or N-Triples, whose events are cheap to find."""
    return file.format in (Format.NQUADS, Format.NTRIPLES)


def is_divisible(file: InputFile) -> bool:
    """Whether reading can begin within the file."""
    return is_line_format(file) and file.path != STDIN and not file.path.endswith(".gz")


def places(
    file: InputFile, options: StreamOptions, begin: int, end: int, step: int
) -> Iterator[int]:
    """Offsets between two events, at least `step` bytes apart, in begin:end of a divisible file.

    `begin` must be such an offset.
    """
    with file.open() as data:
        if file.format.has_graphs:
            reader = _reader(options)
            at = begin
            while at + step < end:
                line = _next_line(data, at + step, end)
                offset = (
                    None if line is None else next(_graph_places(data, line, end, reader), None)
                )
                if offset is None:
                    return
                yield offset
                at = offset
        else:
            yield from _sized_places(data, file, options, begin, end, step)


def last_place(file: InputFile, options: StreamOptions, begin: int, end: int) -> int:
    """The last offset in begin:end after which nothing can belong to an earlier event.

    `begin` if there is none. In N-Quads the last event that begins is not complete yet.
    """
    with file.open() as data:
        whole = _line_end(data, begin, end)
        if not file.format.has_graphs:
            offset = max(_sized_places(data, file, options, begin, whole, 0), default=begin)
        else:
            offset = _last_graph_place(data, options, begin, whole)
    # An event without an end is read as far as it is there, and found to be too long.
    too_long = offset == begin and end - begin > options.limits.event_bytes
    return max(whole, begin + 1) if too_long else offset


def _last_graph_place(data: IO[bytes], options: StreamOptions, begin: int, end: int) -> int:
    """The last offset between two events of N-Quads in begin:end; `begin` if there is none.

    The search goes back in windows that grow. If they do not help, it goes forward once.
    """
    reader = _reader(options)
    window = _WINDOW
    while window <= _MOST_WINDOW:
        start = max(begin, end - window)
        line = start if start == begin else _next_line(data, start, end)
        places = [] if line is None else _graph_places(data, line, end, reader, last=True)
        offset = max(places, default=begin)
        if offset > begin or start == begin:
            return offset
        window *= _GROWTH
    start = max(begin, end - options.limits.event_bytes - _MOST_WINDOW)
    return max(_graph_places(data, start, end, reader, last=True), default=begin)


def divide(
    file: InputFile, options: StreamOptions, begin: int, end: int, step: int
) -> list[FileRange]:
    """Consecutive ranges of about `step` bytes for begin:end of a divisible file.

    Their line numbers are not set.
    """
    edges = [begin, *places(file, options, begin, end, step), end]
    return [FileRange(file, a, b) for a, b in pairwise(edges) if b > a]


def read_range(
    part: FileRange,
    options: StreamOptions,
    on_bad: OnBad,
    counter: InstantCounter,
    arrival: ArrivalClock,
    lines: LineCounter | None = None,
) -> Iterator[EventBatch]:
    """The events of a range; `lines` counts the lines.

    Raises:
        InputError: the file cannot be opened.
    """
    if not is_line_format(part.file):
        yield from read_file(part.file, options, on_bad, counter, arrival)
        return
    lines = lines or LineCounter(part.line)
    with part.file.open(options.limits) as data:
        section = data
        if part.begin or part.end is not None:
            data.seek(part.begin)
            left = None if part.end is None else part.end - part.begin
            section = cast("IO[bytes]", _BoundedReader(data, left))
        yield from line_events(section, part.file, options, counter, arrival, on_bad, lines)
        report_after_end(data, part.file.path, on_bad)


def scan_times(part: FileRange, options: StreamOptions) -> TimeScan:
    """Read only the times of a range. A file that cannot be read has no events."""
    lines = LineCounter()
    quick = replace(options, predicates=(), batch_events=_WHOLE_BATCH)
    times = []
    try:
        for batch in read_range(part, quick, ignore, UncountedInstants(), ArrivalClock(), lines):
            times.append(batch.time)
    except InputError:
        pass
    return TimeScan(np.concatenate([np.empty(0, np.int64), *times]), lines.following - 1)


def lines_before(part: FileRange) -> int:
    """The number of lines before a range in its file."""
    count, left = 0, part.begin
    with part.file.open() as data:
        while left and (text := data.read(min(left, _COUNTED_BYTES))):
            count += text.count(b"\n")
            left -= len(text)
    return count


def size_of(file: InputFile) -> int:
    """The current size of the file in bytes; InputError if it does not exist."""
    try:
        return Path(file.path).stat().st_size
    except OSError as error:
        raise InputError(f"cannot read {file.path}: {error.strerror}") from error


@dataclass(slots=True)
class _BoundedReader:
    """The next `left` bytes of a file, or the rest of it if None."""

    data: IO[bytes]
    left: int | None

    def readinto(self, room: memoryview) -> int:
        wanted = len(room) if self.left is None else min(len(room), self.left)
        count: int = cast("Any", self.data).readinto(room[:wanted])
        if self.left is not None:
            self.left -= count
        return count


def _reader(options: StreamOptions) -> StatementReader:
    time = iri_text(options.time_predicate)
    return StatementReader(True, ArenaPool(1), (time,), True, True, options.limits)


def _graph_places(
    data: IO[bytes], begin: int, end: int, reader: StatementReader, last: bool = False
) -> Iterator[int]:
    """The first, or `last`, offset between two events in each piece of the lines begin:end.

    The pieces have bounded sizes. A piece begins with the last named graph of the piece before.
    Only complete lines count.
    """
    start: int | None = begin
    window = _MOST_WINDOW if last else _WINDOW
    while start is not None and start < end:
        data.seek(start)
        text = data.read(min(window, end - start))
        whole = text.rfind(b"\n") + 1
        if not whole:  # a long line, at which no event is looked for
            start = _next_line(data, start + len(text), end)
            continue
        statements = reader.read(chunk_of(np.frombuffer(text[:whole], np.uint8), reader.pool))
        offset = _between_graphs(statements, last)
        if offset is not None:
            yield start + offset
        named = np.flatnonzero(statements.g >= 0)
        again = int(statements.at[named[-1]]) if len(named) else 0
        if start + len(text) >= end:
            return
        start += again or whole
        window = min(window * _GROWTH, _MOST_WINDOW)


def _next_line(data: IO[bytes], at: int, end: int) -> int | None:
    """The offset of the first line that begins after `at` and before `end`."""
    data.seek(at)
    while at < end and (text := data.read(min(_WINDOW, end - at))):
        line_end = text.find(b"\n") + 1
        if line_end:
            return at + line_end if at + line_end < end else None
        at += len(text)
    return None


def _line_end(data: IO[bytes], begin: int, end: int) -> int:
    """The offset after the last complete line of begin:end; `begin` if there is none."""
    while end > begin:
        start = max(begin, end - _WINDOW)
        data.seek(start)
        line_end = data.read(end - start).rfind(b"\n")
        if line_end >= 0:
            return start + line_end + 1
        end = start
    return begin


def _between_graphs(statements: Statements, last: bool) -> int | None:
    """The offset of the first or last line, other than line 0, that begins a new event."""
    named = np.flatnonzero(statements.g >= 0)
    graphs = statements.g[named]
    changes = np.flatnonzero(graphs[1:] != graphs[:-1])
    bad = np.array(sorted(bad_line.line for bad_line in statements.bad), np.int64)
    for i in (changes[::-1] if last else changes).tolist():
        lines = statements.line[named[i : i + 2]]
        if len(bad) and np.diff(np.searchsorted(bad, lines))[0]:
            continue  # a malformed line between the two may belong to both
        row = _first_row(statements, int(named[i]), int(named[i + 1]))
        if row is not None:
            return int(statements.at[row])
    return None


def _first_row(statements: Statements, before: int, after: int) -> int | None:
    """The first row of the event whose graph is in row `after`; row `before` is of another graph.

    The rows between are of the default graph: timestamps of the graph before, then timestamps of
    the graph after. None if there is any other triple.
    """
    terms = statements.terms
    graphs = terms[int(statements.g[before])], terms[int(statements.g[after])]
    first = after
    for row in range(before + 1, after):
        if statements.p[row] != TIME_PREDICATE:
            return None
        subject = terms[int(statements.s[row])]
        if subject == graphs[1]:
            first = min(first, row)
        elif subject != graphs[0] or first < after:
            return None
    return first


def _sized_places(
    data: IO[bytes], file: InputFile, options: StreamOptions, begin: int, end: int, step: int
) -> Iterator[int]:
    """Ends of events of n statements after `begin`, up to `end` (exclusive if `step` is not 0)."""
    assert options.triples_per_event is not None, "resolve_paths sees to it"
    data.seek(begin)
    section = cast("IO[bytes]", _BoundedReader(data, end - begin))
    pool = ArenaPool(1)
    cut = AfterSizedEvents(options.triples_per_event)
    given = begin
    for chunk in LineChunks(section, pool, cut, options.limits):
        # The last chunk may end within an event.
        at = begin + chunk.place_of(cut.last(chunk.arena.buffer, chunk.begin, chunk.end))
        pool.give_back(chunk.arena)
        if at - given >= step and given < at and (at < end or not step):
            yield at
            given = at
