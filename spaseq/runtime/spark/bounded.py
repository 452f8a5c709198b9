"""The Spark runtime for bounded streams: two stages, one shuffle by bucket, answers in order.

Stage 1 reads the streams and matches graph patterns. Its rows are shuffled by (group, bucket) and
sorted by time. Stage 2 turns them into answers. Spark keeps the answers on disk; the driver gets
them sorted, in pieces of bounded size.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from spaseq.algebra.answers import Answer
from spaseq.plan.families import QueryUnits, families_of, may_begin
from spaseq.runtime.arrivals.input_splits import bounded_splits
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.one_machine import found_in_files, is_one_machine
from spaseq.runtime.spark.rows.stage_rows import (
    OUTPUT,
    OVERLAP,
    PACKS,
    Item,
    items_of,
    struct_of,
)
from spaseq.runtime.spark.session.failures import spark_errors
from spaseq.runtime.spark.session.spark_session import local_cores, session, tasks_only
from spaseq.runtime.spark.session.worker_python import worker_python
from spaseq.runtime.spark.shared import answers_in, ship_functions, store_knowledge
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve, ProgressFile
from spaseq.runtime.spark.stages.sequence_stage import run_sequences, whole_run
from spaseq.runtime.spark.stages.shipped_units import ShippedUnits
from spaseq.scratch import ScratchDirectory

_POLL_SECONDS = 0.25

T = TypeVar("T")


def while_watching(
    spark: Any, action: Callable[[], T], job: Job, progress: str | None, started: float
) -> T:
    """Run an action in another thread and report progress from this one; return the result.

    `progress` is the directory in which tasks leave their counts. If this thread is interrupted,
    the Spark jobs of the action are cancelled.
    """
    context = spark.sparkContext
    group = f"spaseq-{id(job)}"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(_in_group, context, group, action)
        try:
            while not _finished(future):
                files = Path(progress).glob("split-*[0-9]") if progress is not None else ()
                known = [ProgressFile(path).read() for path in files]
                job.stats.events = sum(s.events for s in known)
                job.stats.triples = sum(s.triples for s in known)
                marks = [s.watermark for s in known if s.watermark is not None]
                job.stats.watermark = min(marks, default=None)
                job.stats.seconds = time.perf_counter() - started
                job.on_progress(job.stats)
            return future.result()
        except BaseException:
            context.cancelJobGroup(group)
            raise


def _in_group(context: Any, group: str, action: Callable[[], T]) -> T:
    context.setJobGroup(group, "spaseq", interruptOnCancel=True)
    return action()


def _finished(future: Future[Any]) -> bool:
    try:
        future.exception(_POLL_SECONDS)
    except NotYet:
        return False
    return True


PIECE_BYTES = 64 * 2**20
"""Approximate size of the sorted pieces in which answers come to the driver."""

ARROW_BYTES = 32 * 2**20
"""Approximate size of the batches of solution packs for a worker."""

_PACK_ROWS = 500


def run(
    job: Job, *, spark: Any = None, partitions: int | None = None
) -> Generator[tuple[int, Answer]]:
    """(number of the query, answer) of `run_batches`, one by one."""
    for number, answers in run_batches(job, spark=spark, partitions=partitions):
        for answer in answers:
            yield number, answer


def run_batches(
    job: Job,
    *,
    spark: Any = None,
    master: str | None = None,
    partitions: int | None = None,
    verbose: bool = False,
) -> Generator[tuple[int, Sequence[Answer]]]:
    """Evaluate a job of bounded streams on Spark.

    Args:
        job: the job; its `stats` are updated and its callbacks run in this thread.
        spark: the session; the process's own (see `spark_session.session`) if not given.
        master: as in `session`, if the session is started here.
        partitions: parallel tasks of stage 2; the session's parallelism if not given.
        verbose: show Spark's own messages, if the session is started here.

    Yields:
        (number of the query, some answers), by query, in order (docs/meaning.md#order-of-answers).

    Raises:
        InputError: a stream cannot be read.
        RunError: a stage or Spark fails.
    """
    started = time.perf_counter()
    with spark_errors():
        cores = local_cores(master)
        if spark is None and cores is not None:
            spark = tasks_only(cores, verbose=verbose)
        spark = spark or session(master=master, verbose=verbose)
    with ScratchDirectory("events") as directory:
        shared = tuple(stream.shared(Path(directory)) for stream in job.streams)
        for number, answers in _delivered(spark, replace(job, streams=shared), partitions, started):
            if job.plans[number].maintained is None:
                yield number, answers
            else:
                job.take_changes(job.plans[number], answers)
    job.stats.seconds = time.perf_counter() - started


def _delivered(
    spark: Any, job: Job, partitions: int | None, started: float
) -> Iterator[tuple[int, Sequence[Answer]]]:
    """The answers of a job whose streams any process can open.

    Streams that seem to be in order of time are not scanned for times first. If they turn out not
    to be, there are no answers yet, and the job runs a second time.
    """
    found_rows = found_in_files if is_one_machine(spark) else _found_by_spark
    for time_scan in (False, True):
        with ExitStack() as stack, ScratchDirectory("workplace") as workplace:
            solve = bounded_solve(spark, job, Path(workplace), partitions)
            find = partial(found_rows, spark, solve, Path(workplace), time_scan, stack)
            with spark_errors():
                found = while_watching(spark, find, job, solve.progress, started)
            if found is not None:  # with a scan, splits cannot overlap
                with spark_errors():
                    yield from _deliver(job, items_of(found))
                break


def _found_by_spark(
    spark: Any, solve: BoundedSolve, directory: Path, time_scan: bool, stack: ExitStack
) -> Iterator[tuple[int, str, bytes]] | None:
    """As `found_in_files`, on a cluster; `stack` ends when the rows have been read."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as sf

    with worker_python(spark):
        output = bounded_output(spark, solve, file_solutions(spark, solve, time_scan))
        output = output.persist(StorageLevel.DISK_ONLY)
        stack.callback(output.unpersist)
        total = sf.sum(sf.length("payload") + sf.length("order"))
        size, first = output.agg(total, sf.min("query")).collect()[0]
        return None if first == OVERLAP else _unpacked(_packed(output, int(size or 0)))


def bounded_solve(
    spark: Any, job: Job, workplace: Path, partitions: int | None = None
) -> BoundedSolve:
    """Stage 1 of a job; `workplace` is a directory that lasts as long as the run."""
    ship_functions()
    cores = partitions or spark.sparkContext.defaultParallelism
    limited = job.options.limit_per_event is not None
    here = workplace if is_one_machine(spark) else None
    units = ShippedUnits.of_units(
        QueryUnits.of(job.plans, families_of(job.plans, may_begin(job.options)), limited), here
    )
    groups = QueryGroups.of(units)
    count = sum(1 if group.key(units) is None else cores for group in groups.every)
    progress = workplace / "progress"
    progress.mkdir(exist_ok=True)
    return BoundedSolve(
        groups,
        job.streams,
        store_knowledge(spark, job.knowledge, workplace),
        buckets=cores,
        parts=max(1, min(cores, count)),
        progress=str(progress),
        directory=os.getcwd(),
        options=job.options,
    )


def bounded_output(spark: Any, solve: BoundedSolve, solutions: Any) -> Any:
    """The DataFrame of `OUTPUT` rows of stage 2 over one of `PACKS` rows.

    Each (query, bucket) has its own rows in order. An `OVERLAP` row says that splits that seemed to
    be in order of time were not, and then the run gives no answers.
    """
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", ARROW_BYTES)
    ordered = solutions.repartitionById(solve.parts, "part").sortWithinPartitions(
        "query", "bucket", "time"
    )
    return ordered.mapInArrow(lambda batches: run_sequences(solve, batches), struct_of(OUTPUT))


FEW_ROWS = 1_000_000
"""Number of rows up to which one task is faster than several, which exchange their solutions."""

FEW_CORES = 2
"""Number of cores up to which exchanging solutions costs more than parallel work saves."""


def in_one_task(spark: Any, rows: float) -> bool:
    """Whether one task should do a whole run over this many rows."""
    return rows <= FEW_ROWS or spark.sparkContext.defaultParallelism <= FEW_CORES


def whole_output(spark: Any, solve: BoundedSolve) -> Any:
    """The DataFrame of `OUTPUT` rows of a run over `solve.streams` in one task."""
    return spark.range(0, 1, 1, 1).mapInArrow(
        lambda batches: whole_run(solve, batches), struct_of(OUTPUT)
    )


def file_solutions(spark: Any, solve: BoundedSolve, time_scan: bool = True) -> Any:
    """Stage 1 over `solve.streams`: the DataFrame of `PACKS` rows.

    Without a `time_scan`, streams that seem to be in order of time are read only once.
    """
    splits = bounded_splits(solve.streams, time_scan=time_scan)
    pickled = [pickle.dumps(split) for split in splits]
    return spark.range(0, len(splits), 1, max(1, len(splits))).mapInArrow(
        lambda batches: solve.run(pickled, batches), struct_of(PACKS)
    )


def _packed(output: Any, size: int) -> Any:
    """The DataFrame of packed rows in order, in pieces of bounded size."""
    count = -(-size // PIECE_BYTES)
    one = output.coalesce(1) if count <= 1 else output.repartitionByRange(count, "query", "order")
    return one.sortWithinPartitions("query", "order").mapInArrow(_pack, "pack binary")


def _unpacked(packed: Any) -> Iterator[tuple[int, str, bytes]]:
    """All rows in order, one piece after the other."""
    for row in packed.toLocalIterator(prefetchPartitions=False):
        yield from zip(*pickle.loads(row[0]), strict=True)


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack many rows into one: Spark passes rows to the driver one by one."""
    for batch in batches:
        for start in range(0, batch.num_rows, _PACK_ROWS):
            part = batch.slice(start, _PACK_ROWS)
            columns = [part.column(name).to_pylist() for name in OUTPUT.names]
            packed = pickle.dumps(columns, pickle.HIGHEST_PROTOCOL)
            yield pa.RecordBatch.from_pydict({"pack": pa.array([packed], pa.binary())})


def _deliver(job: Job, items: Iterator[tuple[int, Item]]) -> Iterator[tuple[int, Sequence[Answer]]]:
    """Pass answers to the caller and messages to the job."""
    marks: list[int] = []

    def noted() -> Iterator[tuple[int, Item]]:
        for query, item in items:
            if isinstance(item, Stats) and item.watermark is not None:
                marks.append(item.watermark)
            yield query, item

    job.stats.events = job.stats.triples = 0  # drops the counts of running tasks
    yield from answers_in(job, noted())
    job.stats.watermark = max(marks, default=None)
