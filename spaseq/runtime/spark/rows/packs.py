"""Packs of solutions for stage 2, as rows that Spark shuffles and sorts by time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_codec import SolutionCodec
from spaseq.runtime.spark.rows.bucket_runs import BucketRun, BucketRuns
from spaseq.runtime.spark.rows.stage_rows import NO_SPLIT, PACKS, rows


class Packer:
    """Makes rows of `PACKS` from one query's solutions.

    Args:
        plan: the query's, or a family's.
        key: the variables by which stage 2 is split, or None.
        query: its number.
        count: the number of buckets of stage 2.
        parts: the number of partitions of stage 2.
        split: the number of the split that the solutions are of.
    """

    def __init__(
        self,
        plan: QueryPlan,
        key: Sequence[str] | None,
        query: int,
        count: int,
        parts: int,
        split: int = NO_SPLIT,
    ) -> None:
        self._codec, self._query, self._parts = SolutionCodec(plan.patterns.columns), query, parts
        self._split, self._runs = split, BucketRuns(plan.patterns.columns, key, count)

    def add(self, solutions: SolutionBatch) -> Iterator[pa.RecordBatch]:
        """Take solutions; rows of the last run, if it has ended."""
        return map(self._packed, self._runs.add(solutions))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Rows of the present run, which ends."""
        return map(self._packed, self._runs.rest())

    def _packed(self, run: BucketRun) -> pa.RecordBatch:
        return rows(
            PACKS,
            len(run.pieces),
            query=self._query,
            split=self._split,
            bucket=[p.bucket for p in run.pieces],
            part=[part_of(self._query, p.bucket, self._parts) for p in run.pieces],
            time=[p.time for p in run.pieces],
            payload=[self._codec.encode(run.rows.take(slice(p.start, p.end))) for p in run.pieces],
        )


def part_of(query: int, bucket: int, parts: int) -> int:
    """The partition of stage 2 that a bucket of a query is in."""
    return (bucket + query) % parts
