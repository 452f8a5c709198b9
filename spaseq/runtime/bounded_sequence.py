"""Stage 2 of a bounded run: the input of each unit, and the steps of its sequence.

With a second core, changing graphs are made and matched in separate threads, ahead of the sequence
that reads them. Reports of these threads travel with their results, so all reports come from one
thread, in one order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias, TypeVar

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.compiled.arrays import Int64s
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.measures import Measures
from spaseq.memory import collection_paused
from spaseq.plan.families import UnitPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.reading_ahead import run_ahead
from spaseq.records import record
from spaseq.runtime.job.job import Job, counted
from spaseq.runtime.job.unit_graph import UnitGraph, stream_of
from spaseq.stages.held_answers import HeldAnswers
from spaseq.stages.hopeless_rows import leave_out_hopeless
from spaseq.stages.sorting import RowSorter
from spaseq.stages.unit_sequence import FoundAnswers
from spaseq.stages.unit_stages import StageFactory, UnitStage

Report: TypeAlias = "Callable[[], object]"
"""A report to the job, in the thread that runs it."""


class SortedUnit:
    """A unit of a bounded run: solutions of its graph patterns wait here until streams have ended.

    `feed` is as for `UnitNode`. At most `kept_bytes` of solutions are in memory.
    """

    def __init__(self, unit: UnitPlan, job: Job, how: StageFactory, kept_bytes: int) -> None:
        self.unit, self.plan, self.title = unit, unit.plan, unit.plan.identity.title
        self.feed = None if unit.family is not None else stream_of(unit.plan)
        self._stats = job.stats
        self.sorter = RowSorter(unit.plan.patterns.columns, kept_bytes=kept_bytes)
        self.patterns = how.patterns(unit)
        self._counts: Int64s | None = None  # by row of the family's table and GPM
        if unit.family is None:
            self._stats.solutions.setdefault(self.title, {})
        else:
            shape = len(unit.family.rows), len(unit.plan.patterns.gpms)
            self._counts = np.zeros(shape, np.int64)

    def match_batch(
        self, events: EventBatch, index: VerticalPartition | None = None
    ) -> SolutionBatch:
        """The solutions of many events; units share `index`."""
        return self.patterns.match(events, index)

    def push(self, rows: SolutionBatch) -> None:
        """Take solutions."""
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


Made: TypeAlias = "Mapping[SortedUnit, SortedUnit]"
"""For each unit that maintains a graph: the only unit that reads the graph.

