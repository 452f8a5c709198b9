"""Events of messages (docs/lookup.md#formats).

A message with named graphs has an event for each of them; the time triples of all stand anywhere in
the message. A message without named graphs is one event without a name. Order within a message has
no meaning, so the quads of a graph are brought together first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.quad_block import DEFAULT_GRAPH, QuadBlock
from spaseq.rdf.documents.event_buffer import EventBuffer
from spaseq.rdf.events.graph_times import OpenEvent, TimeTerms, triple_text
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.messages.message_block import MessageBlock
from spaseq.rdf.terms.term import iri_text
from spaseq.records import record


@record
class _Run:
    """Rows first:end of one message that have one graph, or stand in the default graph."""

    message: int
    graph: int
    first: int
    end: int


class MessageAssembly:
    """Adds the events of messages to a buffer."""

    def __init__(
        self,
        buffer: EventBuffer,
        file: str,
        time_predicate: str,
        times: TimeTerms,
        default_time: int | None,
        on_bad: OnBad,
    ) -> None:
        self._buffer, self._file, self._on_bad = buffer, file, on_bad
        self.times, self._default_time = times, default_time
        self._predicate = iri_text(time_predicate)

    def add(self, block: MessageBlock) -> None:
        """Add the events of these messages."""
        if not len(block.quads):
            return
        order = _by_graph(block)
        base = self._buffer.rows
        own = self._buffer.add(block.quads if order is None else block.quads.rows(order))
        timed = np.flatnonzero(own.p == self._buffer.code(self._predicate)).tolist()
        place = np.arange(len(own)) if order is None else order
        for runs in _messages(own, block.message):
            number = runs[0].message
            name = "" if block.names is None else block.names[number]
            _Message(own, timed, place, base, block.lines[number], name, self).take(runs)

    def close(self, event: OpenEvent) -> None:
        """Emit an event, or report it."""
        event.default(self._default_time)
        if event.time is None:
            self._on_bad(event.complaint(self._file))
        else:
            self._buffer.close(event.time, event.name, event.first, event.end)

    def report(self, line: int, reason: str, text: str) -> None:
        """Report a part of a message."""
        self._on_bad(BadInput(self._file, line, reason, text[:300]))


def _by_graph(block: MessageBlock) -> Int64s | None:
    """The rows with each graph's together, in order of first appearance; None if they are."""
    key = block.message * (len(block.quads.terms) + 1) + block.quads.g + 1
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    begins = first[inverse]
    if (begins[1:] >= begins[:-1]).all():
        return None
    order: Int64s = np.argsort(begins, kind="stable")
    return order


def _messages(own: QuadBlock, message: Int64s) -> Iterator[list[_Run]]:
    """The runs of each message that has quads."""
    changes = (np.diff(own.g, prepend=-2) != 0) | (np.diff(message, prepend=-1) != 0)
    firsts = np.flatnonzero(changes)
    ends = [*firsts[1:].tolist(), len(own)]
    numbers, graphs = message[firsts].tolist(), own.g[firsts].tolist()
    runs: list[_Run] = []
    for number, graph, first, end in zip(numbers, graphs, firsts.tolist(), ends, strict=True):
        if runs and runs[0].message != number:
            yield runs
            runs = []
        runs.append(_Run(number, graph, first, end))
    yield runs


@record
class _Message:
    """The rows of one message in a block; row i stood at place[i] when it was read."""

    own: QuadBlock
    timed: list[int]  # rows of the block with the time predicate, ascending
    place: Int64s
    base: int  # the buffer's number of row 0
    line: int
    name: str  # of its event, if it has no graphs: N-Triples text, or empty
    assembly: MessageAssembly

    def take(self, runs: list[_Run]) -> None:
        """Close the events of the message."""
        default = next((run for run in runs if run.graph == DEFAULT_GRAPH), None)
        named = [run for run in runs if run is not default]
        if not named:
            event = self._event(runs[0], self.name)
            for row in self._times(runs[0]):
                event.offer(self._text(row), self.assembly.times)
            self.assembly.close(event)
            return
        beside: dict[int, list[int]] = {}  # rows with the times of each graph
        if default is not None:
            for row in self._times(default):
                beside.setdefault(int(self.own.s[row]), []).append(row)
        for run in named:
            event = self._event(run, self.own.terms[run.graph])
            outside = beside.pop(run.graph, [])
            inside = [r for r in self._times(run) if int(self.own.s[r]) == run.graph]
            for row in sorted(outside + inside, key=lambda r: int(self.place[r])):
                event.offer(self._text(row), self.assembly.times)
            self.assembly.close(event)
            self._seconds(event, outside)
        if default is not None:
            self._strays(default, beside)

    def _event(self, run: _Run, graph: str) -> OpenEvent:
        return OpenEvent(graph, self.base + run.first, self.base + run.end, self.line)

    def _times(self, run: _Run) -> list[int]:
        return self.timed[bisect_left(self.timed, run.first) : bisect_left(self.timed, run.end)]

    def _text(self, row: int) -> str:
        text: str = self.own.terms[self.own.o[row]]
        return text

    def _seconds(self, event: OpenEvent, rows: list[int]) -> None:
        for row in rows:
            if event.time is not None and self.assembly.times.read(self._text(row)) != event.time:
                reason = "second timestamp of an event, which has the first"
                self.assembly.report(self.line, reason, event.graph)

    def _strays(self, default: _Run, timestamps: dict[int, list[int]]) -> None:
        for graph in timestamps:
            reason = "timestamp of a graph without triples in its message"
            self.assembly.report(self.line, reason, self.own.terms[graph])
        timed = self._times(default)
        count = default.end - default.first - len(timed)
        if count:
            of_times = set(timed)
            first = next(r for r in range(default.first, default.end) if r not in of_times)
            triples = "1 triple" if count == 1 else f"{count} triples"
            belong = "belongs" if count == 1 else "belong"
            reason = f"{triples} of the default graph that {belong} to no event"
            self.assembly.report(self.line, reason, triple_text(self.own, first))
