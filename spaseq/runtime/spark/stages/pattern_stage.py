"""Stage 1 on Spark's workers: a stream's input in, rows of graph-pattern solutions out."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from spaseq.compiled import mode
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.lang.depth import make_room_for_any
from spaseq.limits import Limits
from spaseq.memory import collection_paused
from spaseq.options import StageOptions
from spaseq.plan.families import QueryUnits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import InputSplit, paths_from
from spaseq.runtime.arrivals.tie_numbering import PartTimes, TimeExtent, provisional
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.rows.run_files import BucketRuns, TaskFile, packs_of
from spaseq.runtime.spark.rows.stage_rows import (
    END,
    EXTENT,
    NO_SPLIT,
    PACKS,
    TIES,
    Pack,
    TaskReport,
    batches_of,
)
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.sources.base import Source, SplitNumbering
from spaseq.sources.files import MOST_SPLIT_BYTES
from spaseq.stages.hopeless_rows import leave_out_of_part
from spaseq.stages.sorting import room_for_rows
from spaseq.stages.unit_stages import MatchingStage, StageFactory

_PROGRESS_SECONDS = 0.5


class Solver:
    """Matches events for every query that reads their stream, and counts the work."""

    def __init__(
        self,
        units: QueryUnits,
        knowledge: StoredKnowledge,
        stats: Stats,
        on_bad: OnBad,
        limits: Limits,
    ) -> None:
        make_room_for_any()
        kb = knowledge.open()
        self._how = StageFactory(kb, StageOptions(limits=limits), on_bad)
        self._matchers = dict[int, MatchingStage]()  # by unit, made for the first event
        self._readers = dict[str, list[int]]()
        self._units, self._stats = units, stats

    def solve(self, events: Iterator[EventBatch]) -> Iterator[tuple[int, SolutionBatch]]:
        """(unit, solutions) for every batch of events and every unit that has solutions."""
        for batch in self._timed(events):
            self._stats.events += len(batch)
            self._stats.triples += batch.triples
            self._stats.filtered += batch.filtered
            self._stats.skipped_groups += batch.skipped_groups
            readers = self._readers_of(batch.stream)
            index = VerticalPartition(batch)  # shared by all queries
            start = time.perf_counter()
            with collection_paused():
                idle = self._how.idle(index)
            self._stats.add("graph patterns", time.perf_counter() - start)
            for unit in readers:
                matcher = self._matchers[unit]
                if matcher in idle:
                    continue
                start = time.perf_counter()
                solutions = matcher.match(batch, index)
                title = self._units.plans[unit].identity.title
                self._stats.add_work("graph patterns", title, time.perf_counter() - start)
                if len(solutions):
                    self._stats.count_unit(self._units.unit_plan(unit), solutions)
                    yield unit, solutions

    def _readers_of(self, iri: str) -> list[int]:
        """The units that read a stream; they have matchers."""
        if iri not in self._readers:
            plans = self._units.plans.items()
            readers = [unit for unit, plan in plans if iri in plan.inputs.streams]
            for unit in readers:
                if unit not in self._matchers:
                    self._matchers[unit] = self._how.patterns(self._units.unit_plan(unit))
            self._readers[iri] = readers
        return self._readers[iri]

    def _timed(self, events: Iterator[EventBatch]) -> Iterator[EventBatch]:
        while True:
            start = time.perf_counter()
            batch = next(events, None)
            self._stats.add("ingest", time.perf_counter() - start)
            if batch is None:
                return
            yield batch


@record
class BoundedSolve:
    """Stage 1 of a bounded run."""

    groups: QueryGroups
    streams: tuple[Source, ...]
    knowledge: StoredKnowledge
    buckets: int  # per group that has a key
    parts: int  # partitions of stage 2
    progress: str | None = None  # directory for counts while it runs, where the driver sees it
    directory: str = "."  # what relative paths start from
    options: StageOptions = StageOptions()
    kernels: mode.Mode = field(default_factory=mode.current)

    @property
    def units(self) -> QueryUnits:
        """The units of the run."""
        return self.groups.units

    def job(self, report: TaskReport[Any]) -> Job:
        """The job of a task of stage 2, with all streams read."""
        return Job(
            self.units.queries,
            (),
            self.knowledge.open(),
            self.options,
            on_bad=report.tell,
            on_lost=report.tell,
            stats=report.stats,
        )

    def run(
        self, splits: Sequence[bytes], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows with the `id` of one of the pickled splits to rows of `PACKS`."""
        self.kernels.take()
        located = replace(self, knowledge=self.knowledge.located())
        with paths_from(self.directory):
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    split = pickle.loads(splits[number])
                    report = TaskReport(split.number, Pack.of_messages)
                    packs = located.packs(split, located.opened(split), report)
                    yield from batches_of(PACKS, report.rows(packs))

    def opened(self, split: InputSplit) -> Callable[[OnBad], Iterator[EventBatch]]:
        """Opens a split of `streams`."""
        return partial(self.streams[split.stream].open, split=split.split)

    def packs(
        self,
        split: InputSplit,
        opened: Callable[[OnBad], Iterator[EventBatch]],
        report: TaskReport[Pack],
        file: TaskFile | None = None,
    ) -> Iterator[list[Pack]]:
        """The packs of a split as they are made, and what stage 2 needs to number its events.

        Args:
            split: the split.
            opened: opens it.
            report: takes bad input, and counts.
            file: gets the solutions; without one they are in the packs.
        """
        extent, times = (
            TimeExtent(split.stream, split.number),
            PartTimes(split.stream, split.number),
        )
        events, number = (
            extent.watch(self._counted(split, opened(report.take), report.stats)),
            NO_SPLIT,
        )
        if split.numbering is SplitNumbering.APART:
            events = times.watch(events)
        if split.numbering is not SplitNumbering.WHOLE:
            number, events = split.number, provisional(events)
        plans = self.units.plans
        runs = {unit: self._runs(unit, split) for unit in plans}
        where = self.groups, self.parts, number, file
        solver = Solver(self.units, self.knowledge, report.stats, report.take, self.options.limits)
        for unit, solutions in solver.solve(events):
            yield []  # the report may have messages
            for run in runs[unit].add(solutions):
                yield packs_of(run, unit, *where)
        for unit, rest in runs.items():
            after = extent.first if split.follows else None
            before = extent.last if split.precedes else None
            rest.leave_out(partial(leave_out_of_part, plans[unit], after=after, before=before))
            for run in rest.rest():
                yield packs_of(run, unit, *where)
        if split.numbering is SplitNumbering.ORDERED:
            yield self._for_all(Pack(query=EXTENT, payload=extent.data()))
        for table in times.tables():
            yield self._for_all(Pack(query=TIES, time=int(table.times[0]), payload=table.data()))
        if self.options.open_end:
            yield self._for_all(Pack(query=END, payload=extent.data()))

    def _for_all(self, pack: Pack) -> list[Pack]:
        """A row for each task of stage 2."""
        return [pack._replace(part=part) for part in range(self.parts)]

    def _runs(self, unit: int, split: InputSplit) -> BucketRuns:
        """Runs of a unit, whose rows wait if some may be left out at the end of the split.

        Splits in order follow each other in time; else `Overlap` will be raised. The runs of all
        units take no more memory than the text of a split.
        """
        plan = self.units.plans[unit]
        room = min(room_for_rows() // self.buckets, MOST_SPLIT_BYTES) // len(self.groups.home)
        whole = not (split.follows or split.precedes) or split.numbering is SplitNumbering.ORDERED
        kept = room if whole and len(plan.inputs.streams) == 1 else 0
        return BucketRuns(plan.patterns.columns, self.groups.key(unit), self.buckets, kept)

    def _counted(
        self, split: InputSplit, events: Iterator[EventBatch], stats: Stats
    ) -> Iterator[EventBatch]:
        """The events; `stats.watermark` becomes the greatest time so far."""
        for batch in events:
            if len(batch):
                latest, known = int(batch.time.max()), stats.watermark
                stats.watermark = latest if known is None else max(known, latest)
            yield batch
            if self.progress is not None and stats.watermark is not None:
                ProgressFile(Path(self.progress, f"split-{split.number}")).write(stats)


@record
class ProgressFile:
    """Counts of a running task in a file, for a driver on the same machine. Best effort."""

    path: Path

    def write(self, stats: Stats) -> None:
        """Replace the counts, at most twice a second."""
        try:
            if time.time() - self.path.stat().st_mtime < _PROGRESS_SECONDS:
                return
        except OSError:
            pass
        try:
            fresh = self.path.with_suffix(".new")
            fresh.write_text(f"{stats.events} {stats.triples} {stats.watermark}")
            fresh.replace(self.path)
        except OSError:
            return

    def read(self) -> Stats:
        """The counts last written."""
        events, triples, watermark = self.path.read_text().split()
        return Stats(int(events), int(triples), watermark=int(watermark))
