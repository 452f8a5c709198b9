"""Stage 1 over a DataFrame of events: columns stream, time, graph, and optionally event and k.

A bounded frame is sorted by (stream, time, k, event, graph), so that tasks can number events of
equal time. A streaming frame is grouped by stream; each group keeps the stream's clock. If idle
streams must not hold back the others, one group keeps the clocks of all streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from spaseq.compiled.arrays import Int64s
from spaseq.errors import InputError, UsageError
from spaseq.options import FileSourceSettings
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter, TimeCounts
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.rdf.terms.term import Triple
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import InputSplit
from spaseq.runtime.arrivals.passing_time import raise_silent
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.job.binding import stream_names
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.runtime.spark.lifted_frames import FrameRows, LiftedFrame
from spaseq.runtime.spark.rows.stage_rows import (
    PACKS,
    Pack,
    TaskReport,
    batch_of,
    batches_of,
    struct_of,
)
from spaseq.runtime.spark.shared import ship_functions, store_knowledge
from spaseq.runtime.spark.stages.followed_patterns import (
    PACKED,
    FollowSolve,
    PackedRow,
)
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve
from spaseq.sources.base import SplitNumbering

COLUMNS = ("stream", "time", "k", "event", "graph")
CLOCK_DDL = "delay_ms bigint, latest bigint, times array<bigint>, counts array<bigint>"
CLOCKS_DDL = "clock string, since bigint"

Row: TypeAlias = tuple[str, int | None, int | None, str | None, Any]
"""stream, ms, k, event IRI, N-Triples text; of lifted rows only the stream, and Arrow bytes."""


_MOST_PARTITIONS = 1 << 20


def frame_solutions(given: EventFrame | LiftedFrame, solve: BoundedSolve, stream: int) -> Any:
    """Stage 1 of a bounded run over a DataFrame: the DataFrame of `PACKS` rows.

    `stream` is a number that no other input of the run has.
    """
    task = FrameTask(solve, given.rows, stream, given.numbering)
    return given.placed(solve.kernels).mapInArrow(
        lambda batches: task.run(batches), struct_of(PACKS)
    )


@record
class FrameTask:
    """Stage 1 of a bounded run over the partitions of a DataFrame; `rows` makes events of them."""

    solve: BoundedSolve
    rows: WrittenEvents | FrameRows
    stream: int
    numbering: SplitNumbering

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: the rows of a partition to rows of `PACKS`."""
        self.solve.kernels.take()
        context = TaskContext.get()
        partition = context.partitionId() if context else 0
        number = (self.stream + 1) * _MOST_PARTITIONS + partition
        split = InputSplit(number, self.stream, None, self.numbering, follows=True, precedes=True)
        report = TaskReport(number, Pack.of_messages)
        packs = self.solve.packs(
            split, lambda on_bad: self.rows.events(batches, on_bad, partition), report
        )
        yield from batches_of(PACKS, report.rows(packs, batches))
        for _ in batches:  # read to the end after an error, as Spark expects
            pass


@record
class WrittenEvents:
    """Makes events of rows of `COLUMNS`.

    Attributes:
        names: IRIs by all names of streams.
        time_unit: of times that are integers.
    """

    names: Mapping[str, str]
    time_unit: str | None = None

    def events(
        self, batches: Iterator[pa.RecordBatch], on_bad: OnBad, number_from: object
    ) -> Iterator[EventBatch]:
        """The events of sorted rows."""
        counters: dict[str, InstantCounter] = {}
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in COLUMNS)
            for iri, rows in _by_stream(zip(*columns, strict=True), self.names).items():
                yield self._batch(iri, rows, counters.setdefault(iri, InstantCounter()), on_bad)

    def in_time(self, iri: str, given: Sequence[Row], on_bad: OnBad) -> Iterator[EventBatch]:
        """The events of one stream's rows, in order of time."""
        ordered = sorted(given, key=lambda r: tuple("" if x is None else x for x in r[3:]))
        ordered.sort(key=lambda r: (r[1] or 0, r[2] or 0))
        yield self._batch(iri, ordered, InstantCounter(), on_bad)

    def _batch(
        self, iri: str, rows: Sequence[Row], counter: InstantCounter, on_bad: OnBad
    ) -> EventBatch:
        """The events of one stream's rows, with the rows' k if given."""
        events: list[tuple[int, str | None, Sequence[Triple]]] = []
        given: list[int | None] = []
        unit = self.time_unit
        times = TimeTerms.of_file(iri, unit or "ms", f"<{iri}>", on_bad)
        for _, time, k, event, graph in rows:
            try:
                if time is None:
                    raise InputError("event without a timestamp")
                ms = int(time) if unit is None else times.given(int(time))
                events.append((ms, event, triples_of(graph)))
                given.append(None if k is None else int(k))
            except (InputError, UsageError) as error:
                on_bad(BadInput(f"<{iri}>", None, str(error), str(graph)[:300]))
        batch = batch_from_events(iri, events, counter)
        own_k = np.array([-1 if k is None else k for k in given], np.int32)
        return batch.with_k(np.where(own_k < 0, batch.k, own_k).astype(np.int32))


