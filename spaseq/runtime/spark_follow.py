"""The Spark runtime for input that keeps arriving: Structured Streaming, resumed from a checkpoint.

Every micro-batch goes through the two stages of `spark_follow_stages`; its answers and messages
come to the driver, which hands them to the caller, and the batch is committed when the caller has
asked for more. A batch that was not committed is run again by the next run with the same
checkpoint; `checkpoint.OutputPositions` makes output files forget its first attempt.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import InputError, UsageError
from spaseq.rdf.readers import StreamOptions
from spaseq.runtime.arrivals import present_files
from spaseq.runtime.chaining import refuse_chains
from spaseq.runtime.checkpoint import Checkpoint, OutputPositions
from spaseq.runtime.job import Job, Stats
from spaseq.runtime.spark import ship_functions, spark_errors, store_knowledge, take_message
from spaseq.runtime.spark_follow_stages import PACKED_DDL, STATE_DDL, FollowSequence, FollowSolve
from spaseq.runtime.spark_rows import OUTPUT_DDL, Message, payload_of
from spaseq.runtime.spark_session import session
from spaseq.runtime.spark_source import RdfDataSource, source_options
from spaseq.sinks import open_sink

TRIGGER_MS = 200
"""How often the directories are looked at."""

BUCKETS = 8
"""Into how many buckets stage 2 of a query with a key is split; fixed when a checkpoint is made."""

_POLL_SECONDS = 0.2


class BatchOutput(Protocol):
    """Told when the output of a batch begins and ends; see `checkpoint.OutputPositions`."""

    def begin(self, batch: int) -> None: ...

    def end(self, batch: int) -> None: ...


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """How a job is followed.

    `watermark_ms` is how far an event may be behind the greatest time of its stream; `until_done`
    ends the run when all that was there at its start has been worked off.
    """

    checkpoint: Path
    watermark_ms: int = 0
    until_done: bool = False
    trigger_ms: int = TRIGGER_MS


def follow(
    job: Job, options: FollowOptions, *, output: BatchOutput | None = None, spark: Any = None
) -> Generator[tuple[int, Answer]]:
    """Evaluate a job over files that keep arriving in its streams' directories.

    The end of input is never reached: an answer comes when the watermark of every stream of its
    query has passed its end. Closing the iterator stops the run; the batch in hand then counts as
    not done.

    Args:
        job: what to run; `on_bad` and `on_late` are called between `output.begin` and `output.end`.
        output: told of the batches' boundaries.
        spark: the session; the process's own if not given.

    Yields:
        (number of the query, answer), each query's in the order of LANGUAGE section 3.

    Raises:
        UsageError: the checkpoint belongs to something else, or one query reads the stream that
            another registers.
        InputError: a stream's directory does not exist.
        RunError: a limit was exceeded, or Spark failed.
    """
    refuse_chains(job.plans)
    job = replace(job, streams=tuple(_absolute(s) for s in job.streams))
    for stream in job.streams:
        present_files(stream)
    checkpoint = Checkpoint.open(options.checkpoint, job, options.watermark_ms, BUCKETS)
    with spark_errors():
        handover = _Handover()
        query = _start(spark or session(), job, options, checkpoint, handover)
        try:
            yield from _Delivery(job, output).all(_batches(query, handover))
        finally:
            handover.stop()
            query.stop()


def run(
    job: Job,
    *,
    checkpoint: str,
    watermark_ms: int,
    out: str,
    form: str,
    verbose: bool = False,
    sides: dict[str, TextIO] | None = None,
    until_done: bool = False,
) -> None:
    """`follow`, with the answers written to a file or `-`; a resumed run goes on with the file.

    `sides` are further output files, open for appending, that go back with `out` when a batch is
    run again.
    """
    if form == "json":
        raise UsageError("--format json has an end, which --follow has not; use jsonl, csv or tsv")
    options = FollowOptions(Path(checkpoint), watermark_ms, until_done)
    resumed = Checkpoint.open(options.checkpoint, job, watermark_ms, BUCKETS).resumed
    spark = session(verbose=verbose)
    with ExitStack() as stack:
        file = sys.stdout if out == "-" else stack.enter_context(_opened(out, resumed))
        for side in () if resumed else (sides or {}).values():
            side.truncate(0)
        files = {**(sides or {}), **({} if out == "-" else {os.path.abspath(out): file})}
        sink = open_sink(form, file, [p.name for p in job.plans[0].projection])
        if out == "-" or not os.stat(out).st_size:
            sink.open()
        output = OutputPositions(options.checkpoint, files)
        for query, answer in follow(job, options, output=output, spark=spark):
            sink.write(job.plans[query].name, answer)


def _opened(path: str, resumed: bool) -> TextIO:
    try:
        # Appending, so that what follows a cut goes to the new end.
        file = open(path, "a", encoding="utf-8", newline="")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    if not resumed:
        file.truncate(0)
    return file


def _absolute(stream: StreamOptions) -> StreamOptions:
    """The stream with paths that mean the same in every process, and the next time."""
    if "-" in stream.paths:
        raise UsageError(f"stream <{stream.iri}>: standard input cannot be followed")
    return replace(stream, paths=tuple(os.path.abspath(p) for p in stream.paths))


def _start(
    spark: Any, job: Job, options: FollowOptions, checkpoint: Checkpoint, handover: _Handover
) -> Any:
    """The running StreamingQuery."""
    writer = (
        following_output(spark, job, checkpoint, options.watermark_ms)
        .writeStream.foreachBatch(handover.take)
        .option("checkpointLocation", str(checkpoint.spark))
        .outputMode("append")
    )
    if options.until_done:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{options.trigger_ms} milliseconds").start()


def following_output(spark: Any, job: Job, checkpoint: Checkpoint, watermark_ms: int) -> Any:
    """The streaming DataFrame of `OUTPUT` rows: messages, and answers that have become final."""
    ship_functions()
    checkpoint.clocks.mkdir(exist_ok=True)
    knowledge = store_knowledge(spark, job.knowledge, checkpoint.directory)
    solve = FollowSolve(
        job.plans, job.streams, knowledge, checkpoint.buckets, watermark_ms, str(checkpoint.clocks)
    )
    sequence = FollowSequence(job.plans, job.limit_per_event, knowledge)
    spark.dataSource.register(RdfDataSource)
    work = spark.readStream.format("rdf").options(
        **source_options(checkpoint.arrivals, job.streams)
    )
    packed = work.load().mapInArrow(lambda batches: solve.run(batches), PACKED_DDL)
    return packed.groupBy("query", "bucket").applyInPandasWithState(
        lambda key, frames, state: sequence.step(key, frames, state),
        OUTPUT_DDL,
        STATE_DDL,
        "append",
        "NoTimeout",
    )


@dataclass(slots=True)
class _Batch:
    """A micro-batch on its way through the caller."""

    number: int
    items: list[tuple[int, Message | Answer]]  # in order of query, then of answers
    done: threading.Event = field(default_factory=threading.Event)


class _Stopped(Exception):
    """The caller wants no more; the batch in hand is not committed."""


class _Handover:
    """Passes batches from Spark's thread to the caller's; Spark waits until they are done."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
        self._stopped = threading.Event()

    def take(self, frame: Any, number: int) -> None:
        """For `foreachBatch`: returns when the batch may be committed."""
        rows = sorted(frame.collect(), key=lambda row: (row.query, row.order))
        batch = _Batch(number, [(r.query, payload_of(r.query, r.payload)) for r in rows])
        self.waiting.put(batch)
        while not batch.done.wait(_POLL_SECONDS):
            # A caller that ends without closing the iterator must not wait for this thread.
            if self._stopped.is_set() or not threading.main_thread().is_alive():
                raise _Stopped

    def stop(self) -> None:
        """Wait for no more batches."""
        self._stopped.set()


