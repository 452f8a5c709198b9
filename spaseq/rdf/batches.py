"""Column batches that travel between the stages: events in, solutions on.

Terms are N-Triples texts (`<iri>`, `"x"^^<dt>`, `"x"@en`, `_:b`), canonical, so that equality of
text is equality of RDF term; `xsd:string` is written without its datatype, language tags are lower
case. Within a batch a term is an int32 code into `terms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Objects = npt.NDArray[np.object_]

UNBOUND = -1
"""The code of an unbound variable."""


@runtime_checkable
class LazyNames(Protocol):
    """Names of which no strings exist yet."""

    def objects(self, events: npt.NDArray[np.intp]) -> Objects:
        """Some of them."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """n consecutive events of one stream, in the order of their arrival; m triples.

    `start` has n + 1 entries: event i owns triples start[i]:start[i+1]. `terms` may be a million
    texts of which no strings exist yet, so nobody goes through all of them; see
    `spaseq.rdf.term_tables`.
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

    def names(self, events: npt.NDArray[np.intp]) -> Objects:
        """The graph IRIs [m] of some events, None where there is none."""
        if isinstance(self.graph, LazyNames):
            return self.graph.objects(events)
        found = np.empty(len(events), dtype=object)
        found[:] = [self.graph[i] for i in events.tolist()]
        return found


@dataclass(frozen=True, slots=True)
class BadInput:
    """Something in the input that could not become an event."""

    file: str
    line: int | None  # from 1; None where the format gives no line
    reason: str
    text: str = ""  # the offending text, cut to a few hundred characters


BARE = -1
"""`gpm` of a row that stands for an event without a solution: its instant alone."""


@dataclass(slots=True)
class SolutionBatch:
    """n rows, each a solution of one GPM on one event (or a bare event), sorted by nothing.

    `stream` and `gpm` are indexes into the plan's lists; `values[v][i]` is the N-Triples text that
    row i binds `?v` to, or None. Only variables that a later stage needs are here.
    """

    stream: Int32s
    time: Int64s
    k: Int32s
    gpm: Int32s
    event: Objects  # graph IRI or None
    values: dict[str, Objects] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def empty(cls, variables: Sequence[str]) -> SolutionBatch:
        """A batch of no rows."""
        none = np.empty(0, dtype=object)
        return cls(
            np.empty(0, np.int32),
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            none,
            dict.fromkeys(variables, none),
        )

    @classmethod
    def concat(cls, batches: Sequence[SolutionBatch], variables: Sequence[str]) -> SolutionBatch:
        """One batch of all rows, in order."""
        if not batches:
            return cls.empty(variables)
        if len(batches) == 1:
            return batches[0]
        return cls(
            np.concatenate([b.stream for b in batches]),
            np.concatenate([b.time for b in batches]),
            np.concatenate([b.k for b in batches]),
            np.concatenate([b.gpm for b in batches]),
            np.concatenate([b.event for b in batches]),
            {v: np.concatenate([b.values[v] for b in batches]) for v in variables},
        )

    def take(self, rows: npt.NDArray[np.intp] | slice) -> SolutionBatch:
        """The rows at the given positions, in that order."""
        return SolutionBatch(
            self.stream[rows],
            self.time[rows],
            self.k[rows],
            self.gpm[rows],
            self.event[rows],
            {v: c[rows] for v, c in self.values.items()},
        )

    @staticmethod
    def schema(variables: Sequence[str]) -> pa.Schema:
        """The Arrow schema of a batch with these variables (columns `v_NAME`)."""
        return pa.schema(
            [
                ("stream", pa.int32()),
                ("time", pa.int64()),
                ("k", pa.int32()),
                ("gpm", pa.int32()),
                ("event", pa.string()),
                *((f"v_{v}", pa.string()) for v in variables),
            ]
        )

    def to_arrow(self, variables: Sequence[str]) -> pa.RecordBatch:
        """The batch as Arrow columns of `schema(variables)`."""
        columns: list[Any] = [self.stream, self.time, self.k, self.gpm]
        arrays = [pa.array(c) for c in columns]
        arrays.append(pa.array(self.event, pa.string()))
        arrays.extend(pa.array(self.values[v], pa.string()) for v in variables)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema(variables))

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch, variables: Sequence[str]) -> SolutionBatch:
        """The inverse of `to_arrow`; further columns are ignored."""

        def ints(name: str) -> Any:
            return batch.column(name).to_numpy(zero_copy_only=False)

        def texts(name: str) -> Objects:
            out = np.empty(batch.num_rows, dtype=object)
            out[:] = batch.column(name).to_pylist()
            return out

        return cls(
            ints("stream"),
            ints("time"),
            ints("k"),
            ints("gpm"),
            texts("event"),
            {v: texts(f"v_{v}") for v in variables},
        )

    def rows(self) -> Iterator[int]:
        """Row numbers in order of instant, then stream, then arrival in the batch."""
        return iter(np.lexsort((self.stream, self.k, self.time)).tolist())
