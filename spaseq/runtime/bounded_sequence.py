"""The second stage of a query in a bounded run: its input, and what its sequence gives.

With a second core, graphs that change are made and matched in threads of their own, ahead of the
sequence that reads them. What these threads would report goes along with what they make, so all
reports come from one thread, in one order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.collection_pause import collection_paused
from spaseq.compiled.arrays import Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.machine_memory import machine_memory
from spaseq.measures import Measures
from spaseq.plan.changing_graphs import is_before_sequence
from spaseq.plan.families import UnitPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.reading_ahead import run_ahead
from spaseq.records import record
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.runtime.job.job import Job, counted
from spaseq.stages.family_patterns import patterns_of
from spaseq.stages.hopeless_rows import leave_out_hopeless
from spaseq.stages.joint_patterns import JointPatterns
from spaseq.stages.sequence import SequenceStage
from spaseq.stages.sorting import RowSorter

Report: TypeAlias = "Callable[[], object]"
"""Tells the job something, in the thread that runs it."""


class UnitInput:
    """The input of a unit's second stage: sorted solutions of its graph patterns.

    A unit is what is evaluated as one: a query by itself, or a family of queries.

    `is_done` says that the answers of a family have been made.
    """

    def __init__(self, unit: UnitPlan, job: Job, joint: JointPatterns) -> None:
        self.unit, self.is_done, self._stats = unit, False, job.stats
        self.streams, self.title = unit.plan.inputs.streams, unit.plan.identity.title
        room = min(thresholds.current.memory_bytes, machine_memory() // 8)
        kept = room * len(unit.plans) // len(job.plans)
        self.sorter = RowSorter(unit.plan.patterns.columns, kept_bytes=kept)
        given = job.knowledge, job.take_bad, job.options.limits, joint, job.measures
        self.patterns = patterns_of(unit, *given)
        self._counts: Int64s | None = None  # by row of the family's table and GPM
        if unit.family is None:
            self._stats.solutions.setdefault(self.title, {})
        else:
            shape = len(unit.family.rows), len(unit.plan.patterns.gpms)
            self._counts = np.zeros(shape, np.int64)

    def take(self, events: EventBatch, index: VerticalPartition | None = None) -> None:
        """Match events."""
        rows = self.patterns.match(events, index)
        self.count(rows)
        self.sorter.add(rows)

    def count(self, rows: SolutionBatch) -> None:
        """Count solutions."""
        if self.unit.family is None or self._counts is None:
            self._stats.count_solutions(self.unit.plan, rows)
        else:
            self._counts += counted(self.unit.family, rows)

    def tell_counts(self) -> None:
        """Tell the job how many solutions there are so far, by member of a family."""
        if self.unit.family is not None and self._counts is not None:
            self._stats.count_members(self.unit.family, self.unit.plans, self._counts)
            self._counts[:] = 0


Inputs: TypeAlias = "Sequence[UnitInput]"
"""The input of each query; the members of a family have one together."""


@record
class SequenceStep:
    """What a query's sequence gives for some rows, or at the end of the streams.

    Attributes:
        answers: in order.
        watermark: the time (ms) up to which they are certain; None at the end.
        seconds: that it took.
        partials: partial matches whose windows have closed.
        suppressed, muted: the answers left out, at the end; as `SequenceStage` has them.
        reports: what comes before, in order.
    """

    answers: Sequence[Answer]
    watermark: int | None
    seconds: float
    partials: Sequence[PartialAnswer]
    suppressed: int
    muted: Mapping[str, int]
    reports: Sequence[Report]

    def report(self, job: Job, number: int) -> None:
        """Tell the job what the query with a number did."""
        plan, stats = job.plans[number], job.stats
        for tell in self.reports:
            tell()
        stats.add_work("sequence", plan.identity.title, self.seconds)
        if self.watermark is not None:
            stats.watermark = self.watermark
        job.take_partials(number, self.partials)
        stats.count_made(plan, len(self.answers))
        if plan.maintained is not None:
            job.take_changes(plan, self.answers)
        stats.suppressed += self.suppressed
        stats.add_muted(self.muted)


class _Reports:
    """What waits until it can be told in the thread that runs the job."""

    def __init__(self) -> None:
        self._waiting = list[Report]()

    def add(self, *reports: Report) -> None:
        """Take some, in order."""
        self._waiting += reports

    def taken(self) -> list[Report]:
        """Those that came since the last call."""
        reports, self._waiting = self._waiting, []
        return reports

    def bad_of(self, job: Job) -> OnBad:
        """What takes bad input for a job."""
        return lambda bad: self.add(partial(job.take_bad, bad))


Item = TypeVar("Item")


def _ahead(items: Iterator[Item], taken: _Reports, others: _Reports, name: str) -> Iterator[Item]:
    """Items that a thread makes ahead; with each, `others` takes what `taken` has got by then."""
    for item, reports in run_ahead(_reporting(items, taken), f"spaseq-{name}"):
        others.add(*reports)
        if item is not None:
            yield item


def _reporting(
    items: Iterator[Item], reports: _Reports
) -> Iterator[tuple[Item | None, list[Report]]]:
    """Each item with the reports before it; the last ones come without an item."""
    try:
        for item in items:
            yield item, reports.taken()
    except Exception:
        yield None, reports.taken()
        raise
    yield None, reports.taken()


def readers_of(plan: QueryPlan, inputs: Inputs) -> list[UnitInput]:
    """The inputs that read the stream which a query registers, or the graph that it maintains."""
    made = plan.identity.register
    if made is None:
        return []
    return [each for each in dict.fromkeys(inputs) if made in each.streams]


def made_for(job: Job, inputs: Inputs) -> dict[int, int]:
    """By the number of a query that maintains a graph: the only query that reads the graph.

    `steps` of the one makes the steps of the other.
    """
    if job.measures is not None:
        return {}
    readers_made = dict[int, int]()
    for maker, plan in enumerate(job.plans):
        readers = readers_of(plan, inputs) if plan.maintained is not None else []
        if len(readers) == 1 and readers[0].unit.family is None:
            readers_made[maker] = inputs.index(readers[0])
    return readers_made


def steps(
    job: Job, number: int, inputs: Inputs, made: Mapping[int, int], end: int | None
) -> Iterator[SequenceStep]:
    """Run the sequence of a query over its input.

    Args:
        job: the run.
        number: the query, which is in no family.
        inputs: of all queries.
        made: as `made_for` gives it.
        end: the time (ms) up to which windows that are open close in the end; None if they do not.
    """
    plan, unit_input, reports = job.plans[number], inputs[number], _Reports()
    with collection_paused():
        if job.measures is None and not leave_out_hopeless(plan, unit_input.sorter):
            return
        is_before = job.measures is None and is_before_sequence(plan)
        staged = replace(plan, changing=None) if is_before else plan
        stage = SequenceStage(staged, job.options, job.knowledge, reports.bad_of(job))
    before = _Reports() if is_before else reports
    makers = [maker for maker, reader in made.items() if inputs[reader] is unit_input]
    changes = [_changes(job, maker, inputs, made, end, before) for maker in makers]
    watch = _SequenceWatch(job.measures, stage)
    batches = watch.sorting(unit_input.sorter.batches(changes))
    if is_before:
        batches = _ahead(_matched(job, plan, batches, before), before, reports, "graphs")
    for rows, watermark in batches:
        at = time.perf_counter()
        stage.push(rows)
        answers = stage.advance(watermark)
        seconds = time.perf_counter() - at
        watch.take(rows, len(answers), seconds)
        partials = stage.partials()
        yield SequenceStep(answers, watermark, seconds, partials, 0, {}, reports.taken())
    answers = stage.close(end)
    watch.take(None, len(answers), 0.0)
    left_out = stage.suppressed, stage.muted
    yield SequenceStep(answers, None, 0.0, stage.partials(), *left_out, reports.taken())


def _changes(
    job: Job,
    maker: int,
    inputs: Inputs,
    made: Mapping[int, int],
    end: int | None,
    reports: _Reports,
) -> Iterator[SolutionBatch]:
    """The changes of a graph as rows of the only query that reads it, in order of time.

    Args:
        maker: the number of the query that maintains the graph.
        reports: takes what this query reports.
    """
    plan, own = job.plans[maker], _Reports()
    (reader,) = readers_of(plan, inputs)

    def rows() -> Iterator[SolutionBatch]:
        stream = RegisteredStream(plan.identity.register or "")
        for step in steps(job, maker, inputs, made, end):
            own.add(partial(step.report, job, maker))
            at = time.perf_counter()
            found = reader.patterns.match(stream.events(step.answers))
            seconds = time.perf_counter() - at
            own.add(partial(job.stats.add, "graph patterns", seconds), partial(reader.count, found))
            yield found

    return filter(len, _ahead(rows(), own, reports, "changes"))


def _matched(
    job: Job, plan: QueryPlan, batches: Iterator[tuple[SolutionBatch, int]], reports: _Reports
) -> Iterator[tuple[SolutionBatch, int]]:
    """The solutions of batches of a query that reads graphs that change, each with its time."""
    from spaseq.stages.changing_knowledge import ChangingKnowledge  # few queries need it

    knowledge = ChangingKnowledge(plan, job.knowledge, reports.bad_of(job), job.options.limits)
    for rows, watermark in batches:
        at = time.perf_counter()
        with collection_paused():
            solutions = knowledge.matched(rows)
        seconds = time.perf_counter() - at
        reports.add(partial(job.stats.add_work, "sequence", plan.identity.title, seconds))
        yield solutions, watermark


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
                rows_and_time = next(batches, None)
            if rows_and_time is None:
                return
            measure.took(len(rows_and_time[0]), rows_and_time[0].nbytes)
            yield rows_and_time

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
