"""Event batches from N-Quads and N-Triples files: the fast path.

A file is split into chunks. One or more threads tokenize them; events are built in file order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Protocol

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import REST, BadInput, OnBad, StreamOptions
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunk_events import GraphEvents, SizedEvents
from spaseq.rdf.lines.chunks import AfterSizedEvents, BeforeGraphs, Cut, LineChunks
from spaseq.rdf.lines.line_batches import EventBound, LineBatches
from spaseq.rdf.lines.statements import StatementReader, Statements
from spaseq.rdf.terms.term import iri_text
from spaseq.reading_ahead import read_ahead

_POOL = ArenaPool(most=4)


@dataclass(slots=True)
class LineCounter:
    """Counts the lines of a file; `following` is the number of the next line."""

    following: int = 1


class _EventBuilder(Protocol):
    """Builds events from the statements of one file."""

    def add(self, statements: Statements, line: int, is_cut: bool) -> Iterator[EventBatch]: ...
    def finish(self, is_cut: bool) -> Iterator[EventBatch]: ...


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
    events: _EventBuilder
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
