"""The two stages of a followed run on Spark's workers.

Between them travel packs: the solutions of one batch for one (query, bucket) as Arrow bytes, and
marks: a stream's watermark, sent to every bucket with every batch, so that time passes everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from spaseq.engine import SequenceStage
from spaseq.errors import InputError, RunError, SpaseqError
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import BadInput, EventBatch, SolutionBatch, SolutionColumns
from spaseq.rdf.blocks import OnBad
from spaseq.rdf.instants import InstantCounter
from spaseq.rdf.readers import ArrivalClock, StreamOptions, read_file, resolve_paths
from spaseq.runtime.arrivals import write_atomically
from spaseq.runtime.job import LateEvent, Stats
from spaseq.runtime.spark_rows import OUTPUT, SIDE, SideRows, answer_rows, buckets, rows
from spaseq.runtime.spark_solve import Solver, StoredKnowledge
from spaseq.runtime.stream_clock import StreamClock

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
STATE_DDL = "snapshot binary"

NEVER = -(2**63)
"""The watermark of a stream that has had no event yet."""


@dataclass(frozen=True, slots=True)
class FollowSolve:
    """Stage 1: each row of its input is a stream and the files to read of it in a batch.

    Where a stream's time stands after a batch is written down beside the checkpoint, for the
    stream's next batch. A batch that is run again writes the same.
    """

    plans: tuple[QueryPlan, ...]
    streams: tuple[StreamOptions, ...]
    knowledge: StoredKnowledge
    buckets: int  # per query that has a key
    delay_ms: int
    clocks: str  # directory

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `WORK_DDL` to rows of `PACKED`."""
        for batch in batches:
            for work in batch.to_pylist():
                yield from self._work(work["batch"], work["stream"], work["at"], work["files"])

    def _work(self, batch: int, number: int, at: int, files: list[str]) -> Iterator[pa.RecordBatch]:
        side = SideRows(PACKED, number)
        stats, found = Stats(), list[BadInput | LateEvent]()
        clock = StreamClock(self.delay_ms)
        try:
            clock = self._clock(batch - 1, number)
            for packed in self._packs(number, at, files, clock, stats, found):
                if found:
                    yield side.batch(found)
                    found.clear()
                yield packed
            yield from self._marks(number, clock)
            self._keep(batch, number, clock)
        except SpaseqError as error:
            yield side.batch([error])
        stats.watermark = clock.watermark
        yield side.batch([*found, stats])

    def _packs(
        self,
        number: int,
        at: int,
        files: Sequence[str],
        clock: StreamClock,
        stats: Stats,
        found: list[BadInput | LateEvent],
    ) -> Iterator[pa.RecordBatch]:
        def on_bad(bad: BadInput) -> None:
            stats.bad += 1
            found.append(bad)

        def on_late(late: list[LateEvent]) -> None:
            stats.late += len(late)
            found.extend(late)

        options = self.streams[number]
        events = _read(options, files, on_bad, ArrivalClock(lambda: at / 1000))
        solver = Solver(self.plans, options.iri, self.knowledge, stats, on_bad)
        for query, solutions in solver.solve(_in_time(events, clock, on_late)):
            yield from self._packed(query, solutions)

    def _packed(self, query: int, solutions: SolutionBatch) -> Iterator[pa.RecordBatch]:
        plan = self.plans[query]
        bucket = buckets(solutions, plan.key, self.buckets)
        for b in np.unique(bucket).tolist():
            mine = solutions.take(np.flatnonzero(bucket == b))
            payload = pack(mine, plan.columns)
            yield rows(PACKED, 1, query=query, bucket=b, stream=-1, time=0, payload=payload)

    def _marks(self, number: int, clock: StreamClock) -> Iterator[pa.RecordBatch]:
        """The stream's watermark for every bucket of every query that reads it."""
        iri = self.streams[number].iri
        mark = NEVER if clock.watermark is None else clock.watermark
        for query, plan in enumerate(self.plans):
            if iri in plan.streams:
                n = 1 if plan.key is None else self.buckets
                stream, bucket = plan.streams.index(iri), np.arange(n, dtype=np.int32)
                yield rows(PACKED, n, query=query, bucket=bucket, stream=stream, time=mark)

    def _clock(self, batch: int, number: int) -> StreamClock:
        if batch == 0:
            return StreamClock(self.delay_ms)
        path = self._clock_path(batch, number)
        try:
            return StreamClock.from_json(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"the checkpoint is damaged: {path}: {error}") from error

    def _keep(self, batch: int, number: int, clock: StreamClock) -> None:
        write_atomically(self._clock_path(batch, number), clock.to_json())
        self._clock_path(batch - 2, number).unlink(missing_ok=True)

    def _clock_path(self, batch: int, number: int) -> Path:
        return Path(self.clocks, f"{batch}-{number}.json")