@dataclass(frozen=True, slots=True)
class EventFrame:
    """A DataFrame with an event in each row; integer times count a `time_unit`."""

    frame: Any
    rows: WrittenEvents

    numbering: ClassVar[SplitNumbering] = SplitNumbering.WHOLE

    @classmethod
    def of(cls, frame: Any, plans: Sequence[QueryPlan], time_unit: str) -> EventFrame:
        """The events of a DataFrame, by the streams of queries."""
        from pyspark.sql.types import IntegralType

        fields = {f.name: f.dataType for f in frame.schema.fields}
        unit = time_unit if isinstance(fields.get("time"), IntegralType) else None
        return cls(frame, WrittenEvents(stream_names(plans), unit))

    def stored(self) -> Any:
        """The DataFrame with the columns `COLUMNS`, without rows that are marked late.

        A timestamp becomes milliseconds, an integer stays.

        Raises:
            UsageError: a column is missing, or time is neither a timestamp nor an integer.
        """
        from pyspark.sql import functions as sf
        from pyspark.sql.types import IntegralType, TimestampType

        frame, types = self.frame, {f.name: f.dataType for f in self.frame.schema.fields}
        for name in ("stream", "time", "graph"):
            if name not in types:
                raise UsageError(
                    f"a DataFrame of events has a column {name}, with stream, time, graph"
                )
        if "late_ms" in types:
            frame = frame.where(sf.col("late_ms").isNull())
        if isinstance(types["time"], TimestampType):
            time = sf.unix_millis("time")
        elif isinstance(types["time"], IntegralType):
            time = sf.col("time").cast("bigint")
        else:
            raise UsageError("the column time is a timestamp, or an integer")
        optional = {"k": "int", "event": "string"}
        given = {n: sf.col(n) if n in types else sf.lit(None) for n in optional}
        return frame.select(
            "stream",
            time.alias("time"),
            *(given[n].cast(kind).alias(n) for n, kind in optional.items()),
            "graph",
        )

    def placed(self, kernels: object) -> Any:
        """The DataFrame for `WrittenEvents.events`: rows of equal time stand together, in order."""
        count = self.frame.sparkSession.sparkContext.defaultParallelism
        parts = self.stored().repartition(count, "stream", "time")
        return parts.sortWithinPartitions("stream", "time", "k", "event", "graph")


def frame_packs(
    spark: Any,
    frames: Sequence[EventFrame | LiftedFrame],
    job: Job,
    checkpoint: Checkpoint,
    arrivals: FileSourceSettings,
) -> Any:
    """Stage 1 of a streaming run: the DataFrame of `PACKED` rows."""
    from pyspark.sql import functions as sf

    ship_functions()
    names = stream_names(job.plans)
    makers: dict[str, WrittenEvents | FrameRows] = {}
    for each in frames:
        streams = [each.rows.iri] if isinstance(each, LiftedFrame) else names.values()
        makers |= dict.fromkeys(streams, each.rows)
    rows = reduce(lambda one, other: one.unionAll(other), (each.stored() for each in frames))
    groups = QueryGroups.of(checkpoint.units(job.plans))
    knowledge = store_knowledge(spark, job.knowledge, checkpoint.directory)
    solve = FollowSolve(groups, (), knowledge, checkpoint.buckets, job.options.limits)
    matching = FrameMatching(solve, names, makers)
    delay_ms, idle_ms = arrivals.delay_ms, arrivals.idle_ms
    if idle_ms is None:
        clock = FrameClock(matching, delay_ms)
        grouped, time_mode = rows.groupBy("stream"), "none"
    else:
        clock = FrameClocks(matching, delay_ms, idle_ms)
        grouped, time_mode = rows.withColumn("all", sf.lit(0)).groupBy("all"), "processingTime"
    return grouped.transformWithStateInPandas(clock, struct_of(PACKED), "append", time_mode)


