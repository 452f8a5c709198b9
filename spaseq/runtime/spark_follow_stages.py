"""Stage 1 of a followed run on Spark's workers.

To stage 2 (see `spark_state`) travel packs: the solutions of one batch for one (query, bucket) as
Arrow bytes, and marks: a stream's watermark, sent to every bucket with every batch, so that time
passes everywhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spaseq.errors import SpaseqError
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import BadInput, EventBatch, SolutionBatch, SolutionColumns
from spaseq.rdf.readers import StreamOptions
from spaseq.runtime.job import LateEvent, Stats
from spaseq.runtime.spark_rows import SideRows, buckets, rows
from spaseq.runtime.spark_solve import Solver, StoredKnowledge
from spaseq.runtime.spark_source import ArrivedWork, Standing, read_taken
from spaseq.runtime.stream_clock import late_events

PACKED = pa.schema(
    [
        ("query", pa.int32()),
        ("bucket", pa.int32()),
        ("stream", pa.int32()),  # of a mark, as the plan counts it; -1 for a pack
        ("time", pa.int64()),  # of a mark: the watermark, ms, or NEVER
        ("order", pa.string()),
        ("payload", pa.binary()),
    ]
)
PACKED_DDL = "query int, bucket int, stream int, time bigint, `order` string, payload binary"

NEVER = -(2**63) + 1
"""The watermark of a stream that has had no event yet."""


@dataclass(frozen=True, slots=True)
class FollowSolve:
    """Stage 1: each row of its input is an `ArrivedWork`, or the `Standing` of a stream."""

    plans: tuple[QueryPlan, ...]
    streams: tuple[StreamOptions, ...]
    knowledge: StoredKnowledge
    buckets: int  # per query that has a key

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `WORK_DDL` to rows of `PACKED`."""
        for batch in batches:
            for data in batch.column("work").to_pylist():
                work = pickle.loads(data)
                if isinstance(work, Standing):
                    yield from self._marks(work)
                else:
                    yield from self._work(work)

    def _work(self, work: ArrivedWork) -> Iterator[pa.RecordBatch]:
        side = SideRows(PACKED, len(self.streams) + work.number)
        stats, found = Stats(), list[BadInput | LateEvent]()
        try:
            for packed in self._packs(work, stats, found):
                if found:
                    yield side.batch(found)
                    found.clear()
                yield packed
        except SpaseqError as error:
            yield side.batch([error])
        yield side.batch([*found, stats])

    def _packs(
        self, work: ArrivedWork, stats: Stats, found: list[BadInput | LateEvent]
    ) -> Iterator[pa.RecordBatch]:
        def on_bad(bad: BadInput) -> None:
            stats.bad += 1
            found.append(bad)

        def in_time() -> Iterator[EventBatch]:
            for taken in work.taken:
                for batch, lateness in read_taken(taken, options, work.at, on_bad):
                    late = late_events(batch, lateness)
                    stats.late += len(late)
                    found.extend(late)
                    yield batch.take(np.flatnonzero(lateness == 0)) if late else batch

        options = self.streams[work.stream]
        knowledge = self.knowledge.named(work.knowledge)
        solver = Solver(self.plans, options.iri, knowledge, stats, on_bad)
        for query, solutions in solver.solve(in_time()):
            yield from packed(query, self.plans[query], solutions, self.buckets)

    def _marks(self, standing: Standing) -> Iterator[pa.RecordBatch]:
        iri = self.streams[standing.stream].iri
        yield from marks(self.plans, iri, standing.watermark, self.buckets)
        stats = Stats(watermarks={iri: standing.watermark})
        yield SideRows(PACKED, standing.stream).batch([stats])


def packed(
    query: int, plan: QueryPlan, solutions: SolutionBatch, count: int
) -> Iterator[pa.RecordBatch]:
    """Solutions of a query as rows of `PACKED`, one for each of its buckets that has any."""
    bucket = buckets(solutions, plan.key, count)
    for b in np.unique(bucket).tolist():
        mine = solutions.take(np.flatnonzero(bucket == b))
        payload = pack(mine, plan.columns)
        yield rows(PACKED, 1, query=query, bucket=b, stream=-1, time=0, payload=payload)


def marks(
    plans: Sequence[QueryPlan], iri: str, watermark: int | None, count: int
) -> Iterator[pa.RecordBatch]:
    """A stream's watermark (ms) for every bucket of every query that reads it."""
    mark = NEVER if watermark is None else watermark
    for query, plan in enumerate(plans):
        if iri in plan.streams:
            n = 1 if plan.key is None else count
            stream, bucket = plan.streams.index(iri), np.arange(n, dtype=np.int32)
            yield rows(PACKED, n, query=query, bucket=bucket, stream=stream, time=mark)


def pack(solutions: SolutionBatch, columns: SolutionColumns) -> bytes:
    """Solutions as Arrow bytes."""
    batch = solutions.to_arrow(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(data: bytes, columns: SolutionColumns) -> SolutionBatch:
    """The inverse of `pack`."""
    with pa.ipc.open_stream(data) as reader:
        return SolutionBatch.from_arrow(reader.read_next_batch(), columns)
