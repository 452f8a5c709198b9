"""The local runtime: a loop in this process drives the stages, without Spark and without timers."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import TypeAlias

import numpy as np

from spaseq.algebra.answers import Answer
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.kb.service_failure import RetryCount
from spaseq.measures import Measures
from spaseq.plan.families import Family, families_of
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.runtime.job.job import Job, counted
from spaseq.sources.base import Source
from spaseq.stages.collection_pause import MANY, collection_of_new_only, collection_paused
from spaseq.stages.family_stage import FamilyPatterns, FamilySequence
from spaseq.stages.held_answers import HeldAnswers
from spaseq.stages.hopeless_families import leave_out_together
from spaseq.stages.hopeless_rows import leave_out_hopeless
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.lone_patterns import LonePatterns
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
    for the queries after it. The answers of a family, which come together, wait for the turn of
    their queries.

    Yields:
        (number of the query, some answers), by query, in order (docs/language.md#order-of-answers).

    Raises:
        InputError: a stream cannot be read.
        RunError: a limit is exceeded.
    """
    started, repeats = time.monotonic(), RetryCount()
    try:
        with collection_of_new_only() if len(job.plans) >= MANY else nullcontext():
            yield from _run_batches(job)
    finally:
        job.stats.seconds = time.monotonic() - started
        job.stats.repeated = repeats.take()
        job.on_progress(job.stats)


def _run_batches(job: Job) -> Iterator[tuple[int, Sequence[Answer]]]:
    with collection_paused():
        families = () if job.measures is not None else families_of(job.plans)
        joint = JointPatterns()
        inputs = _inputs(job, families, joint)
    held = HeldAnswers()
    try:
        _read_streams(job, inputs, joint)
        _leave_out_together(job, inputs)
        for number, own in enumerate(inputs):
            if isinstance(own, FamilyInput):
                yield from _held(job, number, own, held)
            else:
                yield from _sequence(job, number, own, inputs)
    finally:
        held.close()


class SortedInput:
    """The input of one query's second stage: sorted solutions of its graph patterns."""

    def __init__(self, plan: QueryPlan, job: Job, joint: LonePatterns | None = None) -> None:
        self.streams, self.title = plan.inputs.streams, plan.identity.title
        self._plan, self._stats = plan, job.stats
        kept = KEPT_BYTES // len(job.plans)
        self.sorter = RowSorter(plan.patterns.columns, kept_bytes=kept)
        given = job.knowledge, job.take_bad, job.options.limits, job.measures, joint
        self.patterns = PatternStage(plan, *given)
        self._stats.solutions.setdefault(self.title, {})

    def take(self, events: EventBatch, index: VerticalPartition | None = None) -> None:
        rows = self.patterns.match(events, index)
        self._stats.count_solutions(self._plan, rows)
        self.sorter.add(rows)


class FamilyInput:
    """The input of a family's second stage.

    `has_left_out` says that rows that can be in no match have left the sorter, and `is_done` that
    the answers have been made.
    """

    def __init__(self, family: Family, job: Job, joint: JointPatterns) -> None:
        self.family, self.has_left_out, self.is_done = family, False, False
        self.streams = family.plan.inputs.streams
        self.title = family.plan.identity.title
        self.plans, self._stats = {n: job.plans[n] for n in family.members}, job.stats
        kept = KEPT_BYTES * len(self.plans) // len(job.plans)
        self.sorter = RowSorter(family.plan.patterns.columns, kept_bytes=kept)
        self._counts = np.zeros((len(family.rows), len(family.plan.patterns.gpms)), np.int64)
        given = job.knowledge, job.take_bad, job.options.limits
        self.patterns = FamilyPatterns(family, self.plans, *given, joint)

    def take(self, events: EventBatch, index: VerticalPartition | None = None) -> None:
        rows = self.patterns.match(events, index)
        self._counts += counted(self.family, rows)
        self.sorter.add(rows)

    def count(self) -> None:
        """Count the solutions so far, by member."""
        self._stats.count_members(self.family, self.plans, self._counts)
        self._counts[:] = 0


Inputs: TypeAlias = "Sequence[SortedInput | FamilyInput]"
"""The input of each query; the members of a family have one together."""


def read_inputs(job: Job) -> list[SortedInput]:
    """The input of each query by itself, from the job's streams read to their ends."""
    inputs = [SortedInput(plan, job) for plan in job.plans]
    _read_streams(job, inputs, JointPatterns())
    return inputs