def _batches(query: Any, handover: _Handover) -> Iterator[_Batch | None]:
    """Batches as they come, each committed when the next one is asked for; None while waiting."""
    while True:
        try:
            batch = handover.waiting.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            if not query.isActive:
                break
            yield None
            continue
        yield batch
        batch.done.set()
    error = query.exception()
    if error is not None:
        raise error


@dataclass(slots=True)
class _Delivery:
    """Gives out what batches hold, and keeps the job's counts."""

    job: Job
    output: BatchOutput | None
    _started: float = field(default_factory=time.perf_counter)

    def all(self, batches: Iterator[_Batch | None]) -> Iterator[tuple[int, Answer]]:
        for batch in batches:
            if batch is not None:
                yield from self._one(batch)
            self.job.stats.seconds = time.perf_counter() - self._started
            self.job.on_progress(self.job.stats)

    def _one(self, batch: _Batch) -> Iterator[tuple[int, Answer]]:
        if self.output is not None:
            self.output.begin(batch.number)
        marks: list[int] = []
        for query, item in batch.items:
            if isinstance(item, Answer):
                yield query, item
                continue
            if isinstance(item, Stats) and item.watermark is not None:
                marks.append(item.watermark)
            take_message(self.job, item)
        known = len(marks) == len(self.job.streams)
        self.job.stats.watermark = min(marks) if known else None
        if self.output is not None:
            self.output.end(batch.number)
