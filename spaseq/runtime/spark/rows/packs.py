"""Packs the solutions of a bounded run for stage 2: sorts them in runs and cuts these into packs.

Spark sorts the packs of a (query, bucket) by their least time. Packs come from sorted runs, so few
of them overlap even if a stream is out of order, and stage 2 holds only those that overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.spark.rows.stage_rows import NO_SPLIT, PACKS, buckets, pack, rows

RUN_ROWS = 200_000
"""At most this many solutions are sorted at a time."""

PACK_ROWS = 10_000


class Packer:
    """Makes rows of `PACKS` from one query's solutions.

    A batch that begins after the end of the last one starts a new run.

    Args:
        plan: the query's.
        query: its number.
        count: the number of buckets of stage 2.
        parts: the number of partitions of stage 2.
        split: the number of the split that the solutions are of.
    """

    def __init__(
        self, plan: QueryPlan, query: int, count: int, parts: int, split: int = NO_SPLIT
    ) -> None:
        self._plan, self._query = plan, query
        self._count, self._parts, self._split = count, parts, split
        self._held: list[SolutionBatch] = []
        self._rows = 0
        self._end = 0  # the greatest time held

    def add(self, solutions: SolutionBatch) -> Iterator[pa.RecordBatch]:
        """Take solutions; rows of the last run, if it has ended."""
        if self._held and (solutions.time.min() >= self._end or self._rows >= RUN_ROWS):
            yield self.rest()
        latest = int(solutions.time.max())
        self._end = max(self._end, latest) if self._held else latest
        self._held.append(solutions.compact())  # drops the text that was read
        self._rows += len(solutions)

    def rest(self) -> pa.RecordBatch:
        """Rows of the present run, which ends."""
        run = SolutionBatch.concat(self._held, self._plan.patterns.columns)
        self._held, self._rows = [], 0
        if (run.time[1:] < run.time[:-1]).any():
            run = run.take(np.argsort(run.time, kind="stable"))
        bucket = buckets(run, self._plan.sequence.key.variables, self._count)
        given: dict[str, list[Any]] = {"bucket": [], "part": [], "time": [], "payload": []}
        for b in np.unique(bucket).tolist():
            mine = np.flatnonzero(bucket == b)
            for start in range(0, len(mine), PACK_ROWS):
                piece = run.take(mine[start : start + PACK_ROWS])
                given["bucket"].append(b)
                given["part"].append((b + self._query) % self._parts)
                given["time"].append(int(piece.time[0]))
                given["payload"].append(pack(piece, self._plan.patterns.columns))
        return rows(PACKS, len(given["time"]), query=self._query, split=self._split, **given)
