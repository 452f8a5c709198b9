"""The local runtime: a loop in this process drives the stages, without Spark and without timers."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import nullcontext

from spaseq.algebra.answers import Answer
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.memory import collection_paused, old_objects_kept
from spaseq.plan.families import QueryUnits, families_of, may_begin
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.runtime.bounded_sequence import SortedUnit, sequenced
from spaseq.runtime.job.job import Job, ProcessCounts
from spaseq.runtime.job.unit_graph import UnitGraph
from spaseq.sources.base import Source
from spaseq.stages.sorting import room_for_rows
from spaseq.stages.unit_stages import StageFactory

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
    beyond a limit are sorted on disk.

    Yields:
        (number of the query, some answers), as `sequenced` does.

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
    how = StageFactory(job.knowledge, job.options, job.take_bad, measures=job.measures)
    with collection_paused():
        begun = may_begin(job.options)
        families = () if job.measures is not None else families_of(job.plans, begun)
        units = QueryUnits.of(job.plans, families)
        room = room_for_rows() // max(1, len(job.plans))
        unit_plans = [units.unit_plan(number) for number in units.plans]
        nodes = [SortedUnit(unit, job, how, room * len(unit.plans)) for unit in unit_plans]
    graph = UnitGraph(nodes)
    last = read_streams(job, graph, how)
    yield from sequenced(job, graph, last if job.options.open_end else None)


def read_streams(job: Job, graph: UnitGraph[SortedUnit], how: StageFactory) -> int:
    """Read a job's streams to their ends; return the greatest time (ms) in them.

    `how` has made the stages of the units.
    """
    return max((_read_stream(job, s, graph, how) for s in job.streams), default=_BEFORE_ALL)


def _read_stream(job: Job, source: Source, graph: UnitGraph[SortedUnit], how: StageFactory) -> int:
    """Read a stream; return the greatest time (ms) of its events."""
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
        index = VerticalPartition(batch)  # shared by all queries
        with collection_paused():
            idle = how.idle(index)
            stats.add("graph patterns", time.perf_counter() - read)
            for each in graph.readers(source.iri):
                if each.patterns in idle:
                    continue
                at = time.perf_counter()
                each.push(each.match_batch(batch, index))
                stats.add_work("graph patterns", each.title, time.perf_counter() - at)
        at = time.perf_counter()
        job.on_progress(stats)
    stats.add("ingest", time.perf_counter() - at)
    return end


def _bytes(events: EventBatch) -> int:
    """The bytes of the columns of some events, without the texts of their terms."""
    columns = (events.time, events.k, events.start, events.s, events.p, events.o)
    return sum(int(column.nbytes) for column in columns)
