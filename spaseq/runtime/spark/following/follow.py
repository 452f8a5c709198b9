"""The Spark runtime for arriving files and topics: Structured Streaming, which resumes.

Every micro-batch goes through the two stages (`stages.followed_patterns`, `stages.bucket_state`).
Its answers and messages come to the driver, which passes them to the caller. The batch is committed
when the caller requests more. The next run with the same checkpoint repeats a batch that was not
committed, and `checkpoint.OutputPositions` removes the output of its first attempt.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import repeat
from typing import Any, Protocol, TextIO

from spaseq.algebra.answers import Answer
from spaseq.automaton.program.window import Counted
from spaseq.connectors import is_sink
from spaseq.connectors.address import Address
from spaseq.connectors.kafka import TopicRanges
from spaseq.errors import RunError, SpaseqError, UsageError
from spaseq.options import FileSourceSettings, FollowOptions, RuntimeOptions, StateLimits
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.log_depth import depths
from spaseq.runtime.job.interrupts import until_interrupted
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.connectors.followed_source import Followed, FollowedSource
from spaseq.runtime.spark.connectors.rdf_source import FollowedFiles
from spaseq.runtime.spark.connectors.topic_source import FollowedTopics
from spaseq.runtime.spark.following.checkpoint import Checkpoint, OutputPositions
from spaseq.runtime.spark.following.handover import Batch, Handover, batches
from spaseq.runtime.spark.following.kb_refresh import Refresh
from spaseq.runtime.spark.following.logged_output import LoggedOutput, until_failure
from spaseq.runtime.spark.rows.stage_rows import OUTPUT, Item, struct_of
from spaseq.runtime.spark.session.failures import SPARK_FAILED, spark_errors
from spaseq.runtime.spark.session.spark_session import session
from spaseq.runtime.spark.session.worker_python import (
    LIKE_DATAFRAMES,
    start_workers,
    worker_python,
    worker_variables,
)
from spaseq.runtime.spark.shared import answers_in, ship_functions, store_knowledge
from spaseq.runtime.spark.stages.bucket_state import TOPICS, Buckets
from spaseq.runtime.spark.stages.followed_patterns import PACKED, FollowSolve
from spaseq.runtime.spark.stages.processor import FollowSequence
from spaseq.sinks import SINKS, begins_now, open_sink
from spaseq.sinks.base import open_lines, standard_lines
from spaseq.sources.broker_stream import BrokerStream
from spaseq.sources.files import GrowingFiles
from spaseq.windows.window_runs import longest_wait

STATE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Spark settings with which a batch writes only its changes to the state store."""

_SECOND_STAGE = {"SPASEQ_STAGE": "2"}
"""The environment variable that marks the workers of stage 2."""


class BatchOutput(Protocol):
    """Callbacks at the beginning and end of the output of a batch; see
    `checkpoint.OutputPositions`.
    """

    def begin(self, batch: int) -> None: ...

    def end(self, batch: int) -> None: ...


def follow(
    job: Job,
    options: FollowOptions,
    *,
    output: BatchOutput | None = None,
    spark: Any = None,
    stop: threading.Event | None = None,
) -> Generator[tuple[int, Answer]]:
    """Evaluate a job over files that keep arriving in its streams' directories.

    The input has no end: an answer comes when the watermark of every stream of its query has passed
    its end. Closing the iterator stops the run; the present batch is then not committed.

    Args:
        job: the job; `on_bad` and `on_late` are called between `output.begin` and `output.end`.
        output: called at the beginning and end of each batch.
        spark: the session; the process's own if not given.
        stop: once set, the run ends after the present batch.

    Yields:
        (number of the query, answer), each query's in order (docs/meaning.md#order-of-answers).

    Raises:
        UsageError: the checkpoint belongs to another job, or a stream has an end.
        InputError: a stream's directory does not exist.
        RunError: a limit is exceeded, or Spark fails.
    """
    job = replace(job, streams=followed_streams(job))
    _check(job, options)
    checkpoint = Checkpoint.open(
        options.checkpoint, job, options.arrivals.delay_ms, options.buckets, makes_anew=True
    )
    with ExitStack() as stack, _naming(checkpoint), spark_errors():
        stack.callback(checkpoint.release)
        checkpoint.offset_checks.check()
        if checkpoint.lacks_state:
            job.on_note("the state is rebuilt from the log of files; then the run goes on")
        handover = Handover(checkpoint)
        spark = spark or session()
        stack.enter_context(telling(job.on_note, handover.doing))
        with worker_python(spark):
            handover.query = query = _start(spark, job, options, checkpoint, handover)
        try:
            refresh = Refresh(spark, job, checkpoint)
            yield from _Delivery(job, output, query, refresh).all(
                batches(query, handover, stop or threading.Event())
            )
        finally:
            handover.stop()
            query.stop()


