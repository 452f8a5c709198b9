"""Stage 1 of a followed run on Spark's workers.

Two kinds of row travel to stage 2 (see `bucket_state`). A *pack* has the solutions of one batch for
one query and bucket, as Arrow bytes. A *mark* has a stream's watermark and the name of the batch's
knowledge base; every batch sends it to every bucket, so that time passes everywhere. Queries that
read each other's streams are one group, which has one bucket.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from spaseq.errors import SpaseqError
from spaseq.kb.service_failure import RetryCount
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.records import record
from spaseq.runtime.arrivals.arrived_splits import ArrivedSplit, StreamProgress, read_slice
from spaseq.runtime.arrivals.stream_clock import late_events
from spaseq.runtime.job.group_stage import QueryGroups
from spaseq.runtime.job.job import LateEvent, Stats
from spaseq.runtime.spark.rows.stage_rows import SideRows, buckets, pack, rows
from spaseq.runtime.spark.stages.pattern_stage import Solver
from spaseq.runtime.spark.stages.stored_knowledge import StoredKnowledge
from spaseq.sources.growing import GrowingFiles

PACKED = pa.schema(
    [
        ("query", pa.int32()),  # the first unit of the group's
        ("bucket", pa.int32()),
        ("reader", pa.int32()),  # of a pack: the unit of queries that it is for
        ("stream", pa.int32()),  # of a mark, as the group counts it; -1 for a pack
        ("time", pa.int64()),  # of a mark: the watermark, ms, or NEVER
        ("order", pa.string()),
        ("payload", pa.binary()),  # a pack, or of a mark the name of the knowledge base
    ]
)
PACKED_DDL = (
    "query int, bucket int, reader int, stream int, time bigint, `order` string, payload binary"
)

HELD_ROWS = 100_000
"""A task packs about this many solutions at a time."""

NEVER = -(2**63) + 1
"""The watermark of a stream before its first event."""


@record
class FollowSolve:
    """Stage 1. Each row of its input is a pickled `ArrivedSplit` or `StreamProgress`."""

    groups: QueryGroups
    streams: tuple[GrowingFiles, ...]
    knowledge: StoredKnowledge
    buckets: int  # per query that has a key
    limits: Limits = DEFAULT_LIMITS

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `SPLIT_DDL` to rows of `PACKED`."""
        for batch in batches:
            for data in batch.column("split").to_pylist():
                split = pickle.loads(data)
                if isinstance(split, StreamProgress):
                    yield from self._marks(split)
                else:
                    yield from self._read(split)

    def _read(self, split: ArrivedSplit) -> Iterator[pa.RecordBatch]:
        side = SideRows(PACKED, len(self.streams) + split.number)
        stats, found, repeats = Stats(), list[BadInput | LateEvent](), RetryCount()
        try:
            for packed in self._packs(split, stats, found):
                if found:
                    yield side.batch(found)
                    found.clear()
                yield packed
        except SpaseqError as error:
            yield side.batch([error])
        stats.repeated = repeats.take()
        yield side.batch([*found, stats])

    def _packs(
        self, split: ArrivedSplit, stats: Stats, found: list[BadInput | LateEvent]
    ) -> Iterator[pa.RecordBatch]:
        def on_bad(bad: BadInput) -> None:
            stats.bad += 1
            found.append(bad)

        def in_time() -> Iterator[EventBatch]:
            for piece in split.slices:
                for batch, lateness in read_slice(piece, source.options, split.at, on_bad):
                    late = late_events(batch, lateness)
                    stats.late += len(late)
                    found.extend(late)
                    yield batch.take(np.flatnonzero(lateness == 0)) if late else batch

        source = self.streams[split.stream]
        knowledge = self.knowledge.named(split.knowledge)
        units = self.groups.units
        plans = units.plans
        solver = Solver(units, source.iri, knowledge, stats, on_bad, self.limits)
        held: dict[int, list[SolutionBatch]] = {}
        for unit, solutions in solver.solve(in_time()):
            own = held.setdefault(unit, [])
            own.append(solutions.compact())  # drops the text that was read
            if sum(map(len, own)) >= HELD_ROWS:
                yield from self._packed(plans, unit, held.pop(unit))
        for unit, rest in sorted(held.items()):
            yield from self._packed(plans, unit, rest)

    def _packed(
        self, plans: Mapping[int, QueryPlan], unit: int, held: list[SolutionBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Rows of the held solutions."""
        columns = plans[unit].patterns.columns
        solutions = SolutionBatch.concat(held, columns)
        yield from packed(self.groups, unit, solutions, columns, self.buckets)

    def _marks(self, progress: StreamProgress) -> Iterator[pa.RecordBatch]:
        iri = self.streams[progress.stream].iri
        name = progress.knowledge
        yield from marks(self.groups, iri, progress.watermark, self.buckets, name)
        stats = Stats(watermarks={iri: progress.watermark})
        yield SideRows(PACKED, progress.stream).batch([stats])


def packed(
    groups: QueryGroups,
    unit: int,
    solutions: SolutionBatch,
    columns: SolutionColumns,
    count: int,
) -> Iterator[pa.RecordBatch]:
    """Solutions of a unit as rows of `PACKED`, one per bucket that has any."""
    group = groups.home[unit]
    bucket = buckets(solutions, group.key(groups.units), count)
    for b in np.unique(bucket).tolist():
        mine = solutions.take(np.flatnonzero(bucket == b))
        payload = pack(mine, columns)
        whose = {"query": group.first, "bucket": b, "reader": unit}
        yield rows(PACKED, 1, **whose, stream=-1, time=0, payload=payload)


def marks(
    groups: QueryGroups, iri: str, watermark: int | None, count: int, knowledge: str = ""
) -> Iterator[pa.RecordBatch]:
    """Rows of `PACKED` that carry a stream's watermark to every bucket of the groups that read it.

    Args:
        groups: of all queries of the run.
        iri: the stream.
        watermark: in ms; None before the first event.
        count: buckets of a query with a key.
        knowledge: the name of the knowledge base to use from now on; "" for the present one.
    """
    mark = NEVER if watermark is None else watermark
    for group in groups.every:
        if iri in group.streams:
            n = 1 if group.key(groups.units) is None else count
            stream, bucket = group.streams.index(iri), np.arange(n, dtype=np.int32)
            yield rows(
                PACKED,
                n,
                query=group.first,
                bucket=bucket,
                reader=-1,
                stream=stream,
                time=mark,
                payload=knowledge.encode(),
            )
