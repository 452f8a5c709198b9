"""The engine of a standing run on Spark: messages from logs in, answers in order out.

The driver judges events and keeps all state; Spark's workers parse, match and sequence. A batch has
the records of the logs at its beginning, so batches grow with the lag. Each has a job for stage 1,
and a job for stage 2 of each level of queries that read each other's streams.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spaseq.algebra.answers import Answer
from spaseq.connectors.base import is_heartbeat
from spaseq.kb.knowledge_versions import TimedChange
from spaseq.logs.messages import MessageColumns
from spaseq.logs.stream_log import Entry
from spaseq.options import StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import ARRIVAL
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_engine import LiveEngine, in_turn
from spaseq.runtime.pushed import Tolerated
from spaseq.runtime.spark.session.failures import spark_errors
from spaseq.runtime.spark.session.spark_session import session
from spaseq.runtime.spark.session.worker_python import worker_python
from spaseq.runtime.spark.shared import ship_functions, store_knowledge
from spaseq.runtime.spark.stages.standing_messages import (
    BatchOutline,
    JudgedEvents,
    ReadPiece,
    SolvedBlock,
    StepResult,
    TaskMessages,
)
from spaseq.runtime.spark.standing.remote_stages import (
    RemotePatterns,
    RemoteSequence,
    SparkStageFactory,
)
from spaseq.runtime.spark.standing.stage_jobs import StageJobs
from spaseq.scratch import ScratchDirectory

LARGE = {"spark.rpc.message.maxSize": "1024", "spark.driver.maxResultSize": "0"}
"""Spark settings for states that travel with the results of tasks."""

_BATCH = 32 * 2**20
"""Maximum bytes of each log in a batch."""

_BLOCK = 2**16, 2**22
"""Minimum and maximum bytes of messages of a task."""


@dataclass(frozen=True, slots=True)
class SparkEngines:
    """Makes engines on Spark; the session starts with the first one.

    Attributes:
        master: a cluster's URL; a local session if not given.
        verbose: show Spark's own messages.
    """

    master: str | None = None
    verbose: bool = False

    def session(self) -> Any:
        """The session. An interrupt goes on to end the run after the batch that is under way."""
        before = signal.getsignal(signal.SIGINT)
        with spark_errors():
            made = session(master=self.master, config=LARGE, verbose=self.verbose)
        if signal.getsignal(signal.SIGINT) is not before:  # PySpark's handler cancels all jobs
            signal.signal(signal.SIGINT, before)
        return made

    def checked(self) -> str:
        """Start the session, and report where it is.

        Raises:
            RunError: it does not start.
            UsageError: its workers cannot run this package.
        """
        spark = self.session()
        with spark_errors(), worker_python(spark):
            return f"Spark {spark.version} at {spark.sparkContext.master}: all is well"

    def __call__(
        self,
        job: Job,
        streams: Sequence[LiveStream],
        limits: StateLimits | None = None,
        tolerated: Tolerated = Tolerated.NONE,
    ) -> StandingEngine:
        return StandingEngine(self.session(), job, streams, limits, tolerated)


class StandingEngine(LiveEngine):
    """A `LiveEngine` whose queries run on the workers of a Spark session."""

    at_once = _BATCH

    def __init__(
        self,
        spark: Any,
        job: Job,
        streams: Sequence[LiveStream],
        limits: StateLimits | None = None,
        tolerated: Tolerated = Tolerated.NONE,
    ) -> None:
        ship_functions()
        self._spark = spark
        self._directory = ScratchDirectory("standing")
        with spark_errors():
            self._stored = store_knowledge(spark, job.knowledge, Path(self._directory.name))
        self._taken: list[tuple[str, Sequence[Entry]]] = []
        self._ahead: deque[tuple[int, int, ReadPiece]] = deque()
        super().__init__(job, streams, limits, tolerated)

    def _evaluation(self) -> SparkStageFactory:
        job = self._job
        self._jobs = StageJobs(self._spark, self._stored, self._options)
        self._jobs.used, self._jobs.report = self._definitions, self._report
        for change in job.graph_changes:
            self._jobs.changes.add(change)
        how = SparkStageFactory(job.knowledge, self._options, job.take_bad, self._jobs)
        self._use_versions(how)
        return how

    def change_graph(self, change: TimedChange) -> None:
        super().change_graph(change)
        self._jobs.changes.add(change)

    def _definitions(self) -> set[int]:
        """The definitions of the units."""
        numbers = set()
        for unit in self.queries.running:
            numbers |= {t.number for t in unit.tables() if isinstance(t, RemotePatterns)}
            if isinstance(unit.sequence, RemoteSequence):
                numbers |= unit.sequence.definitions
        return numbers

    def _report(self, result: StepResult) -> None:
        for bad in result.bad:
            self._job.take_bad(bad)
        if result.stats is not None:
            self._job.stats.add_task(result.stats)

    def clocks(self) -> dict[tuple[str, int], StreamClock]:
        self._jobs.check()
        return super().clocks()

    def snapshot(self) -> list[Any]:
        self._jobs.check()
        return super().snapshot()

    # --- a batch ----------------------------------------------------------------------------------

    def take(self, iri: str, entries: Sequence[Entry]) -> None:
        self._taken.append((iri, entries))

    def advance(self) -> list[tuple[QueryPlan, Answer]]:
        self._jobs.check()
        taken, self._taken = self._taken, []
        blocks = [*self._blocks(taken)]
        solved = self._jobs.solved(blocks)
        self._judge(taken, blocks, solved)
        self._hand_on(blocks, solved)
        answers = super().advance()
        self._jobs.judged.clear()
        sequences = (unit.sequence for unit in self.queries.running)
        logged = [s.since for s in sequences if isinstance(s, RemoteSequence)]
        self._jobs.settled = min([*self.marks().values(), *logged])
        self._jobs.check()
        return answers

    def _blocks(self, taken: Sequence[tuple[str, Sequence[Entry]]]) -> Iterator[TaskMessages]:
        """The messages in blocks, in order."""
        total = sum(_size(entry) for _, entries in taken for entry in entries)
        least, most = _BLOCK
        size = min(max(total // (2 * self._jobs.buckets), least), most)
        for iri, entries in taken:
            readers = [
                unit.sequence.reader(unit.tables())
                for unit in self.queries.running.readers(iri)
                if isinstance(unit.sequence, RemoteSequence)
            ]
            whole = TaskMessages(self._sources[iri], (), tuple(readers))
            for pieces in _cut(entries, size):
                yield replace(whole, pieces=pieces)

    def _judge(
        self,
        taken: Sequence[tuple[str, Sequence[Entry]]],
        blocks: Sequence[TaskMessages],
        solved: Sequence[SolvedBlock],
    ) -> None:
        """Find the events that count, and number them."""
        for number, block in enumerate(solved):
            first = 0
            for piece in block.pieces:
                self._ahead.append((number, first, piece))
                first += sum(len(batch.time) for batch in piece.batches)
            k = np.full(first, -1, np.int32)
            has_time = blocks[number].source.options.messages.time != ARRIVAL
            time = None if has_time else np.empty(first, np.int64)
            self._jobs.judged[number] = JudgedEvents(k, time)
            self._job.stats.add("graph patterns", block.seconds)
        for iri, entries in taken:
            super().take(iri, entries)

    def _read_events(self, iri: str, messages: MessageColumns) -> Iterator[EventBatch]:
        def read() -> Iterator[EventBatch]:
            left = len(messages)
            while left:
                block, first, piece = self._ahead.popleft()
                left -= piece.messages
                for bad in piece.bad:
                    self._job.take_bad(bad)
                for batch in piece.batches:
                    yield _stand_in(iri, batch, block, first)
                    first += len(batch.time)

        return self._events[iri].kept(read(), int(messages.arrival[0]))

    def _match_all(self, batches: Iterable[EventBatch]) -> None:
        """Record which events count; workers have matched them."""
        for batch in filter(len, batches):
            events = self._jobs.judged[int(batch.p[0])]
            events.k[batch.s] = batch.k
            if events.time is not None:
                events.time[batch.s] = batch.time

    def _hand_on(self, blocks: Sequence[TaskMessages], solved: Sequence[SolvedBlock]) -> None:
        """Pass the solutions to the remaining units."""
        units = {
            unit.sequence.number: unit
            for unit in self.queries.running
            if isinstance(unit.sequence, RemoteSequence)
        }
        failures = dict[int, Exception]()
        packs = [(number, pack) for number, block in enumerate(solved) for pack in block.packs]
        for number, again in self._again(blocks, solved):
            failures = {**again.failures, **failures}
            packs += [(number, pack) for pack in again.packs]
        for unit, error in failures.items():
            self.queries.leave_out(units[unit], error)
        for number, (unit, bucket, data) in packs:
            stage = units[unit].sequence
            if unit not in failures and isinstance(stage, RemoteSequence):
                stage.take(bucket, number, data)

    def _again(
        self, blocks: Sequence[TaskMessages], solved: Sequence[SolvedBlock]
    ) -> Iterator[tuple[int, SolvedBlock]]:
        """Match failed units again, without the events that do not count: they may be the cause."""
        for number, (block, solved_block) in enumerate(zip(blocks, solved, strict=True)):
            if not solved_block.failures:
                continue
            counted = self._jobs.judged[number].k >= 0
            readers = tuple(r for r in block.readers if r.unit in solved_block.failures)
            if counted.all():
                yield number, solved_block._replace(packs=[])
            else:
                without = replace(block, readers=readers, counted=counted)
                yield number, self._jobs.solved([without])[0]


def _stand_in(iri: str, batch: BatchOutline, block: int, first: int) -> EventBatch:
    """A batch that is judged in place of the workers' batch.

    Each event has one triple. Its subject is the number of the event in the block, from the given
    number on, and its predicate the number of the block.
    """
    n = len(batch.time)
    numbers = np.arange(first, first + n, dtype=np.int32)
    block_numbers, none = np.full(n, block, np.int32), np.zeros(n, np.int32)
    starts = np.arange(n + 1, dtype=np.int64)
    further = batch.triples - n, batch.filtered
    triples = numbers, block_numbers, none
    return EventBatch(iri, batch.time, none, batch.names, starts, *triples, (), *further)


def _size(entry: Entry) -> int:
    return int(entry.payload.sizes.sum()) if isinstance(entry, MessageColumns) else 0


def _cut(entries: Sequence[Entry], size: int) -> Iterator[tuple[MessageColumns, ...]]:
    """Messages in blocks of about some bytes; the messages of a piece arrived together."""
    pieces: list[MessageColumns] = []
    bytes_so_far = 0
    for run in in_turn(entries):
        if not isinstance(run, MessageColumns) or is_heartbeat(run.media_type[0]):
            continue
        ends = bytes_so_far + np.cumsum(run.payload.sizes)
        for piece in run.split(np.flatnonzero(np.diff(ends // size)) + 1):
            bytes_so_far += _size(piece)
            pieces.append(piece.apart())
            if bytes_so_far >= size:
                yield tuple(pieces)
                pieces, bytes_so_far = [], 0
    if pieces:
        yield tuple(pieces)
