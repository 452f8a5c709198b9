"""The in-process runtime: the stages driven by a loop, no JVM, no threads, no timers."""

from __future__ import annotations

import time
from collections.abc import Iterator

from spaseq.algebra.answers import Answer
from spaseq.clock.sorting import RowSorter
from spaseq.engine import Matcher, SequenceStage
from spaseq.rdf.batches import BadInput
from spaseq.rdf.readers import StreamOptions, read_stream
from spaseq.runtime.job import Job


def run(job: Job) -> Iterator[tuple[int, Answer]]:
    """Replay a job's streams to their ends.

    Everything is read and matched first, then sequenced in the order of instants: bounded runs
    have no late events. Memory does not grow with the streams; what exceeds a bound is sorted on
    disk.
    """
    started = time.monotonic()
    try:
        sorters = _read(job)
        for number, sorter in enumerate(sorters):
            yield from _sequence(job, number, sorter)
    finally:
        job.stats.seconds = time.monotonic() - started
        job.on_progress(job.stats)


def _read(job: Job) -> list[RowSorter]:
    matchers = [Matcher(plan, job.knowledge) for plan in job.plans]
    sorters = [RowSorter(plan.variables) for plan in job.plans]
    for options in job.streams:
        _read_stream(job, options, matchers, sorters)
    return sorters


def _read_stream(
    job: Job, options: StreamOptions, matchers: list[Matcher], sorters: list[RowSorter]
) -> None:
    stats = job.stats

    def on_bad(bad: BadInput) -> None:
        stats.bad += 1
        job.on_bad(bad)

    at = time.perf_counter()
    for batch in read_stream(options, on_bad):
        read = time.perf_counter()
        stats.add("ingest", read - at)
        stats.events += len(batch)
        stats.triples += len(batch.s)
        for matcher, sorter in zip(matchers, sorters, strict=True):
            sorter.add(matcher.match(batch))
        at = time.perf_counter()
        stats.add("graph patterns", at - read)
        job.on_progress(stats)
    stats.add("ingest", time.perf_counter() - at)


def _sequence(job: Job, number: int, sorter: RowSorter) -> Iterator[tuple[int, Answer]]:
    stage = SequenceStage(job.plans[number])
    stats = job.stats
    for rows, watermark in sorter.batches():
        at = time.perf_counter()
        stage.push(rows)
        answers = stage.advance(watermark)
        stats.add("sequence", time.perf_counter() - at)
        stats.watermark = watermark
        stats.matches += len(answers)
        job.on_progress(stats)
        for answer in answers:
            yield number, answer
    answers = stage.close()
    stats.matches += len(answers)
    for answer in answers:
        yield number, answer
