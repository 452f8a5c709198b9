"""Events of messages (docs/lookup.md#formats).

A message with named graphs has an event for each of them; the time triples are anywhere in the
message. A message without named graphs is one event without a name. Order within a message has no
meaning, so the quads of a graph are brought together first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.rdf.columns.event_batch import EventBatch, EventNames, GraphNames
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.documents.document_events import limits_of_lines
from spaseq.rdf.events.graph_times import OpenEvent, TimeTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.kernels.event_ranges import NO_ROW, TIME_PREDICATE
from spaseq.rdf.lines.arenas import ArenaPool, BufferGraphNames
from spaseq.rdf.lines.chunks import chunk_of
from spaseq.rdf.lines.line_batches import LineBatches, times_of
from spaseq.rdf.lines.statements import StatementReader, Statements
from spaseq.rdf.messages.message_lines import MARK, MessageLines
from spaseq.rdf.terms.term import iri_text
from spaseq.records import record

_POOL = ArenaPool(most=2)
_MARK, _NAMES = 1, 2
"""The codes of the mark between two messages, and of the object of a triple that names an event."""

_NO_RUN = -1
_Key = tuple[int, int, int, int]


class MessageAssembly:
    """Builds the batches of the messages of one file."""

    def __init__(
        self, options: StreamOptions, file: str, counter: InstantCounter, on_bad: OnBad
    ) -> None:
        self.file, self._on_bad = file, on_bad
        self.times = TimeTerms.of_file(options.iri, options.time_unit, file, on_bad)
        self.default_time = options.default_time
        self._reader = StatementReader(
            True,
            _POOL,
            (iri_text(options.time_predicate), f"<{MARK}>", f'"{MARK}"'),
            True,
            limits=limits_of_lines(options.limits),
            scale=self.times.scale,
            keeps_times=True,
        )
        self._batches = LineBatches(
            options.iri, counter, options.batch_events, skip_time=False, made_up_labels=True
        )

    def batches(self, given: MessageLines) -> Iterator[EventBatch]:
        """The events of some messages."""
        read = self._reader.read(chunk_of(np.frombuffer(given.text, np.uint8), _POOL))
        for bad in read.bad:
            self._on_bad(BadInput(self.file, None, bad.reason, bad.text))
        rows = _MessageRows.of(read, given)
        if not len(rows.message):
            return
        run_times = _RunTimes.of(rows, self.times, self.default_time)
        for _, bad_input in sorted(self._complaints(rows, run_times), key=lambda each: each[0]):
            self._on_bad(bad_input)
        kept = np.flatnonzero(run_times.timed)
        names = _names(rows, kept)
        given_rows = rows.read, 0, rows.first[kept], rows.end[kept]
        yield from self._batches.batches(*given_rows, run_times.ms[kept], names)

    def _complaints(self, rows: _MessageRows, times: _RunTimes) -> Iterator[tuple[_Key, BadInput]]:
        """Reports, with the places by which they are sorted."""
        terms = rows.read.terms
        for run in np.flatnonzero(rows.is_event & ~times.timed).tolist():
            message = int(rows.run_message[run])
            event = OpenEvent(rows.name(run), 0, 0, rows.lines[message])
            if times.unreadable[run] != NO_ROW:
                event.unreadable = terms[int(rows.read.o[times.unreadable[run]])]
            yield (message, 0, run, 0), event.complaint(self.file)
        for row, run in times.second:
            message = int(rows.message[row])
            reason = "second timestamp of an event, which has the first"
            yield (message, 0, run, 1), self._report(rows, message, reason, rows.name(run))
        strays = dict.fromkeys((int(rows.message[r]), int(rows.read.s[r])) for r in times.strays)
        for number, (message, graph) in enumerate(strays):
            reason = "timestamp of a graph without triples in its message"
            yield (message, 1, 0, number), self._report(rows, message, reason, terms[graph])
        for run, count, row in rows.left_over():
            message = int(rows.run_message[run])
            triples, belong = (
                ("1 triple", "belongs") if count == 1 else (f"{count} triples", "belong")
            )
            reason = f"{triples} of the default graph that {belong} to no event"
            text = " ".join(terms[int(c[row])] for c in (rows.read.s, rows.read.p, rows.read.o))
            yield (message, 2, 0, 0), self._report(rows, message, reason, f"{text} .")

    def _report(self, rows: _MessageRows, message: int, reason: str, text: str) -> BadInput:
        return BadInput(self.file, rows.lines[message], reason, text[:300])


@record
class _MessageRows:
    """The m rows of some messages, and r runs of them, each of one message and graph.

    Row i had the position place[i] when it was read. A run in the default graph is an event if its
    message has no other.
    """

    read: Statements
    message: Int64s  # [m]
    place: Int64s  # [m]
    lines: Any  # of each message
    names: dict[int, str]  # of events without a graph, by message
    first: Int64s  # [r]
    end: Int64s  # [r]
    run_message: Int64s  # [r]
    is_named: Bools  # [r]
    is_event: Bools  # [r]

    @classmethod
    def of(cls, read: Statements, given: MessageLines) -> _MessageRows:
        """The rows except marks, sorted by graph."""
        is_mark, names = read.s == _MARK, read.o == _NAMES
        message = np.cumsum(is_mark)
        named = zip(message[names].tolist(), read.s[names].tolist(), strict=True)
        name_of = {m: text for m, s in named if (text := read.terms[s])[0] == "<"}
        kept = np.flatnonzero(~(is_mark | names))
        order = _by_graph(message[kept], read.g[kept])
        chosen = kept if order is None else kept[order]
        if order is not None or len(kept) != len(read):
            columns = {name: getattr(read, name)[chosen] for name in ("s", "p", "o", "g", "time")}
            read = replace(read, **columns)
        message = message[chosen]
        first = _begins(message, read.g)
        run_message, is_named = message[first], read.g[first] >= 0
        has_named = np.zeros(len(given.lines) + 1, np.bool_)
        has_named[run_message[is_named]] = True
        is_event = is_named | ~has_named[run_message]
        end = np.append(first[1:], len(message)) if len(first) else first
        runs = first, end, run_message, is_named, is_event
        return cls(read, message, chosen, given.lines, name_of, *runs)

    def run_of(self, row: Int64s) -> Int64s:
        """The runs of rows."""
        return np.searchsorted(self.first, row, side="right") - 1

    def name(self, run: int) -> str:
        """The name of a run's event, N-Triples text or empty."""
        if self.is_named[run]:
            return self.read.terms[int(self.read.g[self.first[run]])]
        return self.names.get(int(self.run_message[run]), "")

    def left_over(self) -> Iterator[tuple[int, int, int]]:
        """Runs of no event, with the number of their rows that are no times, and the first."""
        if self.is_event.all():
            return
        is_stray = np.repeat(~self.is_event, self.end - self.first)
        rows = np.flatnonzero(is_stray & (self.read.p != TIME_PREDICATE))
        if not len(rows):
            return
        runs, first, counts = np.unique(self.run_of(rows), return_index=True, return_counts=True)
        yield from zip(runs.tolist(), counts.tolist(), rows[first].tolist(), strict=True)


