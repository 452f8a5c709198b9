"""Column batches that travel between the stages: events in, solutions on.

Terms are N-Triples texts (`<iri>`, `"x"^^<dt>`, `"x"@en`, `_:b`), canonical, so that equality of
text is equality of RDF term; `xsd:string` is written without its datatype, language tags are lower
case. Within a batch a term is an int32 code into `terms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.rdf.columns.term_columns import (
    TextArray,
    text_array,
)


@runtime_checkable
class LazyGraphNames(Protocol):
    """Names of which no strings exist yet."""

    def take(self, events: Indices | Int64s) -> Sequence[str | None]:
        """Some of them."""

    def strings(self, events: Indices) -> TextArray:
        """Some of them, as an Arrow array."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """n consecutive events of one stream, in the order of their arrival; m triples.

    `start` has n + 1 entries: event i owns triples start[i]:start[i+1]. `terms` may be a million
    texts of which no strings exist yet, so nobody goes through all of them; see
    `spaseq.rdf.columns.term_tables`.
    """

    stream: str  # stream IRI
    time: Int64s  # [n] milliseconds since the epoch
    k: Int32s  # [n] second component of the instant
    graph: Sequence[str | None]  # [n] graph IRI (no brackets), or None where the format has none
    start: Int64s  # [n + 1]
    s: Int32s  # [m]
    p: Int32s  # [m]
    o: Int32s  # [m]
    terms: Sequence[str]  # code -> N-Triples text
    skipped: int = 0  # triples that were read but not kept, as nobody asked for their predicates

    def __len__(self) -> int:
        return len(self.time)

    @property
    def triples(self) -> int:
        """How many triples were read."""
        return len(self.s) + self.skipped

    def part(self, first: int, end: int) -> EventBatch:
        """Events first:end, under the same terms; what was skipped counts for the first part."""
        if end - first == len(self):
            return self
        rows = slice(int(self.start[first]), int(self.start[end]))
        return EventBatch(
            self.stream,
            self.time[first:end],
            self.k[first:end],
            self.graph[first:end],
            self.start[first : end + 1] - self.start[first],
            self.s[rows],
            self.p[rows],
            self.o[rows],
            self.terms,
            0 if first else self.skipped,
        )

    def take(self, events: Indices | Int64s) -> EventBatch:
        """The events at the given positions, in that order, under the same terms."""
        sizes = np.diff(self.start)[events]
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.arange(start[-1]) + np.repeat(self.start[events] - start[:-1], sizes)
        graph = self.graph
        return EventBatch(
            self.stream,
            self.time[events],
            self.k[events],
            graph.take(events) if isinstance(graph, LazyGraphNames) else [graph[i] for i in events],
            start,
            self.s[rows],
            self.p[rows],
            self.o[rows],
            self.terms,
        )

    def names(self, events: Indices) -> TextArray:
        """The graph IRIs [m] of some events, null where there is none."""
        if isinstance(self.graph, LazyGraphNames):
            return self.graph.strings(events)
        return text_array([self.graph[i] for i in events.tolist()])
