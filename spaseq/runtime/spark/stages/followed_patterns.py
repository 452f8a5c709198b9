"""Stage 1 of a followed run on Spark's workers.

Two kinds of row travel to stage 2 (see `bucket_state`). A *pack* has the solutions of one batch for
one query and bucket, as Arrow bytes. A *mark* has a stream's watermark and the name of the batch's
knowledge base; every batch sends it to every bucket, so that time advances everywhere. Queries that
read each other's streams form one group, which has one bucket.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

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
from spaseq.runtime.spark.rows.stage_rows import SideRows, TaskReport, by_bucket, rows
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


PACKED = pa.schema(
    [
        ("query", pa.int32()),  # the first unit of the group
        ("bucket", pa.int32()),
        ("reader", pa.int32()),  # of a pack: its unit of queries; -1 for a mark
        ("stream", pa.int32()),  # as the group counts it
        ("partition", pa.int32()),  # of a pack; if it is not 0, its events are not numbered yet
        ("time", pa.int64()),  # of a mark: the watermark, ms, or NEVER
        ("ties", pa.string()),  # of a mark: the file that numbers events of further partitions
        ("order", pa.string()),
        ("payload", pa.binary()),  # a pack, or the name of a mark's knowledge base
    ]
)
PACKED_DDL = (
    "query int, bucket int, reader int, stream int, partition int, time bigint, ties string,"
    " `order` string, payload binary"
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
                    yield from self._marks(split)
                else:
                    yield from self._read(split)

    def _read(self, split: ArrivedSplit | TopicSplit) -> Iterator[pa.RecordBatch]:
        source, partition = self.streams[split.stream], 0
        events: _ArrivedEvents | TopicEvents
        if isinstance(split, TopicSplit):
            assert isinstance(source, BrokerStream)
            events, partition = TopicEvents(split, source), split.partition
        else:
            events = _ArrivedEvents(split, source)
        report = TaskReport(PACKED, len(self.streams) + split.number)
        yield from report.rows(self._packs(split, events, (source.iri, partition), report))

    def _packs(
        self,
        split: ArrivedSplit | TopicSplit,
        events: _ArrivedEvents | TopicEvents,
        origin: tuple[str, int],
        report: TaskReport,
    ) -> Iterator[pa.RecordBatch]:
        for unit, solutions in self._solved(split, events, report):
            yield from packed(self.groups, unit, solutions, self.buckets, origin)
        if isinstance(events, TopicEvents):
            events.store()
            if isinstance(split, TopicSplit) and split.is_only:
                mark = events.clock.watermark
                yield from self._marks(StreamProgress(split.stream, mark, split.knowledge))

    def _solved(
        self,
        split: ArrivedSplit | TopicSplit,
        events: _ArrivedEvents | TopicEvents,
        report: TaskReport,
    ) -> Iterator[tuple[int, SolutionBatch]]:
        """(unit, solutions) of a split, many solutions at a time."""

        def in_time() -> Iterator[EventBatch]:
            for batch, lateness in events.judged(report.take):
                late = late_events(batch, lateness)
                for each in late:
                    report.take(each)
                yield batch.take(np.flatnonzero(lateness == 0)) if late else batch

        is_first = isinstance(split, ArrivedSplit) or not split.partition
        given = in_time() if is_first else provisional(in_time())
        knowledge = self.knowledge.named(split.knowledge)
        units, iri = self.groups.units, self.streams[split.stream].iri
        solver = Solver(units, iri, knowledge, report.stats, report.take, self.limits)
        waiting: dict[int, list[SolutionBatch]] = {}

        def together(unit: int) -> tuple[int, SolutionBatch]:
            columns = units.plans[unit].patterns.columns
            return unit, SolutionBatch.concat(waiting.pop(unit), columns)

        for unit, solutions in solver.solve(given):
            waiting_here = waiting.setdefault(unit, [])
            waiting_here.append(solutions.compact())  # drops the text that was read
            if sum(map(len, waiting_here)) >= thresholds.current.packed_rows:
                yield together(unit)
        for unit in sorted(waiting):
            yield together(unit)

    def _marks(self, progress: StreamProgress) -> Iterator[pa.RecordBatch]:
        iri = self.streams[progress.stream].iri
        names = progress.knowledge, progress.ties
        yield from marks(self.groups, iri, progress.watermark, self.buckets, names)
        stats = Stats(watermarks={iri: progress.watermark})
        yield SideRows(PACKED, progress.stream).batch([stats])


@record
class _ArrivedEvents:
    """The events of a split of files."""

    split: ArrivedSplit
    source: GrowingFiles | BrokerStream

    def judged(self, on_bad: OnBad) -> Iterator[tuple[EventBatch, Int64s]]:
        """The events, each with its lateness; see `read_slice`."""
        for piece in self.split.slices:
            yield from read_slice(piece, self.source.options, self.split.at, on_bad)


def packed(
    groups: QueryGroups, unit: int, solutions: SolutionBatch, count: int, origin: tuple[str, int]
) -> Iterator[pa.RecordBatch]:
    """Solutions of a unit as rows of `PACKED`, one per bucket that has any.

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
        payload = SolutionCodec(columns).encode(mine)
        whose = {"query": group.first, "bucket": b, "reader": unit}
        origin_columns = {"stream": group.streams.index(iri), "partition": partition}
        yield rows(PACKED, 1, **whose, **origin_columns, time=0, ties="", payload=payload)


def marks(
    groups: QueryGroups,
    iri: str,
    watermark: int | None,
    count: int,
    names: tuple[str, str] = ("", ""),
) -> Iterator[pa.RecordBatch]:
    """Rows of `PACKED` with a stream's watermark, for every bucket of the groups that read it.

    Args:
        groups: the groups of the run.
        iri: the stream.
        watermark: in ms; None before the first event.
        count: buckets of a query with a key.
        names: the name of the new knowledge base, "" for the present one; and of the file that
            numbers ties, "" if there is none.
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
                partition=0,
                time=mark,
                ties=names[1],
                payload=names[0].encode(),
            )
