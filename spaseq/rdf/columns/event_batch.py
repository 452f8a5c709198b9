"""Batches of events in columns.

A term is an int32 code into the batch's `terms`, which are canonical N-Triples texts (`<iri>`,
`"x"^^<dt>`, `"x"@en`, `_:b`): equal texts are equal RDF terms. See `spaseq.rdf.terms.term`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.rdf.columns.event_names import EventNames, GraphNames
from spaseq.records import record


@record
class EventBatch:
    """n consecutive events of one stream, in order of arrival, with m triples.

    Event i has the triples start[i]:start[i + 1]. Do not iterate over `terms`: there may be
    millions, which become strings only on demand (see `spaseq.rdf.columns.term_tables`).
    """

    stream: str  # stream IRI
    time: Int64s  # [n] milliseconds since the epoch
    k: Int32s  # [n] second component of the instant: earlier events of equal time
    graph: GraphNames  # [n] graph IRI (no brackets), or None where the format has none
    start: Int64s  # [n + 1]
    s: Int32s  # [m]
    p: Int32s  # [m]
    o: Int32s  # [m]
    terms: Sequence[str]  # code -> N-Triples text
    skipped: int = 0  # triples that were read but not kept: no query names their predicates
    filtered: int = 0  # rows that were read with these events, and are none by their lift
    skipped_groups: int = 0  # row groups of Parquet that were not read

    def __len__(self) -> int:
        return len(self.time)

    @property
    def triples(self) -> int:
        """How many triples were read."""
        return len(self.s) + self.skipped

    def part(self, first: int, end: int) -> EventBatch:
        """Events first:end with the same term table; the counts are the first part's."""
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
            0 if first else self.filtered,
            0 if first else self.skipped_groups,
        )

    def take(self, events: Indices | Int64s) -> EventBatch:
        """The events at the given positions, in that order, with the same term table."""
        sizes = np.diff(self.start)[events]
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.arange(start[-1]) + np.repeat(self.start[events] - start[:-1], sizes)
        return EventBatch(
            self.stream,
            self.time[events],
            self.k[events],
            self.graph.take(events),
            start,
            self.s[rows],
            self.p[rows],
            self.o[rows],
            self.terms,
        )

    def with_k(self, k: Int32s) -> EventBatch:
        """The same events with other second components of their instants [n]."""
        return replace(self, k=k)

    def with_time(self, time: Int64s) -> EventBatch:
        """The same events at other times [n], ms."""
        return self if time is self.time else replace(self, time=time)

    def names(self, events: Indices) -> EventNames:
        """The graph IRIs [m] of some events."""
        return self.graph.read(events)
