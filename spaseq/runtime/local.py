"""The local runtime: a loop in this process drives the stages, without Spark and without timers."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain

from spaseq.algebra.answers import Answer
from spaseq.collection_pause import collection_paused, old_objects_kept
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.plan.families import Family, UnitPlan, families_of, may_begin
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.bounded_sequence import Inputs, UnitInput, made_for, readers_of, steps
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.runtime.job.job import Job, ProcessCounts
from spaseq.sources.base import Source
from spaseq.stages.held_answers import HeldAnswers
from spaseq.stages.hopeless_rows import leave_out_hopeless
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.unit_sequence import UnitSequence

_BEFORE_ALL = -(2**62)
"""A time (ms) before all others."""


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
        (number of the query, some answers), by query, in order (docs/meaning.md#order-of-answers).

    Raises:
        InputError: a stream cannot be read.
        RunError: a limit is exceeded.
    """
    started, process = time.monotonic(), ProcessCounts()
    try:
        with old_objects_kept() if len(job.plans) > 1 else nullcontext():
            yield from _run_batches(job)
    finally:
        job.stats.seconds = time.monotonic() - started
        process.add_to(job.stats)
        job.on_progress(job.stats)


def _run_batches(job: Job) -> Iterator[tuple[int, Sequence[Answer]]]:
    with collection_paused():
        begun = may_begin(job.options)
        families = () if job.measures is not None else families_of(job.plans, begun)
        joint = JointPatterns()
        inputs = _inputs(job, families, joint)
    held_answers = HeldAnswers()
    try:
        last = _read_streams(job, inputs, joint)
        end = last if job.options.open_end else None
        made = made_for(job, inputs)
        for number, unit_input in enumerate(inputs):
            if number in made:
                continue
            if unit_input.unit.family is not None:
                if not unit_input.is_done:
                    unit_input.is_done = True
                    _sequence_family(job, unit_input, held_answers, end)
                for answers in held_answers.take(number):
                    yield number, answers
            else:
                yield from _sequence(job, number, inputs, made, end)
    finally:
        held_answers.close()


def read_inputs(job: Job) -> tuple[list[UnitInput], int]:
    """The input of each query by itself, from the job's streams read to their ends, and the
    greatest time (ms) in these streams."""
    units = (UnitPlan({number: plan}) for number, plan in enumerate(job.plans))
    inputs = [UnitInput(unit, job, JointPatterns()) for unit in units]
    return inputs, _read_streams(job, inputs, JointPatterns())


def _inputs(job: Job, families: Iterable[Family], joint: JointPatterns) -> list[UnitInput]:
    """The inputs of the queries, before any stream has been read."""
    known = dict[int, UnitInput]()
    for family in families:
        unit = UnitPlan({number: job.plans[number] for number in family.members}, family)
        known.update(dict.fromkeys(family.members, UnitInput(unit, job, joint)))
    return [
        known.get(n) or UnitInput(UnitPlan({n: plan}), job, joint)
        for n, plan in enumerate(job.plans)
    ]


def _read_streams(job: Job, inputs: Inputs, joint: JointPatterns) -> int:
    """Read all streams; the greatest time (ms) in them."""
    unit_inputs = [*dict.fromkeys(inputs)]
    return max((_read_stream(job, s, unit_inputs, joint) for s in job.streams), default=_BEFORE_ALL)


def _read_stream(job: Job, source: Source, inputs: Inputs, joint: JointPatterns) -> int:
    """Read a stream; the greatest time (ms) of its events."""
    stats, end = job.stats, _BEFORE_ALL
    at = time.perf_counter()
    for batch in source.open(job.take_bad):
        read = time.perf_counter()
        stats.add("ingest", read - at)
        if job.measures is not None:
            measure = job.measures.at("stream", source.iri)
            measure.took(len(batch), _bytes(batch), batch.triples)
            measure.seconds += read - at
        if len(batch):
            end = max(end, int(batch.time.max()))
        stats.events += len(batch)
        stats.triples += batch.triples
        stats.filtered += batch.filtered
        stats.skipped_groups += batch.skipped_groups
        index = VerticalPartition(batch)  # which all queries share
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
    return end


def _sequence_family(
    job: Job, unit_input: UnitInput, held_answers: HeldAnswers, end: int | None
) -> None:
    """Make the answers of a family."""
    unit_input.tell_counts()
    if not leave_out_hopeless(unit_input.unit.plan, unit_input.sorter):
        return
    stage = UnitSequence(unit_input.unit, job.options, job.knowledge, job.take_bad)
    none: tuple[SolutionBatch | None, int] = (None, 0)  # the end of the streams
    for rows, watermark in chain(unit_input.sorter.batches(), (none,)):
        at = time.perf_counter()
        if rows is None:
            by_member = stage.close(end)
        else:
            stage.push(rows)
            by_member = stage.advance(watermark)
            job.stats.watermark = watermark
        job.stats.add_work("sequence", unit_input.title, time.perf_counter() - at)
        for number, pieces in by_member.items():
            for answers in pieces:
                job.stats.count_answers(job.plans[number].identity.title, len(answers))
                held_answers.add(number, answers)
        job.on_progress(job.stats)
    job.stats.suppressed += stage.suppressed
    job.stats.add_muted(stage.muted)


def _sequence(
    job: Job, number: int, inputs: Inputs, made: Mapping[int, int], end: int | None
) -> Iterator[tuple[int, Sequence[Answer]]]:
    plan = job.plans[number]
    stream = None if plan.identity.register is None else RegisteredStream(plan.identity.register)
    readers = readers_of(plan, inputs)
    for step in steps(job, number, inputs, made, end):
        step.report(job, number)
        if stream is not None and readers and step.answers:
            at = time.perf_counter()
            events = stream.events(step.answers)
            for each in readers:
                each.take(events)
            job.stats.add("graph patterns", time.perf_counter() - at)
        job.on_progress(job.stats)
        if plan.maintained is None:
            yield number, step.answers


def _bytes(events: EventBatch) -> int:
    """The bytes of the columns of some events, without the texts of their terms."""
    columns = (events.time, events.k, events.start, events.s, events.p, events.o)
    return sum(int(column.nbytes) for column in columns)