def _read(
    options: StreamOptions, paths: Sequence[str], on_bad: OnBad, arrival: ArrivalClock
) -> Iterator[EventBatch]:
    """The events of some files; a file that cannot be read is bad input, and the next one is."""
    for path in paths:
        try:
            for file in resolve_paths(replace(options, paths=(path,))):
                yield from read_file(file, options, on_bad, InstantCounter(), arrival)
        except InputError as error:
            on_bad(BadInput(path, None, str(error)))


def _in_time(
    events: Iterator[EventBatch], clock: StreamClock, on_late: Callable[[list[LateEvent]], None]
) -> Iterator[EventBatch]:
    for batch in events:
        admitted, late = clock.admit(batch)
        on_late(late)
        yield admitted


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


@dataclass(frozen=True, slots=True)
class FollowSequence:
    """Stage 2, for `applyInPandasWithState` on groups of (query, bucket).

    The state is the sequence stage's snapshot. A group is called with every batch, because every
    batch brings it the marks of its streams.
    """

    plans: tuple[QueryPlan, ...]
    limit_per_event: int | None = None
    knowledge: StoredKnowledge | None = None

    def step(
        self, key: tuple[int, int], frames: Iterator[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        """One group in one batch: rows of `PACKED` to rows of `OUTPUT`."""
        query, bucket = int(key[0]), int(key[1])
        if query == SIDE:
            yield from (frame[OUTPUT.names] for frame in frames)
            return
        side = SideRows(PACKED, 2**31 + bucket)
        try:
            yield from self._advance(query, frames, state, side)
        except SpaseqError as error:
            yield side.batch([error]).to_pandas()[OUTPUT.names]

    def _advance(
        self, query: int, frames: Iterator[pd.DataFrame], state: Any, side: SideRows
    ) -> Iterator[pd.DataFrame]:
        start = time.perf_counter()
        plan = self.plans[query]
        knowledge = self.knowledge.open() if self.knowledge is not None else None
        bad: list[BadInput] = []
        stage, before = SequenceStage(plan, self.limit_per_event, knowledge, bad.append), b""
        if state.exists:
            (before,) = state.get
            stage.restore(before)
        withheld = stage.withheld
        answers = stage.advance(_take_rows(frames, plan, stage) - 1)
        after = stage.snapshot()
        if after != before:
            state.update((after,))
        if answers:
            yield answer_rows(query, answers).to_pandas()
        stats = Stats(matches=len(answers), withheld=stage.withheld - withheld, bad=len(bad))
        stats.add("sequence", time.perf_counter() - start)
        yield side.batch([*bad, stats]).to_pandas()[OUTPUT.names]


def _take_rows(frames: Iterator[pd.DataFrame], plan: QueryPlan, stage: SequenceStage) -> int:
    """Push the packs of a group; its watermark, ms: the least of its streams'."""
    marks = [NEVER] * len(plan.streams)
    for frame in frames:
        columns = (frame[c].tolist() for c in ("stream", "time", "payload"))
        for stream, mark, payload in zip(*columns, strict=True):
            if stream < 0:
                stage.push(unpack(payload, plan.columns))
            else:
                marks[stream] = max(marks[stream], mark)
    return max(min(marks), NEVER + 1)
