"""Stage 1 on Spark's workers: a stream's input in, rows of graph-pattern solutions out."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np
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
from spaseq.runtime.arrivals.tie_numbering import TimeExtent, provisional
from spaseq.runtime.job.job import Job, Stats
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.rows.run_files import Packer
from spaseq.runtime.spark.rows.stage_rows import END, EXTENT, NO_SPLIT, PACKS, TaskReport, rows
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.sources.base import Source
from spaseq.stages.unit_stages import StageFactory

_PROGRESS_SECONDS = 0.5


class Solver:
    """Matches one stream's events for every query that reads it, and counts the work."""

    def __init__(
        self,
        units: QueryUnits,
        iri: str,
        knowledge: StoredKnowledge,
        stats: Stats,
        on_bad: OnBad,
        limits: Limits,
    ) -> None:
        make_room_for_any()
        kb = knowledge.open()
        readers = [i for i, plan in units.plans.items() if iri in plan.inputs.streams]
        self._how = StageFactory(kb, StageOptions(limits=limits), on_bad)
        self._matchers = [(i, self._how.patterns(units.unit_plan(i))) for i in readers]
        self._units, self._stats = units, stats

    def solve(self, events: Iterator[EventBatch]) -> Iterator[tuple[int, SolutionBatch]]:
        """(unit, solutions) for every batch of events and every unit that has solutions."""
        for batch in self._timed(events):
            self._stats.events += len(batch)
            self._stats.triples += batch.triples
            self._stats.filtered += batch.filtered
            self._stats.skipped_groups += batch.skipped_groups
            index = VerticalPartition(batch)  # shared by all queries
            start = time.perf_counter()
            with collection_paused():
                idle = self._how.idle(index)
            self._stats.add("graph patterns", time.perf_counter() - start)
            for unit, matcher in self._matchers:
                if matcher in idle:
                    continue
                start = time.perf_counter()
                solutions = matcher.match(batch, index)
                title = self._units.plans[unit].identity.title
                self._stats.add_work("graph patterns", title, time.perf_counter() - start)
                if len(solutions):
                    self._stats.count_unit(self._units.unit_plan(unit), solutions)
                    yield unit, solutions

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

    def job(self, on_bad: OnBad, stats: Stats) -> Job:
        """The job of a task of stage 2, with all streams read."""
        return Job(
            self.units.queries,
            (),
            self.knowledge.open(),
            self.options,
            on_bad=on_bad,
            on_lost=on_bad,
            stats=stats,
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
                    yield from located._read(pickle.loads(splits[number]))

    def _read(self, split: InputSplit) -> Iterator[pa.RecordBatch]:
        report, extent = TaskReport(PACKS, split.number), TimeExtent(split.stream, split.number)
        events = extent.watch(self.events(split, report.stats, report.take))
        iri, number = self.streams[split.stream].iri, NO_SPLIT
        if not split.time_scanned:
            number, events = split.number, provisional(events)
        yield from report.rows(self.solved(iri, events, report.stats, report.take, number))
        part, data = np.arange(self.parts, dtype=np.int32), [extent.data()] * self.parts
        if not split.time_scanned:
            yield rows(PACKS, self.parts, part=part, query=EXTENT, payload=data)
        if self.options.open_end:
            yield rows(PACKS, self.parts, part=part, query=END, payload=data)

    def solved(
        self,
        iri: str,
        events: Iterator[EventBatch],
        stats: Stats,
        on_bad: OnBad,
        split: int = NO_SPLIT,
    ) -> Iterator[pa.RecordBatch]:
        """Rows of `PACKS` for the events of one stream."""
        packers = {
            unit: Packer(self.groups, unit, self.buckets, self.parts, split)
            for unit in self.units.plans
        }
        limits = self.options.limits
        solver = Solver(self.units, iri, self.knowledge, stats, on_bad, limits)
        for unit, solutions in solver.solve(events):
            yield from packers[unit].add(solutions)
        for packer in packers.values():
            yield from packer.rest()

    def events(self, split: InputSplit, stats: Stats, on_bad: OnBad) -> Iterator[EventBatch]:
        """The events of a split; `stats.watermark` becomes the greatest time so far."""
        for batch in self.streams[split.stream].open(on_bad, split.split):
            if len(batch):
                latest, known = int(batch.time.max()), stats.watermark
                stats.watermark = latest if known is None else max(known, latest)
            yield batch
            self._report(split.number, stats)

    def _report(self, number: int, stats: Stats) -> None:
        if self.progress is not None and stats.watermark is not None:
            ProgressFile(Path(self.progress, f"split-{number}")).write(stats)


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
