"""Stage 1 of a followed run on Spark's workers.

Two kinds of row travel to stage 2 (see `bucket_state`). A *pack* has the solutions of one batch for
one query and bucket, as Arrow bytes. A *mark* has a stream's watermark and the name of the batch's
knowledge base; every batch sends it to every bucket, so that time advances everywhere. Queries that
read each other's streams form one group, which has one bucket.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Int64s
from spaseq.connectors.base import by_kind, is_heartbeat
from spaseq.connectors.kafka import TopicRanges
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.logs.messages import MessageColumns, arrived_at
from spaseq.options import FileSourceSettings
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.events.instants import TimeCounts
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.records import record
from spaseq.runtime.arrivals.arrived_batch import (
    ArrivedSplit,
    StreamProgress,
    before_horizon,
    read_slice,
)
from spaseq.runtime.arrivals.stream_clock import (
    Horizon,
    StreamClock,
    event_horizon,
    late_events,
)
from spaseq.runtime.arrivals.tie_numbering import provisional
from spaseq.runtime.arrivals.topics.topic_batch import RangeEnd, RangeEnds, TopicSplit
from spaseq.runtime.job.job import Stats
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.live.heartbeats import take_heartbeats
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.stream_events import StreamEvents, arrival_times
from spaseq.runtime.spark.rows.stage_rows import (
    SIDE,
    TaskReport,
    batches_of,
    by_bucket,
    messages_of,
)
from spaseq.runtime.spark.stages.pattern_stage import Solver
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.sources.broker_stream import BrokerStream
from spaseq.sources.files import GrowingFiles


class TopicEvents:
    """Reads a split. Events of equal time are numbered within their partition.

    Attributes:
        clock: the partition's clock after the messages read so far.
    """

    def __init__(self, split: TopicSplit, source: BrokerStream) -> None:
        self._split, self._source = split, source
        self.clock = StreamClock.of_json(split.clock.as_json())
        self._times: list[Int64s] = []
        self._size = 0

    def judged(self, on_bad: OnBad) -> Iterator[tuple[EventBatch, Int64s]]:
        """The events, each with its lateness (ms, int64[n], 0 if it is not late)."""
        split, name = self._split, self._source.describe()
        if split.dropped is not None:
            first, end = split.dropped
            reason = (
                f"the server has dropped the messages at offsets {first} to {end - 1} of partition "
                f"{split.partition}, which had not been read"
            )
            on_bad(BadInput(name, None, reason))
        topic, events = (
            TopicRanges.at(self._source.url),
            StreamEvents(self._source.options.messages),
        )
        for some in topic.messages(split.partition, split.begin, split.end):
            self._size += int(some.payload.sizes.sum())
            for part in by_kind(arrived_at(some, split.at)):
                if is_heartbeat(part.media_type[0]):
                    self._take_heartbeats(part, on_bad)
                    continue
                for batch in events.read(self._source, part, on_bad):
                    yield self._judged_batch(batch, on_bad)

    def _judged_batch(self, batch: EventBatch, on_bad: OnBad) -> tuple[EventBatch, Int64s]:
        """The events of a batch that are not too far ahead, each with its lateness (ms)."""
        at, horizon, clock = self._split.at, self._horizon(batch), self.clock
        times = arrival_times(batch.time, at, clock.least, horizon, clock.latest)
        name = self._source.describe()
        admitted = before_horizon(batch.with_time(times), horizon, clock, name, on_bad)
        judged, lateness = clock.judge(admitted, at)
        self._times.append(admitted.time[lateness == 0])
        return judged, lateness

    def _take_heartbeats(self, messages: MessageColumns, on_bad: OnBad) -> None:
        """Take messages that are heartbeats."""
        source, split = self._source, self._split
        settings = FileSourceSettings(max_ahead_ms=split.max_ahead_ms)
        stream = LiveStream(source.iri, source, settings)
        take_heartbeats(stream, messages, self.clock, on_bad)

    def _horizon(self, batch: EventBatch) -> Horizon:
        """The horizon of messages."""
        split = self._split
        return event_horizon(self.clock.latest, split.at, batch.time, split.max_ahead_ms)

    def store(self) -> None:
        """Store the present state for the next batch; RunError if it cannot be written."""
        split = self._split
        known = RangeEnd(self.clock, TimeCounts.of_times(self._times), self._size)
        RangeEnds(Path(split.directory)).store(split.topic, split.partition, split.end, known)


class PackedRow(NamedTuple):
    """A row that stage 1 of a followed run yields: a pack, a mark or a side row.

    Attributes:
        query: the first unit of the group.
        bucket: the bucket.
        reader: of a pack: its unit of queries; -1 for a mark.
        stream: as the group counts it.
        partition: of a pack; if it is not 0, its events are not numbered yet.
        time: of a mark: the watermark, ms, or NEVER.
        ties: of a mark: the file that numbers events of further partitions.
        order: of a side row.
        payload: a pack, messages, or the name of a mark's knowledge base.
    """

    query: int
    bucket: int = 0
    reader: int = 0
    stream: int = 0
    partition: int = 0
    time: int = 0
    ties: str = ""
    order: str = ""
    payload: bytes = b""

    @classmethod
    def of_messages(cls, order: str, payload: bytes) -> PackedRow:
        """A side row."""
        return cls(SIDE, order=order, payload=payload)


PACKED = pa.schema(
    [
        *((name, pa.int32()) for name in ("query", "bucket", "reader", "stream", "partition")),
        ("time", pa.int64()),
        ("ties", pa.string()),
        ("order", pa.string()),
        ("payload", pa.binary()),
    ]
)
NEVER = -(2**63) + 1
"""The watermark of a stream before its first event."""


@record
class FollowSolve:
    """Stage 1. Each row of its input is a pickled split or `StreamProgress`."""

    groups: QueryGroups
    streams: tuple[GrowingFiles | BrokerStream, ...]
    knowledge: StoredKnowledge
    buckets: int  # per query that has a key
    limits: Limits = DEFAULT_LIMITS

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `SPLIT_DDL` to rows of `PACKED`."""
        for batch in batches:
            for data in batch.column("split").to_pylist():
                split = pickle.loads(data)
                if isinstance(split, StreamProgress):
                    yield from batches_of(PACKED, self._progress(split))
                else:
                    report = TaskReport(len(self.streams) + split.number, PackedRow.of_messages)
                    yield from batches_of(PACKED, report.rows(self._read(split, report)))

    def _read(
        self, split: ArrivedSplit | TopicSplit, report: TaskReport[PackedRow]
    ) -> Iterator[list[PackedRow]]:
        source = self.streams[split.stream]
        if not isinstance(split, TopicSplit):
            judged = (
                found
                for piece in split.slices
                for found in read_slice(piece, source.options, split.at, report.take)
            )
            yield from self.packs(judged, (source.iri, 0), report, split.knowledge)
            return
        assert isinstance(source, BrokerStream)
        events, origin = TopicEvents(split, source), (source.iri, split.partition)
        yield from self.packs(events.judged(report.take), origin, report, split.knowledge)
        events.store()
        if split.is_only:
            mark = events.clock.watermark
            yield from self._progress(StreamProgress(split.stream, mark, split.knowledge))

    def packs(
        self,
        judged: Iterable[tuple[EventBatch, Int64s]],
        origin: tuple[str, int],
        report: TaskReport[PackedRow],
        knowledge: str = "",
    ) -> Iterator[list[PackedRow]]:
        """The packs of events, many solutions at a time.

        Args:
            judged: the events, each with its lateness (ms, int64[n], 0 if it is not late).
            origin: the stream's IRI, and the partition of its topic; 0 if it has none.
            report: takes late events, bad input and counts.
            knowledge: the name of the knowledge base; "" for the first one.
        """

        def in_time() -> Iterator[EventBatch]:
            for batch, lateness in judged:
                late = late_events(batch, lateness)
                for each in late:
                    report.take(each)
                kept = batch.take(np.flatnonzero(lateness == 0)) if late else batch
                report.stats.filtered += batch.filtered - kept.filtered
                yield kept

        given = provisional(in_time()) if origin[1] else in_time()
        units, known = self.groups.units, self.knowledge.named(knowledge)
        solver = Solver(units, known, report.stats, report.take, self.limits)
        waiting: dict[int, list[SolutionBatch]] = {}

        def together(unit: int) -> list[PackedRow]:
            columns = units.plans[unit].patterns.columns
            solutions = SolutionBatch.concat(waiting.pop(unit), columns)
            return [*packed(self.groups, unit, solutions, self.buckets, origin)]

        for unit, solutions in solver.solve(given):
            waiting_here = waiting.setdefault(unit, [])
            waiting_here.append(solutions.compact())  # drops the text that was read
            if sum(map(len, waiting_here)) >= thresholds.current.packed_rows:
                yield together(unit)
        for unit in sorted(waiting):
            yield together(unit)

    def _progress(self, progress: StreamProgress) -> Iterator[list[PackedRow]]:
        iri, names = self.streams[progress.stream].iri, (progress.knowledge, progress.ties)
        yield self.marks(iri, progress.watermark, progress.stream, names)

    def marks(
        self, iri: str, watermark: int | None, source: int, names: tuple[str, str] = ("", "")
    ) -> list[PackedRow]:
        """A stream's watermark for every bucket of the groups that read it, and as a count.

        Args:
            iri: the stream.
            watermark: in ms; None before the first event.
            source: the number of the count's source.
            names: the name of the new knowledge base, "" for the present one; and of the file that
                numbers ties, "" if there is none.
        """
        mark = NEVER if watermark is None else watermark
        stats = Stats(watermarks={iri: watermark})
        found = [PackedRow.of_messages(*messages_of(source, 0, [stats]))]
        for group in self.groups.every:
            if iri in group.streams:
                stream, payload = group.streams.index(iri), names[0].encode()
                for bucket in range(1 if group.key(self.groups.units) is None else self.buckets):
                    row = PackedRow(group.first, bucket, -1, stream, 0, mark, names[1])
                    found.append(row._replace(payload=payload))
        return found


def packed(
    groups: QueryGroups, unit: int, solutions: SolutionBatch, count: int, origin: tuple[str, int]
) -> Iterator[PackedRow]:
    """Solutions of a unit as packs, one per bucket that has any.

    Args:
        groups: the groups of the run.
        unit: the unit.
        solutions: solutions on events of one stream.
        count: buckets of a query with a key.
        origin: the stream's IRI, and the partition of its topic; 0 if it has none.
    """
    group, (iri, partition) = groups.home[unit], origin
    columns = groups.units.plans[unit].patterns.columns
    for b, mine in by_bucket(solutions, group.key(groups.units), count):
        payload, stream = SolutionCodec(columns).encode(mine), group.streams.index(iri)
        yield PackedRow(group.first, b, unit, stream, partition, payload=payload)
