"""Stage 2 of a bounded run on Spark's workers: sorted packs of solutions in, answers out.

The packs of a partition come sorted by query, bucket and least time. The task processes one
(query, bucket) after the other and holds only packs whose times overlap.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spaseq.algebra.answers import Answer
from spaseq.errors import SpaseqError
from spaseq.kb.service_failure import RetryCount
from spaseq.lang.depth import make_room_for_any
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad, warn
from spaseq.runtime.arrivals.tie_numbering import EarlierTies, Overlap, TimeExtent, earlier
from spaseq.runtime.job.job import Stats
from spaseq.runtime.spark.rows.stage_rows import (
    EXTENT,
    OUTPUT,
    OVERLAP,
    SIDE,
    SideRows,
    answer_rows,
    partial_rows,
    rows,
    unpack,
)
from spaseq.runtime.spark.stages.stored_knowledge import StoredKnowledge
from spaseq.stages.sequence import SequenceStage

SOURCE = 2**31
"""The order of side rows: this stage comes after all streams."""

ADVANCE_ROWS = 65_536
"""About this many solutions are processed at a time: every step costs, most with many keys."""

_PLACE = ("bucket", "time", "split")


@dataclass(slots=True)
class _Group:
    """The stage that takes the packs, and its query and bucket."""

    query: int
    bucket: int
    stage: SequenceStage
    rows: int = 0  # since the last advance


@dataclass(slots=True)
class SequenceTask:
    """One task of stage 2."""

    plans: tuple[QueryPlan, ...]
    stats: Stats
    options: StageOptions = StageOptions()
    knowledge: StoredKnowledge | None = None
    on_bad: OnBad = warn
    ties: dict[int, EarlierTies] | None = None  # by split; from the rows' extents if not given
    _group: _Group | None = None
    _extents: list[TimeExtent] = field(default_factory=list)

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer rows and side rows of a partition."""
        for batch in batches:
            query = batch.column("query").to_numpy()
            if (query == EXTENT).any():
                found = batch.filter(pa.array(query == EXTENT)).column("payload").to_pylist()
                self._extents += [TimeExtent.of(data) for data in found]
            if (query == SIDE).any():
                yield batch.filter(pa.array(query == SIDE)).select(OUTPUT.names)
            for row in np.flatnonzero(query >= 0).tolist():
                place, payload = batch.slice(row, 1), batch.column("payload")[row].as_py()
                bucket, first, split = (place.column(n)[0].as_py() for n in _PLACE)
                columns = self.plans[int(query[row])].patterns.columns
                solutions = unpack(payload, columns)
                yield from self.take(int(query[row]), bucket, first, split, solutions)
        yield from self.close()

    def take(
        self, query: int, bucket: int, first: int, split: int, solutions: SolutionBatch
    ) -> Iterator[pa.RecordBatch]:
        """Answer rows that a pack of a split allows; `first` is the pack's least time (ms)."""
        group = self._group
        if group is None or (group.query, group.bucket) != (query, bucket):
            yield from self.close()
            make_room_for_any()
            stage = SequenceStage(
                self.plans[query],
                self.options,
                self.knowledge.open() if self.knowledge is not None else None,
                self.on_bad,
            )
            group = self._group = _Group(query, bucket, stage)
        began = time.perf_counter()
        answers: Sequence[Answer] = ()
        if group.rows >= ADVANCE_ROWS:
            answers = group.stage.advance(first - 1)  # later packs begin no earlier
            group.rows = 0
        group.stage.push(self._numbered(split, solutions))
        group.rows += len(solutions)
        yield from self._out(group, answers, began)

    def _numbered(self, split: int, solutions: SolutionBatch) -> SolutionBatch:
        """Solutions numbered as in the whole stream; all extents come before the first pack."""
        if self.ties is None:
            self.ties = earlier(self._extents)
        known = self.ties.get(split)
        return solutions if known is None else known.renumber(solutions)

    def close(self) -> Iterator[pa.RecordBatch]:
        """The answer rows that are left of the present query and bucket."""
        if self._group is None:
            return
        start = time.perf_counter()
        group, self._group = self._group, None
        answers = group.stage.close()
        self.stats.suppressed += group.stage.suppressed
        yield from self._out(group, answers, start)

    def _out(
        self, group: _Group, answers: Sequence[Answer], start: float
    ) -> Iterator[pa.RecordBatch]:
        self.stats.matches += len(answers)
        batches = [answer_rows(group.query, answers)] if answers else []
        partials = group.stage.partials()
        if partials:
            batches.append(partial_rows(group.query, partials))
        self.stats.add("sequence", time.perf_counter() - start)
        yield from batches


def run_sequences(
    plans: tuple[QueryPlan, ...],
    options: StageOptions,
    knowledge: StoredKnowledge,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: sorted rows of `PACKS` to rows of `OUTPUT`."""
    stats, side, bad = Stats(), SideRows(OUTPUT, SOURCE), list[BadInput]()
    repeats = RetryCount()
    try:
        yield from SequenceTask(plans, stats, options, knowledge, bad.append).rows(batches)
    except SpaseqError as error:
        yield side.batch([error])
        _exhaust(batches)
    except Overlap:
        yield rows(OUTPUT, 1, query=OVERLAP, order="", payload=b"")
        _exhaust(batches)
    stats.bad += len(bad)
    stats.repeated = repeats.take()
    yield side.batch([*bad, stats])


def _exhaust(batches: Iterator[pa.RecordBatch]) -> None:
    """Read to the end, as Spark expects."""
    for _ in batches:
        pass
