"""Progress of a bounded run while Spark computes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from typing import Any, TypeVar

from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.stages.pattern_stage import ProgressFile

_POLL_SECONDS = 0.25

T = TypeVar("T")


def while_watching(
    spark: Any, action: Callable[[], T], job: Job, progress: str | None, started: float
) -> T:
    """Compute an action in another thread and report progress from this one; the result.

    `progress` is the directory in which tasks leave their counts. If this thread is interrupted,
    the Spark jobs of the action are cancelled.
    """
    context = spark.sparkContext
    group = f"spaseq-{id(job)}"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(_in_group, context, group, action)
        try:
            while not _finished(future):
                _progress(job, progress, started)
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


def _progress(job: Job, directory: str | None, started: float) -> None:
    files = Path(directory).glob("split-*[0-9]") if directory is not None else ()
    known = [ProgressFile(path).read() for path in files]
    job.stats.events = sum(s.events for s in known)
    job.stats.triples = sum(s.triples for s in known)
    marks = [s.watermark for s in known if s.watermark is not None]
    job.stats.watermark = min(marks, default=None)
    job.stats.seconds = time.perf_counter() - started
    job.on_progress(job.stats)
