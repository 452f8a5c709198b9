"""Events of document formats: a named graph each (TriG and JSON-LD), or every n consecutive triples
(docs/lookup.md#formats).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from spaseq.limits import Limits
from spaseq.rdf.columns.quad_block import DEFAULT_GRAPH, MALFORMED, QuadBlock
from spaseq.rdf.documents.event_buffer import EventBuffer
from spaseq.rdf.events.graph_times import GraphTimes, OpenEvent, TimeTerms, left_over
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.rdf.terms.term import iri_text


class EventSizes:
    """Marks the open event of a document once it exceeds the limit; its rows may then be dropped.

    The size is that of the event's terms in N-Triples, repeated terms included. An event that
    begins within a block has its share of the block.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._event: OpenEvent | None = None
        self._size = 0

    def add(self, block: QuadBlock, event: OpenEvent | None) -> None:
        """Count a block whose last rows are those of the open event, if there is one."""
        if event is None:
            self._event = None
            return
        if event is not self._event:
            self._event, self._size = event, 0
        rows = min(event.end - event.first, len(block))
        self._size += block.size * rows // max(len(block), 1)
        if self._size > self._limits.event_bytes:
            event.excess = long_event(self._limits)


class Assembly(Protocol):
    """Groups the blocks of one file into events and adds these to a buffer."""

    def add(self, block: QuadBlock) -> None:
        """Process the next block."""

    def finish(self, cut: bool) -> None:
        """Process the end of the file; `cut` if the rest of it cannot be read."""

    @property
    def open(self) -> OpenEvent | None:
        """The event whose last row is not known yet."""

    @property
    def keep(self) -> int:
        """The first row that an open event needs or may need."""


class GraphAssembly:
    """An assembly in which each named graph is an event."""

    def __init__(
        self,
        buffer: EventBuffer,
        file: str,
        time_predicate: str,
        times: TimeTerms,
        on_bad: OnBad,
        default_time: int | None = None,
    ) -> None:
        self._buffer = buffer
        self._predicate = iri_text(time_predicate)
        self._times = GraphTimes(file, times, on_bad, self._emit, default_time)

    @property
    def open(self) -> OpenEvent | None:
        return self._times.open

    @property
    def keep(self) -> int:
        return self._buffer.rows if self.open is None else self.open.keep

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
            event.lost |= bool((own.s[first:end] == MALFORMED).any())
            while inside and inside[0] < end:
                event.offer(own.terms[own.o[inside.popleft()]], self._times.times)

    def finish(self, cut: bool) -> None:
        self._times.finish(cut, self._buffer.rows)

    def _emit(self, event: OpenEvent) -> None:
        assert event.time is not None
        self._buffer.close(event.time, event.name, event.first, event.end)


class TripleAssembly:
    """An assembly in which every n triples are an event.

    The time is one of the triples, which `times` read, or a time of arrival, which they give.
    """

    def __init__(
        self,
        buffer: EventBuffer,
        file: str,
        triples_per_event: int,
        time_predicate: str,
        times: TimeTerms | Callable[[], int],
        on_bad: OnBad,
    ) -> None:
        self._buffer = buffer
        self._file = file
        self._n = triples_per_event
        self._predicate = iri_text(time_predicate)
        self._arrival = None if isinstance(times, TimeTerms) else times
        self._times = times if isinstance(times, TimeTerms) else None
        self._on_bad = on_bad
        self.open: OpenEvent | None = None
        self._readable = 0  # well-formed triples of the open event

    @property
    def keep(self) -> int:
        return self._buffer.rows if self.open is None else self.open.keep

    def add(self, block: QuadBlock) -> None:
        base = self._buffer.rows
        own = self._buffer.add(block)
        timed = deque(np.flatnonzero(own.p == self._buffer.code(self._predicate)).tolist())
        readable = np.concatenate(([0], np.cumsum(own.s != MALFORMED))).tolist()
        at = 0
        while at < len(own):
            if self.open is None:
                self.open = OpenEvent("", base + at, base + at, int(own.line[at]))
                self._readable = 0
            end = min(self.open.first + self._n - base, len(own))
            while self._times is not None and timed and timed[0] < end:
                self.open.offer(own.terms[own.o[timed.popleft()]], self._times)
            self.open.end = base + end
            self._readable += readable[end] - readable[at]
            at = end
            if self.open.end - self.open.first == self._n:
                self._close(self.open)

    def _close(self, event: OpenEvent) -> None:
        self.open = None
        if not self._readable:
            return  # all its lines are malformed and reported
        event.lost = self._readable < self._n
        if self._arrival is not None:
            event.time = 0 if event.lost else self._arrival()
        if event.time is None or event.excess is not None or event.lost:
            self._on_bad(event.complaint(self._file))
        else:
            self._buffer.close(event.time, None, event.first, event.end)

    def finish(self, cut: bool) -> None:
        event, self.open = self.open, None
        if event is None or cut:
            return
        left = event.end - event.first
        self._on_bad(left_over(self._file, event.line, left, self._n))
