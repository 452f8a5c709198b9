"""Events of documents without graphs: every n consecutive triples (docs/lookup.md#formats).

A malformed row keeps its position, so that it damages only its own event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from spaseq.rdf.columns.quad_block import MALFORMED, QuadBlock
from spaseq.rdf.documents.event_buffer import EventBuffer
from spaseq.rdf.events.open_event import OpenEvent, left_over
from spaseq.rdf.events.time_terms import TimeTerms
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.terms.term import iri_text


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