def _inputs(job: Job, families: Iterable[Family], joint: JointPatterns) -> Inputs:
    """The inputs of the queries, before any stream has been read."""
    own = [FamilyInput(family, job, joint) for family in families]
    known = {number: each for each in own for number in each.family.members}
    return [known.get(n) or SortedInput(plan, job, joint.lone) for n, plan in enumerate(job.plans)]


def _read_streams(job: Job, inputs: Inputs, joint: JointPatterns) -> None:
    for source in job.streams:
        _read_stream(job, source, [*dict.fromkeys(inputs)], joint)


def _read_stream(job: Job, source: Source, inputs: Inputs, joint: JointPatterns) -> None:
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
        stats.filtered += batch.filtered
        stats.skipped_groups += batch.skipped_groups
        index = VerticalPartition(batch, readers=len(inputs))  # which all queries share
        with collection_paused():
            idle = joint.idle(index)
            stats.add("graph patterns", time.perf_counter() - read)
            for each in inputs:
                if each.patterns in idle:
                    continue
                at = time.perf_counter()
                each.take(batch, index)
                stats.add_work("graph patterns", each.title, time.perf_counter() - at)
        at = time.perf_counter()
        job.on_progress(stats)
    stats.add("ingest", time.perf_counter() - at)


def _leave_out_together(job: Job, inputs: Inputs) -> None:
    """Leave out rows of families all of whose rows are there."""
    iris = {source.iri for source in job.streams}
    families = [own for own in dict.fromkeys(inputs) if isinstance(own, FamilyInput)]
    complete = {own.sorter: own for own in families if iris.issuperset(own.streams)}
    for sorter in leave_out_together([(o.family.plan, sorter) for sorter, o in complete.items()]):
        complete[sorter].has_left_out = True


def _held(
    job: Job, number: int, own: FamilyInput, held: HeldAnswers
) -> Iterator[tuple[int, Sequence[Answer]]]:
    """The answers of a member of a family; the first member's turn makes those of all."""
    if not own.is_done:
        own.is_done = True
        _hold(job, own, held)
    for answers in held.take(number):
        yield number, answers


def _hold(job: Job, own: FamilyInput, held: HeldAnswers) -> None:
    """Make the answers of a family."""
    own.count()
    if own.has_left_out:
        may_match = len(own.sorter) > 0
    else:
        may_match = leave_out_hopeless(own.family.plan, own.sorter)
    if not may_match:
        return
    stage = FamilySequence(own.family, own.plans, job.options, job.knowledge, job.take_bad)
    none: tuple[SolutionBatch | None, int] = (None, 0)  # the end of the streams
    for rows, watermark in chain(own.sorter.batches(), (none,)):
        at = time.perf_counter()
        if rows is None:
            found = stage.close()
        else:
            stage.push(rows)
            found = stage.advance(watermark)
            job.stats.watermark = watermark
        job.stats.add_work("sequence", own.title, time.perf_counter() - at)
        for number, pieces in found.items():
            for answers in pieces:
                job.stats.count_answers(own.plans[number].identity.title, len(answers))
                held.add(number, answers)
        job.on_progress(job.stats)
    job.stats.suppressed += stage.suppressed


def _sequence(
    job: Job, number: int, own: SortedInput, inputs: Inputs
) -> Iterator[tuple[int, Sequence[Answer]]]:
    plan = job.plans[number]
    stream = None if plan.identity.register is None else RegisteredStream(plan.identity.register)
    readers: list[SortedInput | FamilyInput] = []
    if stream is not None:
        readers = [r for r in dict.fromkeys(inputs) if plan.identity.register in r.streams]
    for answers in _answers(job, number, own.sorter):
        job.stats.count_answers(plan.identity.title, len(answers))
        if stream is not None and readers and answers:
            at = time.perf_counter()
            events = stream.events(answers)
            for each in readers:
                each.take(events)
            job.stats.add("graph patterns", time.perf_counter() - at)
        job.on_progress(job.stats)
        yield number, answers


def _answers(job: Job, number: int, sorter: RowSorter) -> Iterator[Sequence[Answer]]:
    with collection_paused():
        if job.measures is None and not leave_out_hopeless(job.plans[number], sorter):
            return
        stage = SequenceStage(job.plans[number], job.options, job.knowledge, job.take_bad)
    watch = _SequenceWatch(job.measures, stage)
    for rows, watermark in watch.sorting(sorter.batches()):
        at = time.perf_counter()
        stage.push(rows)
        answers = stage.advance(watermark)
        seconds = time.perf_counter() - at
        job.stats.add_work("sequence", job.plans[number].identity.title, seconds)
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