The `steps` of the reader make the `steps` of the maintainer.
"""


@record
class SequenceStep:
    """The results of a unit's sequence for some rows, or at the end of the streams.

    Attributes:
        answers: in order, by query.
        watermark: the time (ms) up to which they are certain; None at the end.
        seconds: time of the work.
        partials: partial matches whose windows have closed.
        suppressed, muted: numbers of answers left out, at the end; as in `SequenceStage`.
        reports: earlier reports, in order.
    """

    answers: FoundAnswers
    watermark: int | None
    seconds: float
    partials: Sequence[PartialAnswer]
    suppressed: int
    muted: Mapping[str, int]
    reports: Sequence[Report]

    def report(self, job: Job, unit: UnitPlan) -> None:
        """Report the step to the job."""
        stats = job.stats
        for tell in self.reports:
            tell()
        stats.add_work("sequence", unit.plan.identity.title, self.seconds)
        if self.watermark is not None:
            stats.watermark = self.watermark
        for partial_answer in self.partials:
            job.take_partial(unit.plan, partial_answer)
        for number, pieces in self.answers.items():
            plan = job.plans[number]
            for answers in pieces:
                stats.count_made(plan, len(answers))
                if plan.maintained is not None:
                    job.take_changes(plan, answers)
        stats.suppressed += self.suppressed
        stats.add_muted(self.muted)


class _Reports:
    """Reports that wait for the thread that runs the job."""

    def __init__(self) -> None:
        self._waiting = list[Report]()

    def add(self, *reports: Report) -> None:
        """Add reports, in order."""
        self._waiting += reports

    def taken(self) -> list[Report]:
        """The reports since the last call."""
        reports, self._waiting = self._waiting, []
        return reports

    def bad_of(self, job: Job) -> OnBad:
        """A function that takes bad input for a job."""
        return lambda bad: self.add(partial(job.take_bad, bad))


Item = TypeVar("Item")


def _ahead(items: Iterator[Item], taken: _Reports, others: _Reports, name: str) -> Iterator[Item]:
    """Items that a thread makes ahead, each with the reports in `taken` so far, as `others`."""
    for item, reports in run_ahead(_reporting(items, taken), f"spaseq-{name}"):
        others.add(*reports)
        if item is not None:
            yield item


def _reporting(
    items: Iterator[Item], reports: _Reports
) -> Iterator[tuple[Item | None, list[Report]]]:
    """Each item with the reports before it; the last reports come without an item."""
    try:
        for item in items:
            yield item, reports.taken()
    except Exception:
        yield None, reports.taken()
        raise
    yield None, reports.taken()


def sequenced(
    job: Job, graph: UnitGraph[SortedUnit], end: int | None
) -> Iterator[tuple[int, Sequence[Answer]]]:
    """The answers of units after the end of their streams.

    The answers of a query that registers a stream are matched for the queries after it. The answers
    of a family, which come together, wait for the turn of their queries.

    Args:
        job: the run.
        graph: the units; their solutions have come.
        end: as for `steps`.

    Yields:
        (number of the query, some answers), by query, in order (docs/meaning.md#order-of-answers).
    """
    made, held_answers = _made_for(job, graph), HeldAnswers()
    first = {min(node.unit.plans): node for node in graph if node not in made}
    try:
        for number in sorted(number for node in graph for number in node.unit.plans):
            if number in first:
                yield from _answers(job, first[number], made, end, held_answers)
            for answers in held_answers.take(number):
                yield number, answers
    finally:
        held_answers.close()


def _answers(
    job: Job, node: SortedUnit, made: Made, end: int | None, held_answers: HeldAnswers
) -> Iterator[tuple[int, Sequence[Answer]]]:
    """The answers of a query. The answers of a family are held."""
    for step in steps(job, node, made, end):
        step.report(job, node.unit)
        for number, pieces in step.answers.items():
            for answers in pieces:
                if node.unit.family is not None:
                    held_answers.add(number, answers)
                    continue
                if node.feed is not None:
                    at = time.perf_counter()
                    node.feed.give(answers)
                    job.stats.add("graph patterns", time.perf_counter() - at)
                if node.plan.maintained is None:
                    yield number, answers
        job.on_progress(job.stats)


def _made_for(job: Job, graph: UnitGraph[SortedUnit]) -> Made:
    """For each unit that makes the steps of another: that unit."""
    made = dict[SortedUnit, SortedUnit]()
    for maker in graph if job.measures is None else ():
        if maker.plan.maintained is not None and maker.feed is not None:
            readers = graph.readers(maker.feed.iri)
            if len(readers) == 1 and readers[0].unit.family is None:
                made[maker] = readers[0]
    return made


def steps(job: Job, node: SortedUnit, made: Made, end: int | None) -> Iterator[SequenceStep]:
    """Run the sequence of a unit over its input.

    Args:
        job: the run.
        node: the unit.
        made: the result of `_made_for`.
        end: the time (ms) up to which open windows close at the end; None: they stay open.
    """
    unit, plan, sorter, reports = node.unit, node.plan, node.sorter, _Reports()
    node.tell_counts()
    with collection_paused():
        if job.measures is None and not leave_out_hopeless(plan, sorter):
            return
    is_before = job.measures is None and plan.is_matched_at_once
    staged = unit
    if is_before:
        staged = UnitPlan({unit.only[0]: replace(plan, changing=None)})
    stage = StageFactory(job.knowledge, job.options, reports.bad_of(job)).sequence(staged)
    before = _Reports() if is_before else reports
    makers = [maker for maker, reader in made.items() if reader is node]
    changes = [_changes(job, maker, made, end, before) for maker in makers]
    watch = _SequenceWatch(job.measures, stage)
    batches = watch.sorting(sorter.batches(changes))
    if plan.inputs.windows and plan.sequence.own_partition:
        batches = _larger(batches, plan)
    if is_before:
        batches = _ahead(_matched(job, plan, batches, before), before, reports, "graphs")
    for rows, watermark in batches:
        at = time.perf_counter()
        stage.push(rows)
        answers = stage.advance(watermark)
        seconds = time.perf_counter() - at
        watch.take(rows, answers, seconds)
        partials = stage.partials()
        yield SequenceStep(answers, watermark, seconds, partials, 0, {}, reports.taken())
    answers = stage.close(end)
    watch.take(None, answers, 0.0)
    left_out = stage.suppressed, stage.muted
    yield SequenceStep(answers, None, 0.0, stage.partials(), *left_out, reports.taken())


def _larger(
    batches: Iterator[tuple[SolutionBatch, int]], plan: QueryPlan
) -> Iterator[tuple[SolutionBatch, int]]:
    """Fewer batches, for windows of many partitions: each partition of a batch has a fixed cost."""
    columns, most = plan.patterns.columns, thresholds.current.partitioned_rows
    some, watermark = list[SolutionBatch](), 0
    for rows, watermark in batches:
        some.append(rows)
        if sum(map(len, some)) >= most:
            yield SolutionBatch.concat(some, columns), watermark
            some = []
    if some:
        yield SolutionBatch.concat(some, columns), watermark


def _changes(
    job: Job, maker: SortedUnit, made: Made, end: int | None, reports: _Reports
) -> Iterator[SolutionBatch]:
    """The changes of a graph as rows of the only query that reads it, in order of time.

    Args:
        maker: the query that maintains the graph.
        reports: takes the reports of this query.
    """
    stream, reader, own = maker.feed, made[maker], _Reports()
    assert stream is not None

    def rows() -> Iterator[SolutionBatch]:
        for step in steps(job, maker, made, end):
            own.add(partial(step.report, job, maker.unit))
            for answers in chain.from_iterable(step.answers.values()):
                at = time.perf_counter()
                found = reader.match_batch(stream.events(answers))
                seconds = time.perf_counter() - at
                told = partial(job.stats.add, "graph patterns", seconds)
                own.add(told, partial(reader.count, found))
                yield found

    return filter(len, _ahead(rows(), own, reports, "changes"))


def _matched(
    job: Job, plan: QueryPlan, batches: Iterator[tuple[SolutionBatch, int]], reports: _Reports
) -> Iterator[tuple[SolutionBatch, int]]:
    """The solutions of batches of a query that reads changing graphs, each with its time."""
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
    """Measures the sequence of a query, if the run has measures.

    Its memory is the size of its state after a batch. The state is measured only while that takes
    at most a fifth of the time of the sequence itself, and once in any case.
    """

    def __init__(self, measures: Measures | None, stage: UnitStage) -> None:
        self._measures, self._stage, self._looking = measures, stage, 0.0

    def sorting(
        self, batches: Iterator[tuple[SolutionBatch, int]]
    ) -> Iterator[tuple[SolutionBatch, int]]:
        """The batches of a sorter, with their time measured."""
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

    def take(self, rows: SolutionBatch | None, answers: FoundAnswers, seconds: float) -> None:
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
        count = sum(len(piece) for pieces in answers.values() for piece in pieces)
        measure.took(count, size, 0 if rows is None else len(rows))
