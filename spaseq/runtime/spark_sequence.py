"""Stage 2 of a bounded run on Spark's workers: sorted solution rows in, answers out.

The rows of a partition come sorted by query, bucket and instant, so that the sequence stage of one
(query, bucket) after the other streams through them and nothing is held longer than a window.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from spaseq.algebra.answers import Answer
from spaseq.engine import SequenceStage
from spaseq.errors import SpaseqError
from spaseq.kb.endpoint import Repeats
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import BadInput
from spaseq.rdf.blocks import OnBad, warn
from spaseq.runtime.job import Stats
from spaseq.runtime.spark_rows import (
    OUTPUT,
    SIDE,
    SideRows,
    answer_rows,
    read_solutions,
    runs,
)
from spaseq.runtime.spark_solve import StoredKnowledge

SOURCE = 2**31
"""Side rows of this stage come after those of all streams."""


@dataclass(slots=True)
class _Group:
    """The stage that is being fed, and whose it is."""

    query: int
    bucket: int
    stage: SequenceStage


@dataclass(slots=True)
class SequenceTask:
    """One task of stage 2."""

    plans: tuple[QueryPlan, ...]
    stats: Stats
    limit_per_event: int | None = None
    knowledge: StoredKnowledge | None = None
    on_bad: OnBad = warn
    _group: _Group | None = None

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer rows and side rows of a partition."""
        for batch in batches:
            for query, bucket, stretch in runs(batch):
                if query == SIDE:
                    yield stretch.select(OUTPUT.names)
                else:
                    yield from self._feed(query, bucket, stretch)
        yield from self._close()

    def _feed(self, query: int, bucket: int, stretch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        group = self._group
        if group is None or (group.query, group.bucket) != (query, bucket):
            yield from self._close()
            stage = SequenceStage(
                self.plans[query],
                self.limit_per_event,
                self.knowledge.open() if self.knowledge is not None else None,
                self.on_bad,
            )
            group = self._group = _Group(query, bucket, stage)
        start = time.perf_counter()
        solutions = read_solutions(stretch, self.plans[query].columns)
        group.stage.push(solutions)
        # Further rows of the last time may follow in the next batch.
        answers = group.stage.advance(int(solutions.time[-1]) - 1)
        yield from self._out(query, answers, start)

    def _close(self) -> Iterator[pa.RecordBatch]:
        if self._group is None:
            return
        start = time.perf_counter()
        query, answers = self._group.query, self._group.stage.close()
        self.stats.withheld += self._group.stage.withheld
        self._group = None
        yield from self._out(query, answers, start)

    def _out(self, query: int, answers: list[Answer], start: float) -> Iterator[pa.RecordBatch]:
        self.stats.matches += len(answers)
        batch = answer_rows(query, answers) if answers else None
        self.stats.add("sequence", time.perf_counter() - start)
        if batch is not None:
            yield batch


def run_sequences(
    plans: tuple[QueryPlan, ...],
    limit_per_event: int | None,
    knowledge: StoredKnowledge,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: sorted rows of stage 1 to rows of `OUTPUT`."""
    stats, side, bad = Stats(), SideRows(OUTPUT, SOURCE), list[BadInput]()
    repeats = Repeats()
    try:
        yield from SequenceTask(plans, stats, limit_per_event, knowledge, bad.append).rows(batches)
    except SpaseqError as error:
        yield side.batch([error])
        for _ in batches:  # read to the end, as Spark expects
            pass
    stats.bad += len(bad)
    stats.repeated = repeats.take()
    yield side.batch([*bad, stats])
