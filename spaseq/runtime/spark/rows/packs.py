"""Solutions on their way to stage 2 of a bounded run: sorted runs, cut into packs.

Spark sorts the packs of a (query, bucket) by their least time. Because packs come from sorted runs,
few of them overlap, however disordered a stream is, and stage 2 need not hold more than those.
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
"""So many solutions at most are sorted at a time."""

PACK_ROWS = 10_000


class Packer:
    """Makes rows of `PACKS` of one query's solutions.

    A batch whose times follow those of the ones before needs no sorting with them.

    Args:
        plan: the query's.
        query: its number.
        count: into how many buckets its solutions are divided.
        parts: into how many partitions stage 2 is.
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
        """Take solutions; rows of earlier ones."""
        if self._held and (solutions.time.min() >= self._end or self._rows >= RUN_ROWS):
            yield self.rest()
        latest = int(solutions.time.max())
        self._end = max(self._end, latest) if self._held else latest
        self._held.append(solutions.compact())  # without the text that was read
        self._rows += len(solutions)

    def rest(self) -> pa.RecordBatch:
        """Rows of all that is held."""
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
