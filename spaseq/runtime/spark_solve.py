"""Stage 1 on Spark's workers: a stream's input in, rows of graph-pattern solutions out."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from spaseq.engine import Matcher
from spaseq.errors import SpaseqError
from spaseq.kb.endpoint import Repeats, ServiceOptions
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import BadInput, EventBatch, SolutionBatch, SolutionColumns
from spaseq.rdf.blocks import OnBad
from spaseq.rdf.readers import StreamOptions
from spaseq.runtime.job import Stats
from spaseq.runtime.spark_rows import (
    SideRows,
    buckets,
    solution_rows,
    solution_schema,
    widest,
)
from spaseq.runtime.works import Work, paths_from, read_work

_PROGRESS_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class StoredKnowledge:
    """A KB as a file that every worker opens once, by `name`, which tells its content."""

    path: str
    name: str
    shipped: bool = False  # through Spark's files; `path` is then its name among them
    endpoints: tuple[tuple[str, str], ...] = ()
    services: ServiceOptions = ServiceOptions()  # noqa: RUF009 - frozen

    def named(self, name: str) -> StoredKnowledge:
        """Another version of the KB, which is kept in the same place; without a name, this one."""
        if not name:
            return self
        path = name if self.shipped else str(Path(self.path).with_name(name))
        return replace(self, path=path, name=name)

    def open(self) -> KnowledgeBase:
        """The KB; what is in the file is one object per worker process."""
        opened = _opened(self.located().path, self.name)
        known = dict(self.endpoints)
        return replace(opened, endpoints=known, addresses=known, services=self.services)

    def located(self) -> StoredKnowledge:
        """The same where this worker has the file, wherever it may go from here."""
        if not self.shipped:
            return self
        from pyspark import SparkFiles

        return replace(self, path=os.path.abspath(SparkFiles.get(self.path)), shipped=False)


@lru_cache(maxsize=2)
def _opened(path: str, name: str) -> KnowledgeBase:
    return KnowledgeBase.open(Path(path))


class Solver:
    """The matchers of every plan that reads one stream, and what they have cost so far."""

    def __init__(
        self,
        plans: tuple[QueryPlan, ...],
        iri: str,
        knowledge: StoredKnowledge,
        stats: Stats,
        on_bad: OnBad,
    ) -> None:
        kb = knowledge.open()
        readers = [(i, plan) for i, plan in enumerate(plans) if iri in plan.streams]
        self._matchers = [(i, Matcher(plan, kb, on_bad)) for i, plan in readers]
        self._stats = stats

    def solve(self, events: Iterator[EventBatch]) -> Iterator[tuple[int, SolutionBatch]]:
        """(query, its solutions) for every batch of events and every query that has any."""
        for batch in self._timed(events):
            self._stats.events += len(batch)
            self._stats.triples += batch.triples
            for query, matcher in self._matchers:
                start = time.perf_counter()
                solutions = matcher.match(batch)
                self._stats.add("graph patterns", time.perf_counter() - start)
                if len(solutions):
                    yield query, solutions

    def _timed(self, events: Iterator[EventBatch]) -> Iterator[EventBatch]:
        while True:
            start = time.perf_counter()
            batch = next(events, None)
            self._stats.add("ingest", time.perf_counter() - start)
            if batch is None:
                return
            yield batch


@dataclass(frozen=True, slots=True)
class BoundedSolve:
    """Stage 1 of a bounded run: each row of its input is a `Work`, pickled."""

    plans: tuple[QueryPlan, ...]
    streams: tuple[StreamOptions, ...]
    knowledge: StoredKnowledge
    buckets: int  # per query that has a key
    parts: int  # partitions of stage 2
    progress: str | None = None  # directory for counts while it runs, where the driver sees it
    directory: str = "."  # what relative paths start from
    limit_per_event: int | None = None  # of stage 2

    @property
    def width(self) -> SolutionColumns:
        """The most columns that any plan has."""
        return widest(p.columns for p in self.plans)

    @property
    def schema(self) -> pa.Schema:
        return solution_schema(self.width)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `WORK_DDL` to rows of `schema`."""
        located = replace(self, knowledge=self.knowledge.located())
        with paths_from(self.directory):
            for batch in batches:
                for work in batch.column("work").to_pylist():
                    yield from located._work(pickle.loads(work))

    def _work(self, work: Work) -> Iterator[pa.RecordBatch]:
        side = SideRows(self.schema, work.number)
        stats, bad, repeats = Stats(), list[BadInput](), Repeats()
        try:
            for rows in self._rows(work, stats, bad.append):
                if bad:
                    yield side.batch(bad)
                    stats.bad += len(bad)
                    bad.clear()
                yield rows
                self._report(work.number, stats)
        except SpaseqError as error:
            yield side.batch([error])
        stats.bad += len(bad)
        stats.repeated = repeats.take()
        yield side.batch([*bad, stats])

    def _rows(
        self, work: Work, stats: Stats, on_bad: Callable[[BadInput], None]
    ) -> Iterator[pa.RecordBatch]:
        options = self.streams[work.stream]
        events = _watched(read_work(work, options, on_bad), stats)
        return self.solved(options.iri, events, stats, on_bad)

    def solved(
        self, iri: str, events: Iterator[EventBatch], stats: Stats, on_bad: OnBad
    ) -> Iterator[pa.RecordBatch]:
        """Rows of `schema` for the events of one stream."""
        schema = self.schema
        solver = Solver(self.plans, iri, self.knowledge, stats, on_bad)
        for query, solutions in solver.solve(events):
            plan = self.plans[query]
            bucket = buckets(solutions, plan.key, self.buckets)
            part = (bucket + query) % self.parts
            yield solution_rows(solutions, plan.columns, query, bucket, part, schema)

    def _report(self, number: int, stats: Stats) -> None:
        if self.progress is not None:
            ProgressFile(Path(self.progress, f"work-{number}")).write(stats)


def _watched(events: Iterator[EventBatch], stats: Stats) -> Iterator[EventBatch]:
    """The same batches; `stats.watermark` becomes the greatest time so far."""
    for batch in events:
        latest = int(batch.time.max())
        stats.watermark = latest if stats.watermark is None else max(stats.watermark, latest)
        yield batch


@dataclass(frozen=True, slots=True)
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
