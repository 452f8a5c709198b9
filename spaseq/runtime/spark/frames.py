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
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from spaseq.errors import InputError, UsageError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.options import FileSourceSettings
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter, TimeCounts
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.rdf.terms.term import Triple
from spaseq.records import record
from spaseq.runtime.arrivals.passing_time import raise_silent
from spaseq.runtime.arrivals.stream_clock import StreamClock, late_events
from spaseq.runtime.job.binding import stream_names
from spaseq.runtime.job.job import Job, LateEvent, ProcessCounts, Stats
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.runtime.spark.lifted_frames import (
    FrameRows,
    LiftedFrame,
    events_of_stored,
    stored_rows,
    task_partition,
)
from spaseq.runtime.spark.rows.stage_rows import PACKS, PACKS_DDL, SideRows, TaskReport
from spaseq.runtime.spark.shared import ship_functions, store_knowledge
from spaseq.runtime.spark.stages.followed_patterns import PACKED, PACKED_DDL, marks, packed
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve, Solver
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge

COLUMNS = ("stream", "time", "k", "event", "graph")
CLOCK_DDL = "delay_ms bigint, latest bigint, times array<bigint>, counts array<bigint>"
CLOCKS_DDL = "clock string, since bigint"

Row: TypeAlias = tuple[str, int | None, int | None, str | None, Any]
"""stream, ms, k, event IRI, N-Triples text; of lifted rows only the stream, and Arrow bytes."""


def frame_solutions(frame: Any, solve: BoundedSolve, time_unit: str = "ms") -> Any:
    """Stage 1 of a bounded run: the DataFrame of solution rows for one of events.

    Integer times count a `time_unit`.
    """
    unit = _integers(frame, time_unit)
    task = FrameSolve(solve, stream_names(solve.units.queries), unit)
    placed = numbered(normalised(frame), frame.sparkSession.sparkContext.defaultParallelism)
    return placed.mapInArrow(lambda batches: task.run(batches), PACKS_DDL)


def frame_packs(
    spark: Any,
    frame: Any | Sequence[LiftedFrame],
    job: Job,
    checkpoint: Checkpoint,
    delay_ms: int,
    idle_ms: int | None = None,
    time_unit: str = "ms",
) -> Any:
    """Stage 1 of a streaming run: the DataFrame of `PACKED` rows.

    `frame` has events, or there are DataFrames of rows with their lifts. Integer times of events
    count a `time_unit`.
    """
    from pyspark.sql import functions as sf

    ship_functions()
    knowledge = store_knowledge(spark, job.knowledge, checkpoint.directory)
    names = stream_names(job.plans)
    groups = QueryGroups.of(checkpoint.units(job.plans))
    lifted = frame if isinstance(frame, Sequence) else ()
    lifts = {each.rows.iri: (each.rows, each.order) for each in lifted}
    matching = FrameMatching(
        groups,
        knowledge,
        checkpoint.buckets,
        names,
        job.options.limits,
        lifts,
        None if lifted else _integers(frame, time_unit),
    )
    rows = reduce(_both, map(stored_rows, lifted)) if lifted else normalised(frame)
    if idle_ms is None:
        clock = FrameClock(matching, delay_ms)
        grouped, time_mode = rows.groupBy("stream"), "none"
    else:
        clock = FrameClocks(matching, delay_ms, idle_ms)
        grouped, time_mode = rows.withColumn("all", sf.lit(0)).groupBy("all"), "processingTime"
    return grouped.transformWithStateInPandas(clock, PACKED_DDL, "append", time_mode)


def _both(one: Any, other: Any) -> Any:
    return one.unionAll(other)


def _integers(frame: Any, time_unit: str) -> str | None:
    """The unit of a DataFrame's integer times; None if its times are timestamps."""
    from pyspark.sql.types import IntegralType

    fields = {f.name: f.dataType for f in frame.schema.fields}
    return time_unit if isinstance(fields.get("time"), IntegralType) else None


def normalised(frame: Any) -> Any:
    """The frame with the columns `COLUMNS`, without rows that are marked late.

    A timestamp becomes milliseconds, an integer stays.

    Raises:
        UsageError: a column is missing, or time is neither a timestamp nor an integer.
    """
    from pyspark.sql import functions as sf
    from pyspark.sql.types import IntegralType, TimestampType

    types = {f.name: f.dataType for f in frame.schema.fields}
    for name in ("stream", "time", "graph"):
        if name not in types:
            raise UsageError(f"a DataFrame of events has a column {name}, with stream, time, graph")
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


def numbered(frame: Any, count: int) -> Any:
    """A normalised bounded frame, sorted so that tasks can number events of equal time."""
    parts = frame.repartition(count, "stream", "time")
    return parts.sortWithinPartitions("stream", "time", "k", "event", "graph")


