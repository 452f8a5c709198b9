"""Events of document formats with named graphs: TriG and JSON-LD."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np

from spaseq.rdf.columns.quad_block import DEFAULT_GRAPH, MALFORMED, QuadBlock
from spaseq.rdf.documents.event_buffer import EventBuffer
from spaseq.rdf.events.graph_times import GraphTimes
from spaseq.rdf.events.open_event import OpenEvent
from spaseq.rdf.events.time_terms import TimeTerms
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.terms.term import iri_text


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