def run(
    job: Job,
    options: FollowOptions,
    *,
    out: str,
    form: str,
    columns: Sequence[str] | None = None,
    sides: dict[str, TextIO] | None = None,
    runtime: RuntimeOptions | None = None,
) -> None:
    """Follow a job and write its answers to a file, `-` or a sink; a resumed run continues.

    An interrupt (SIGINT) or SIGTERM ends the run after the present batch. `columns` are the columns
    of a table, all variables if None. `sides` are further output files, open for appending, which
    are cut with `out` when a batch is run again.
    """
    runtime = runtime or RuntimeOptions()
    if form in SINKS and SINKS[form].ends:
        endless = ", ".join(name for name, sink in SINKS.items() if not sink.ends)
        raise UsageError(f"--format {form} has an end, which --follow has not; use {endless}")
    delay_ms = options.arrivals.delay_ms
    checkpoint = Checkpoint.open(
        options.checkpoint, job, delay_ms, options.buckets, makes_anew=True
    )
    resumed = checkpoint.resumed
    if columns is None:
        columns = [item.name for item in job.plans[0].answers.projection]
    with ExitStack() as stack:
        stack.callback(checkpoint.release)
        with telling(job.on_note, lambda: "Spark is starting"):
            spark = session(master=runtime.master, verbose=runtime.verbose)
        for side in () if resumed else (sides or {}).values():
            side.truncate(0)
        output: LoggedOutput | _FileOutput
        if is_sink(out):
            output = LoggedOutput(options.checkpoint, out, form, sides or {}, job.on_note)
        else:
            output = _FileOutput(checkpoint, out, form, columns, sides or {})
        stack.push(output.__exit__)
        stop = stack.enter_context(until_interrupted())
        for query, answer in follow(job, options, output=output, spark=spark, stop=stop):
            output.write(job.plans[query], answer)


class _FileOutput(OutputPositions):
    """The answers of a followed run on their way to a file."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        out: str,
        form: str,
        columns: Sequence[str],
        sides: Mapping[str, TextIO],
    ) -> None:
        resumed = checkpoint.resumed
        begins = out == "-" or not resumed or begins_now(out, form, columns)
        self._lines = standard_lines() if out == "-" else _opened(out, resumed)
        self._file = file = self._lines.__enter__()
        super().__init__(
            checkpoint.directory, {**sides, **({} if out == "-" else {os.path.abspath(out): file})}
        )
        self._sink = open_sink(form, file, columns)
        if begins:
            self._sink.open()

    def write(self, plan: QueryPlan, answer: Answer) -> None:
        """Write an answer of a batch."""
        self._sink.write(plan.identity.name, answer)

    def end(self, batch: int) -> None:
        """End a batch: readers of a pipe get its answers now."""
        self._file.flush()
        super().end(batch)

    def __exit__(self, *given: Any) -> None:
        self._lines.__exit__(*given)


def _opened(path: str, resumed: bool) -> TextIO:
    # Append mode: after a cut, writing continues at the new end.
    file = open_lines(path, os.O_APPEND)
    if not resumed:
        file.truncate(0)
    return file


def followed_streams(job: Job) -> tuple[GrowingFiles | BrokerStream, ...]:
    """The job's streams as sources that are read while they grow.

    Raises:
        UsageError: one of them has an end, or cannot be read on Spark.
    """
    streams = (stream.followed() for stream in job.streams)
    return tuple(each for each in streams if isinstance(each, GrowingFiles | BrokerStream))


def _check(job: Job, options: FollowOptions) -> None:
    """Find errors of sources early; as `check_topics`."""
    if options.rebuild:
        raise UsageError("--rebuild is for runs through logs: local runs, and runs of brokers")
    check_topics(job, options.arrivals)
    for stream in job.streams:
        if isinstance(stream, GrowingFiles):
            stream.check()


def check_topics(job: Job, settings: FileSourceSettings) -> None:
    """Check that the followed topics exist.

    Raises:
        UsageError: a broker is not Kafka, or options exclude topics.
        InputError: a server does not answer, or has no such topic.
    """
    topics = [stream for stream in job.streams if isinstance(stream, BrokerStream)]
    if topics and len(topics) < len(job.streams) and settings.idle_ms is not None:
        raise UsageError("on Spark streams are idle (--idle) if all are files, or all at Kafka")
    for topic in topics:
        TopicRanges(Address.of(topic.followed().url)).extents()


@contextmanager
def _naming(checkpoint: Checkpoint) -> Iterator[None]:
    """Name the checkpoint in errors of Spark, because Spark's part of it may be damaged."""
    try:
        yield
    except RunError as error:
        if not checkpoint.resumed or not str(error).startswith(SPARK_FAILED):
            raise
        raise RunError(
            f"{error}. If the checkpoint {checkpoint.directory} is damaged, restore the directory "
            "from a copy, or start again with an empty one"
        ) from error