def _begins(message: Int64s, g: Any) -> Int64s:
    """The first row of each run of one message and graph."""
    changes = np.ones(len(g), np.bool_)
    changes[1:] = (g[1:] != g[:-1]) | (message[1:] != message[:-1])
    return np.flatnonzero(changes)


def _by_graph(message: Int64s, g: Any) -> Int64s | None:
    """The rows with each graph's together, in order of first appearance; None if they are."""
    first = _begins(message, g)
    key = message * (int(g.max(initial=0)) + 2) + g + 1
    if len(first) < 3 or len(distinct(key[first])) == len(first):
        return None
    _, begins, inverse = np.unique(key, return_index=True, return_inverse=True)
    order: Int64s = np.argsort(begins[inverse], kind="stable")
    return order


@record
class _RunTimes:
    """The times of r runs.

    `second` has (row, run) of each timestamp that differs from its event's. `strays` has the rows
    of timestamps that belong to no event.
    """

    timed: Bools  # [r] whether it is an event with a time
    ms: Int64s  # [r]
    unreadable: Int64s  # [r] the row of the last unreadable time, or NO_ROW
    second: list[tuple[int, int]]
    strays: list[int]

    @classmethod
    def of(cls, rows: _MessageRows, times: TimeTerms, default: int | None) -> _RunTimes:
        """The first readable time counts, in the order of reading."""
        said = times_of(rows.read, times)
        order = np.argsort(rows.place[said.row], kind="stable")
        row, ms, readable = said.row[order], said.ms[order], said.readable[order]
        run, outside = _events_of(rows, row)
        offers = run != _NO_RUN
        timed, run_ms = np.zeros(len(rows.first), np.bool_), np.zeros(len(rows.first), np.int64)
        good = np.flatnonzero(offers & readable)[::-1]  # so that the first is written last
        timed[run[good]], run_ms[run[good]] = True, ms[good]
        unreadable = np.full(len(rows.first), NO_ROW, np.int64)
        bad = offers & ~readable
        unreadable[run[bad]] = row[bad]
        if default is not None:
            without = rows.is_event & ~timed & (unreadable == NO_ROW)
            timed[without], run_ms[without] = True, default
        second = outside & offers & timed[run] & ~(readable & (ms == run_ms[run]))
        strays = row[outside & ~offers].tolist()
        pairs = zip(row[second].tolist(), run[second].tolist(), strict=True)
        return cls(timed, run_ms, unreadable, list(pairs), strays)


def _events_of(rows: _MessageRows, row: Int64s) -> tuple[Int64s, Bools]:
    """The run that each row with a time gives one, or _NO_RUN; whether it stands outside."""
    run, s, g = rows.run_of(row), rows.read.s[row], rows.read.g[row]
    outside = ~rows.is_event[run]
    target: Int64s = np.where(rows.is_named[run] & (s != g), _NO_RUN, run)
    if not outside.any():
        return target, outside
    width = int(rows.read.g.max(initial=0)) + 1
    named = np.flatnonzero(rows.is_named)
    keys = rows.run_message[named] * width + rows.read.g[rows.first[named]]
    ranks = np.argsort(keys)
    wanted = np.where(s < width, rows.message[row] * width + s, -1)
    rank = np.minimum(np.searchsorted(keys, wanted, sorter=ranks), len(named) - 1)
    of_graph = np.where(keys[ranks[rank]] == wanted, named[ranks[rank]], _NO_RUN)
    return np.where(outside, of_graph, target), outside


def _names(rows: _MessageRows, runs: Int64s) -> GraphNames:
    """The names of the events of runs."""
    if rows.is_named[runs].all():
        return BufferGraphNames(rows.read.terms, rows.read.g[rows.first[runs]])
    if not rows.names and not rows.is_named[runs].any():
        return EventNames.none(len(runs))
    texts = [rows.name(run) for run in runs.tolist()]
    return EventNames.of([text[1:-1] if text[:1] == "<" else None for text in texts])
