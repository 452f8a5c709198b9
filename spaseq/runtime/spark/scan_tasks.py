"""Tasks that read the Parquet files of DataFrames: whole runs, or stage 1 in splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.errors import SpaseqError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.depth import make_room_for_any
from spaseq.lift.parquet_scan import ParquetScan, ScanSplit
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import paths_from
from spaseq.runtime.job.job import Job
from spaseq.runtime.local import run_batches
from spaseq.runtime.spark.lifted_frames import PartSolve
from spaseq.runtime.spark.rows.stage_rows import (
    OUTPUT,
    OUTPUT_DDL,
    PACKS_DDL,
    SideRows,
    answer_rows,
    partial_rows,
)
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve


@record
class WholeRun:
    """A bounded run of queries over the streams of `solve`."""

    solve: BoundedSolve
    plans: tuple[QueryPlan, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `OUTPUT`, in the one task that has a row."""
        self.solve.kernels.take()
        make_room_for_any()
        knowledge = self.solve.knowledge.open()
        with paths_from(self.solve.directory):
            for batch in batches:
                if len(batch):
                    yield from self._rows(knowledge)

    def _rows(self, knowledge: KnowledgeBase) -> Iterator[pa.RecordBatch]:
        solve, bad, partials = self.solve, list[BadInput](), list[tuple[str, PartialAnswer]]()
        job = Job(
            self.plans,
            solve.streams,
            knowledge,
            solve.options,
            on_bad=bad.append,
            on_partial=lambda name, partial: partials.append((name, partial)),
        )
        numbers = {plan.identity.name: number for number, plan in enumerate(job.plans)}
        side = SideRows(OUTPUT, 0)
        try:
            last: tuple[int, Sequence[Answer]] = (0, ())  # reported at the end
            for number, answers in chain(run_batches(job), [last]):
                if answers:
                    yield answer_rows(number, answers)
                for name, of_query in groupby(partials, itemgetter(0)):
                    yield partial_rows(numbers[name], [partial for _, partial in of_query])
                partials.clear()
                if bad:
                    yield side.batch(bad)
                    bad.clear()
        except SpaseqError as error:
            yield side.batch([*bad, error])
            return
        yield side.batch([*bad, job.stats])


FEW_ROWS = 1_000_000
"""Number of rows up to which one task is faster than several, which exchange their solutions."""

FEW_CORES = 2
"""Number of cores up to which exchanging solutions costs more than parallel work saves."""


def in_one_task(spark: Any, scans: Sequence[ParquetScan], solve: BoundedSolve) -> bool:
    """Whether one task should do a whole run: with few cores, or a small input."""
    if spark.sparkContext.defaultParallelism <= FEW_CORES:
        return True
    return not solve.streams and sum(scan.rows for scan in scans) <= FEW_ROWS


def whole_output(
    spark: Any, plans: tuple[QueryPlan, ...], solve: BoundedSolve, scans: Sequence[ParquetScan]
) -> Any:
    """The DataFrame of `OUTPUT` rows of a run in one task."""
    task = WholeRun(replace(solve, streams=(*solve.streams, *scans)), plans)
    one = spark.range(0, 1, 1, 1)
    return one.mapInArrow(lambda batches: task.run(batches), OUTPUT_DDL)


def scan_solutions(spark: Any, scan: ParquetScan, solve: BoundedSolve, number: int) -> Any:
    """Stage 1 over the files of a scan: the DataFrame of solution rows.

    `number` is as in `lifted_frames.lifted_solutions`.
    """
    splits = scan.divided(spark.sparkContext.defaultParallelism)
    task = ScanSolve(solve, scan, number, tuple(splits))
    ids = spark.range(0, len(splits), 1, len(splits))
    return ids.mapInArrow(lambda batches: task.solved(batches), PACKS_DDL)


@record
class ScanSolve:
    """Stage 1 of a bounded run over the splits of one scan."""

    solve: BoundedSolve
    scan: ParquetScan
    number: int
    splits: tuple[ScanSplit, ...]

    def solved(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows with the `id` of a split to rows of `PACKS`."""
        self.solve.kernels.take()
        for batch in batches:
            for number in batch.column("id").to_pylist():
                part = PartSolve(self.solve, self.scan.iri, self.number, number)
                events = partial(self.scan.open, split=self.splits[number])
                yield from part.packs(events, alone=len(self.splits) == 1)
