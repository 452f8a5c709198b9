"""The local runtime: a loop in this process drives the stages, without Spark and without timers."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence

from spaseq.algebra.answers import Answer
from spaseq.kb.endpoint import RetryCount
from spaseq.measures import Measures
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.runtime.job.job import Job
from spaseq.sources.base import Source
from spaseq.stages.sequence import PatternStage, SequenceStage
from spaseq.stages.sorting import KEPT_BYTES, RowSorter


def run(job: Job) -> Generator[tuple[int, Answer]]:
    """(number of the query, answer) of `run_batches`, one by one."""
    for number, answers in run_batches(job):
        for answer in answers:
            yield number, answer


def run_batches(job: Job) -> Generator[tuple[int, Sequence[Answer]]]:
    """Replay a job's streams to their ends.

    All streams are read and matched first. Then each query's solutions are sequenced in order of
    instants, so a bounded run has no late events. Memory does not grow with the streams: solutions
    beyond a bound are sorted on disk. The answers of a query that registers a stream are matched
    for the queries after it.

    Yields:
        (number of the query, some answers), by query, in order (docs/language.md#order-of-answers).

    Raises:
        InputError: a stream cannot be read.
        RunError: a limit is exceeded.
    """
    started, repeats = time.monotonic(), RetryCount()
    try:
        inputs = read_inputs(job)
        for number in range(len(job.plans)):
            yield from _sequence(job, number, inputs)
    finally:
        job.stats.seconds = time.monotonic() - started
        job.stats.repeated = repeats.take()
        job.on_progress(job.stats)


class SortedInput:
    """The input of one query's second stage: sorted solutions of its graph patterns."""

    def __init__(self, plan: QueryPlan, job: Job) -> None:
        self.streams = plan.inputs.streams
        self._plan, self._stats = plan, job.stats
        kept = KEPT_BYTES // len(job.plans)
        self.sorter = RowSorter(plan.patterns.columns, kept_bytes=kept)
        limits = job.options.limits
        self._matcher = PatternStage(plan, job.knowledge, job.take_bad, limits, job.measures)

    def take(self, events: EventBatch) -> None:
        rows = self._matcher.match(events)
        self._stats.count_solutions(self._plan, rows)
        self.sorter.add(rows)


def read_inputs(job: Job) -> list[SortedInput]:
    """The input of each query, from the job's streams read to their ends."""
    inputs = [SortedInput(plan, job) for plan in job.plans]
    for source in job.streams:
        _read_stream(job, source, inputs)
    return inputs


def _read_stream(job: Job, source: Source, inputs: list[SortedInput]) -> None:
    stats = job.stats
    at = time.perf_counter()
    for batch in source.open(job.take_bad):
        read = time.perf_counter()
        stats.add("ingest", read - at)
        if job.measures is not None:
            measure = job.measures.at("stream", source.iri)
            measure.took(len(batch), _bytes(batch), batch.triples)
            measure.seconds += read - at
        stats.events += len(batch)
        stats.triples += batch.triples
        for each in inputs:
            each.take(batch)
        at = time.perf_counter()
        stats.add("graph patterns", at - read)
        job.on_progress(stats)
    stats.add("ingest", time.perf_counter() - at)


def _sequence(
    job: Job, number: int, inputs: list[SortedInput]
) -> Iterator[tuple[int, Sequence[Answer]]]:
    plan = job.plans[number]
    stream = None if plan.identity.register is None else RegisteredStream(plan.identity.register)
    readers = [each for each in inputs if plan.identity.register in each.streams]
    for answers in _answers(job, number, inputs[number].sorter):
        job.stats.matches += len(answers)
        if stream is not None and readers and answers:
            at = time.perf_counter()
            events = stream.events(answers)
            for each in readers:
                each.take(events)
            job.stats.add("graph patterns", time.perf_counter() - at)
        job.on_progress(job.stats)
        yield number, answers


def _answers(job: Job, number: int, sorter: RowSorter) -> Iterator[Sequence[Answer]]:
    stage = SequenceStage(job.plans[number], job.options, job.knowledge, job.take_bad)
    watch = _SequenceWatch(job.measures, stage)
    for rows, watermark in watch.sorting(sorter.batches()):
        at = time.perf_counter()
        stage.push(rows)
        answers = stage.advance(watermark)
        seconds = time.perf_counter() - at
        job.stats.add("sequence", seconds)
        watch.take(rows, len(answers), seconds)
        job.stats.watermark = watermark
        job.take_partials(number, stage.partials())
        yield answers
    answers = stage.close()
    watch.take(None, len(answers), 0.0)
    job.take_partials(number, stage.partials())
    yield answers
    job.stats.suppressed += stage.suppressed


class _SequenceWatch:
    """Measures the sequence of a query, if measures are asked for.

    Its memory is the size of its state after a batch. The state is looked at as long as that takes
    at most a fifth of the time of the sequence itself, and once in any case.
    """

    def __init__(self, measures: Measures | None, stage: SequenceStage) -> None:
        self._measures, self._stage, self._looking = measures, stage, 0.0

    def sorting(
        self, batches: Iterator[tuple[SolutionBatch, int]]
    ) -> Iterator[tuple[SolutionBatch, int]]:
        """The batches of a sorter, whose time is measured."""
        if self._measures is None:
            yield from batches
            return
        while True:
            with self._measures.inside("sort") as measure:
                found = next(batches, None)
            if found is None:
                return
            measure.took(len(found[0]), found[0].nbytes)
            yield found

    def take(self, rows: SolutionBatch | None, answers: int, seconds: float) -> None:
        """Count a batch of solutions, None at the end of the streams."""
        if self._measures is None:
            return
        measure = self._measures.at("sequence")
        measure.seconds += seconds
        size = None
        if rows is not None and 5 * self._looking <= measure.seconds:
            at = time.perf_counter()
            size = len(self._stage.snapshot())
            self._looking += time.perf_counter() - at
        measure.took(answers, size, 0 if rows is None else len(rows))


def _bytes(events: EventBatch) -> int:
    """The bytes of the columns of some events, without the texts of their terms."""
    columns = (events.time, events.k, events.start, events.s, events.p, events.o)
    return sum(int(column.nbytes) for column in columns)