@record
class FrameMatching:
    """Matches the rows of one stream in one batch of a streaming run.

    Attributes:
        solve: stage 1.
        names: IRIs by all names of streams.
        makers: of events, by IRI.
    """

    solve: FollowSolve
    names: Mapping[str, str]
    makers: Mapping[str, WrittenEvents | FrameRows]

    @property
    def streams(self) -> list[str]:
        """The IRIs of the streams."""
        return sorted(set(self.names.values()))

    def solved(self, iri: str, given: list[Row], clock: StreamClock) -> Iterator[pd.DataFrame]:
        """Packs and side rows of a batch's rows, which are sorted by time; advances the clock."""
        report = TaskReport(self.streams.index(iri), PackedRow.of_messages)
        has_k = any(row[2] is not None for row in given)

        def judged() -> Iterator[tuple[EventBatch, Int64s]]:
            for events in self.makers[iri].in_time(iri, given, report.take):
                numbered, lateness = clock.judge(events)
                yield (events if has_k else numbered), lateness

        packs = self.solve.packs(judged(), (iri, 0), report)
        return (batch.to_pandas() for batch in batches_of(PACKED, report.rows(packs)))

    def marked(self, iri: str, clock: StreamClock) -> pd.DataFrame:
        """Rows of `PACKED` with the stream's watermark."""
        number = len(self.streams) + self.streams.index(iri)
        return batch_of(PACKED, self.solve.marks(iri, clock.watermark, number)).to_pandas()


@dataclass(slots=True)
class FrameClock(StatefulProcessor):  # type: ignore[misc]
    """Stage 1 of a streaming run, for groups by stream: rows of `COLUMNS` to rows of `PACKED`."""

    matching: FrameMatching
    delay_ms: int
    _clock: Any = field(default=None, init=False)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._clock = handle.getValueState("clock", CLOCK_DDL)

    def handleInputRows(
        self, key: tuple[str], rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        iri = self.matching.names.get(key[0])
        if iri is None:
            return
        given = [row for frame in rows for row in _rows(frame)]
        clock = self._stored()
        yield from self.matching.solved(iri, given, clock)
        yield self.matching.marked(iri, clock)
        times, counts = clock.counts.times.tolist(), clock.counts.counts.tolist()
        self._clock.update((clock.delay_ms, clock.latest, times, counts))

    def _stored(self) -> StreamClock:
        known = self._clock.get() if self._clock.exists() else None
        if known is None:
            return StreamClock(self.delay_ms)
        _, latest, times, counts = known
        return StreamClock(
            self.delay_ms, latest, TimeCounts.of_pairs(zip(times, counts, strict=True))
        )


@dataclass(slots=True)
class FrameClocks(StatefulProcessor):  # type: ignore[misc]
    """As `FrameClock`, for one group of all streams: idle streams do not hold back the others.

    A stream is idle if it has had no row for `idle_ms` of Spark's processing time. A timer raises
    its watermark if no stream has new rows.
    """

    matching: FrameMatching
    delay_ms: int
    idle_ms: int
    _handle: Any = field(default=None, init=False)
    _clocks: Any = field(default=None, init=False)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._clocks = handle.getMapState("clocks", "stream string", CLOCKS_DDL)

    def handleInputRows(
        self, key: tuple[int], rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        given = (row for frame in rows for row in _rows(frame))
        yield from self._advance(_by_stream(given, self.matching.names), timerValues)

    def handleExpiredTimer(
        self, key: tuple[int], timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        yield from self._advance({}, timerValues)

    def _advance(self, given: Mapping[str, list[Row]], timer: Any) -> Iterator[pd.DataFrame]:
        now = timer.getCurrentProcessingTimeInMs()
        clocks = {iri: self._stored(iri, now) for iri in self.matching.streams}
        for iri, rows in given.items():
            clock, _ = clocks[iri]
            yield from self.matching.solved(iri, rows, clock)
            clocks[iri] = clock, now
        idle = [(clock, now - since >= self.idle_ms) for clock, since in clocks.values()]
        risen = raise_silent(idle, now, now, FileSourceSettings())
        for iri, (clock, since) in clocks.items():
            yield self.matching.marked(iri, clock)
            self._clocks.updateValue((iri,), (json.dumps(clock.as_json()), since))
        if given or risen:
            waits = {since + self.idle_ms for _, since in clocks.values()}
            for end in waits - set(self._handle.listTimers()):
                if end > now:
                    self._handle.registerTimer(end)

    def _stored(self, iri: str, now: int) -> tuple[StreamClock, int]:
        """A stream's clock, and the time of its last row (ms of processing time)."""
        known = self._clocks.getValue((iri,))
        if known is None:
            return StreamClock(self.delay_ms), now
        clock, since = known
        return StreamClock.of_json(json.loads(clock)), since


def _rows(frame: pd.DataFrame) -> Iterator[Row]:
    columns = (frame[name].astype(object).where(frame[name].notna(), None) for name in COLUMNS)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _by_stream(rows: Iterator[Any], names: Mapping[str, str]) -> dict[str, list[Row]]:
    """The rows by stream, in order; rows of unknown streams are left out."""
    by_stream: dict[str, list[Row]] = {}
    for row in rows:
        iri = names.get(row[0])
        if iri is not None:
            by_stream.setdefault(iri, []).append(row)
    return by_stream