@record
class FrameSolve:
    """Stage 1 of a bounded run over sorted rows of `COLUMNS`."""

    solve: BoundedSolve
    names: Mapping[str, str]  # IRIs by all names of streams
    time_unit: str | None = None  # of times that are integers

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `COLUMNS` to rows of `PACKS`."""
        report = TaskReport(PACKS, task_partition())
        yield from report.rows(self._packs(batches, report), batches)

    def _packs(
        self, batches: Iterator[pa.RecordBatch], report: TaskReport
    ) -> Iterator[pa.RecordBatch]:
        counters: dict[str, InstantCounter] = {}
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in COLUMNS)
            for iri, rows in _by_stream(zip(*columns, strict=True), self.names).items():
                counter = counters.setdefault(iri, InstantCounter())
                events, bad = _events(iri, rows, counter, self.time_unit)
                for each in bad:
                    report.take(each)
                yield from self.solve.solved(iri, iter([events]), report.stats, report.take)


@record
class FrameMatching:
    """Matches the rows of one stream in one batch of a streaming run."""

    groups: QueryGroups
    knowledge: StoredKnowledge
    buckets: int
    names: Mapping[str, str]  # IRIs by all names of streams
    limits: Limits = DEFAULT_LIMITS
    lifts: Mapping[str, tuple[FrameRows, str | None]] = field(default_factory=dict)  # with orders
    time_unit: str | None = None  # of times that are integers

    @property
    def streams(self) -> list[str]:
        """The IRIs of the streams."""
        return sorted(set(self.names.values()))

    def solved(self, iri: str, given: list[Row], clock: StreamClock) -> Iterator[pa.RecordBatch]:
        """Packs and side rows of a batch's rows, which are sorted by time; advances the clock."""
        stats, number, process = Stats(), self.streams.index(iri), ProcessCounts()
        bad: list[BadInput] = []
        late: list[LateEvent] = []
        has_k = any(row[2] is not None for row in given)

        def in_time() -> Iterator[EventBatch]:
            for events in self._events(iri, given, bad.append):
                judged, lateness = clock.judge(events)
                late.extend(late_events(events, lateness))
                yield (events if has_k else judged).take(np.flatnonzero(lateness == 0))
                stats.filtered += events.filtered

        solver = Solver(self.groups.units, iri, self.knowledge, stats, bad.append, self.limits)
        for unit, solutions in solver.solve(in_time()):
            yield from packed(self.groups, unit, solutions, self.buckets, (iri, 0))
        stats.count_bad(bad)
        stats.late = len(late)
        process.add_to(stats)
        yield SideRows(PACKED, number).batch([*bad, *late, stats])

    def _events(self, iri: str, given: list[Row], on_bad: OnBad) -> Iterator[EventBatch]:
        """The events of rows, in order of time."""
        if iri in self.lifts:
            lift, order = self.lifts[iri]
            yield from events_of_stored(lift, order, [row[4] for row in given], on_bad)
            return
        ordered = sorted(given, key=lambda r: tuple("" if x is None else x for x in r[3:]))
        ordered.sort(key=lambda r: (r[1] or 0, r[2] or 0))
        events, bad = _events(iri, ordered, InstantCounter(), self.time_unit)
        for each in bad:
            on_bad(each)
        yield events

    def marked(self, iri: str, clock: StreamClock) -> Iterator[pa.RecordBatch]:
        """Rows of `PACKED` with the stream's watermark."""
        number = len(self.streams) + self.streams.index(iri)
        yield from marks(self.groups, iri, clock.watermark, self.buckets)
        yield SideRows(PACKED, number).batch([Stats(watermarks={iri: clock.watermark})])


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
        for batch in self.matching.solved(iri, given, clock):
            yield batch.to_pandas()
        for batch in self.matching.marked(iri, clock):
            yield batch.to_pandas()
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
            for batch in self.matching.solved(iri, rows, clock):
                yield batch.to_pandas()
            clocks[iri] = clock, now
        idle = [(clock, now - since >= self.idle_ms) for clock, since in clocks.values()]
        risen = raise_silent(idle, now, now, FileSourceSettings())
        for iri, (clock, since) in clocks.items():
            for batch in self.matching.marked(iri, clock):
                yield batch.to_pandas()
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


def _events(
    iri: str, rows: Sequence[Row], counter: InstantCounter, time_unit: str | None
) -> tuple[EventBatch, list[BadInput]]:
    """The events of one stream's rows, with the rows' k if given, and the bad rows."""
    events: list[tuple[int, str | None, Sequence[Triple]]] = []
    given: list[int | None] = []
    bad: list[BadInput] = []
    times = TimeTerms.of_file(iri, time_unit or "ms", f"<{iri}>", bad.append)
    for _, time, k, event, graph in rows:
        try:
            if time is None:
                raise InputError("event without a timestamp")
            ms = int(time) if time_unit is None else times.given(int(time))
            events.append((ms, event, triples_of(graph)))
            given.append(None if k is None else int(k))
        except (InputError, UsageError) as error:
            bad.append(BadInput(f"<{iri}>", None, str(error), str(graph)[:300]))
    batch = batch_from_events(iri, events, counter)
    own_k = np.array([-1 if k is None else k for k in given], np.int32)
    return batch.with_k(np.where(own_k < 0, batch.k, own_k).astype(np.int32)), bad