def _start(
    spark: Any, job: Job, options: FollowOptions, checkpoint: Checkpoint, handover: Handover
) -> Any:
    """Start the StreamingQuery."""
    start_workers(spark, LIKE_DATAFRAMES)
    start_workers(spark, _SECOND_STAGE)
    writer = (
        following_output(spark, job, checkpoint, options.arrivals, options.limits)
        .writeStream.foreachBatch(handover.take)
        .option("checkpointLocation", str(checkpoint.spark))
        .outputMode("append")
    )
    if options.until_done:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{options.trigger_ms} milliseconds").start()


def following_output(
    spark: Any,
    job: Job,
    checkpoint: Checkpoint,
    settings: FileSourceSettings,
    limits: StateLimits | None = None,
) -> Any:
    """The streaming DataFrame of `OUTPUT` rows: messages, and answers when they are final."""
    ship_functions()
    knowledge = store_knowledge(spark, job.knowledge, checkpoint.directory)
    followed = followed_streams(job)
    settings = replace(settings, horizon_ms=max(map(_horizon, job.plans), default=0))
    files = [stream for stream in followed if isinstance(stream, GrowingFiles)]
    topics = [stream for stream in followed if isinstance(stream, BrokerStream)]
    groups = QueryGroups.of(checkpoint.units(job.plans))
    streams: tuple[GrowingFiles | BrokerStream, ...] = (*files, *topics)
    solve = FollowSolve(groups, streams, knowledge, checkpoint.buckets, job.options.limits)
    FileSourceLog(checkpoint.arrivals, files).use_knowledge(knowledge.name)
    every: list[Followed] = []
    if files:
        # Topics have no log from which the state could be rebuilt.
        needed = () if topics else tuple(depths(job.plans, [stream.iri for stream in followed]))
        given = tuple(files), checkpoint.arrivals.absolute(), settings, needed
        every.append(FollowedFiles(*given, checkpoint.repetition))
    if topics:
        directory = (checkpoint.directory / TOPICS).absolute()
        arrivals = None if job.watch is None else checkpoint.arrivals.absolute()
        where = directory, settings, knowledge.name, arrivals
        every.append(FollowedTopics(tuple(topics), len(files), *where))
    work = []
    for each in every:
        spark.dataSource.register(FollowedSource.of(each))
        work.append(spark.readStream.format(each.kind).load())
    splits = reduce(lambda one, other: one.unionAll(other), work)
    packed = splits.mapInArrow(lambda batches: solve.run(batches), struct_of(PACKED))
    return sequenced(spark, job, checkpoint, packed, limits)


def _horizon(plan: QueryPlan) -> int:
    """Maximum time (ms) after an event for which a query may wait."""
    window = plan.sequence.window
    of_window = 0 if isinstance(window, Counted) else window.horizon
    return of_window + longest_wait(plan.inputs.windows)


