"""Tasks that read the Parquet files of DataFrames: whole runs, or stage 1 in splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from spaseq.lift.parquet_scan import ParquetScan, ScanSplit
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record
from spaseq.runtime.spark.lifted_frames import PartSolve
from spaseq.runtime.spark.rows.stage_rows import OUTPUT_DDL, PACKS_DDL
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve
from spaseq.runtime.spark.stages.whole_run import WholeRun

FEW_ROWS = 1_000_000
"""Up to this many rows, one task answers sooner than several could exchange their solutions."""

FEW_CORES = 2
"""Up to this many cores, exchanging solutions costs more time than working side by side saves."""


def in_one_task(spark: Any, scans: Sequence[ParquetScan], solve: BoundedSolve) -> bool:
    """Whether one task is to do a whole run: if there are few cores, or little to read."""
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
            for place in batch.column("id").to_pylist():
                part = PartSolve(self.solve, self.scan.iri, self.number, place)
                events = partial(self.scan.open, split=self.splits[place])
                yield from part.packs(events, alone=len(self.splits) == 1)