def sequenced(
    spark: Any, job: Job, checkpoint: Checkpoint, packed: Any, limits: StateLimits | None = None
) -> Any:
    """Stage 2: from a streaming DataFrame of `PACKED` rows to one of `OUTPUT` rows."""
    knowledge = store_knowledge(spark, job.knowledge, checkpoint.directory)
    stages = Buckets(
        QueryGroups.of(checkpoint.units(job.plans)),
        checkpoint.id,
        str(checkpoint.directory),
        knowledge,
        (limits or StateLimits()).stages(job.options),
        limits or StateLimits(),
        any(isinstance(stream, BrokerStream) for stream in job.streams),
    )
    sequence = FollowSequence(pickle.dumps(stages, pickle.HIGHEST_PROTOCOL))
    for name, value in STATE_SETTINGS.items():
        spark.conf.set(name, value)
    # Spark gives a task any worker with the same variables. If stage 1 and stage 2 shared their
    # workers, a bucket would often get a worker that does not keep its stage.
    with worker_variables(spark.sparkContext, _SECOND_STAGE):
        return packed.groupBy("query", "bucket").transformWithStateInPandas(
            sequence, struct_of(OUTPUT), "append", "none"
        )


@dataclass(slots=True)
class _Delivery:
    """Passes batches to the caller and updates the job's counts."""

    job: Job
    output: BatchOutput | None
    query: Any  # the StreamingQuery
    refresh: Refresh
    _started: float = field(default_factory=time.perf_counter)

    def all(self, batches: Iterator[Batch | None]) -> Iterator[tuple[int, Answer]]:
        for batch in batches:
            if batch is not None and batch.left is not None:
                self._repeat(batch.items, batch.left)
            elif batch is not None:
                yield from self._one(batch)
            self._note_phases()
            self.refresh.poll()
            self.job.stats.seconds = time.perf_counter() - self._started
            self.job.on_progress(self.job.stats)
        self._note_phases()

    def _note_phases(self) -> None:
        """Record the phases of the last batch that had input, as soon as Spark reports them."""
        progress = self.query.lastProgress
        if progress is not None and "addBatch" in progress["durationMs"]:
            phases = dict(progress["durationMs"])
            self.job.stats.phases = {name: ms / 1000 for name, ms in phases.items()}

    def _repeat(self, given: Sequence[tuple[int, Item]], left: int) -> None:
        """Drop a batch whose answers and messages an earlier run has given."""
        items, failure = until_failure(given)
        for error in (item for _, item in items if isinstance(item, SpaseqError)):
            raise error
        self._note_state(items)
        if failure is not None:
            raise failure
        if not left:
            seconds = time.perf_counter() - self._started
            self.job.on_note(f"the state was rebuilt in {seconds:.1f} s")

    def _one(self, batch: Batch) -> Iterator[tuple[int, Answer]]:
        if self.output is not None:
            self.output.begin(batch.number)
        items, failure = until_failure(batch.items)
        for query, answers in answers_in(self.job, items):
            yield from zip(repeat(query), answers)
        self.job.stats.batches += 1
        self._note_state(items)
        if failure is not None:
            raise failure
        if self.output is not None:
            self.output.end(batch.number)

    def _note_state(self, items: Sequence[tuple[int, Item]]) -> None:
        """Record the watermarks and the sizes of states after a batch."""
        stats, runs, state = self.job.stats, Counter[str](), Counter[str]()
        for item in (item for _, item in items if isinstance(item, Stats)):
            stats.watermarks.update(item.watermarks)
            runs.update(item.live_runs)
            state.update(item.state_bytes)
        stats.live_runs, stats.state_bytes = dict(runs), dict(state)
        marks = stats.watermarks.values()
        known = [mark for mark in marks if mark is not None]
        stats.watermark = min(known) if len(known) == len(self.job.streams) else None


_FIRST_S = 10.0  # the next note comes after twice the time, and so on


@contextmanager
def telling(
    note: Callable[[str], None], doing: Callable[[], str | None], first_s: float = _FIRST_S
) -> Iterator[None]:
    """Give notes from a thread within this context, ever more rarely.

    Args:
        note: takes each.
        doing: what the run does now; None once there is nothing more to tell.
        first_s: seconds to the first note.
    """
    over = threading.Event()

    def tell() -> None:
        wait_s = first_s
        while not over.wait(wait_s):
            text = doing()
            if text is None:
                return
            note(text)
            wait_s *= 2

    thread = threading.Thread(target=tell, name="slow start", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
