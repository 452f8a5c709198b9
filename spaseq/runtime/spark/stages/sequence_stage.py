"""Stage 2 of a bounded run on Spark's workers: sorted packs of solutions in, answers out.

The packs of a partition come sorted by group, bucket and least time. A task takes the packs of one
(group, bucket), and sequences them as a local run does after the end of its streams. Then it takes
the packs of the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spaseq.lang.depth import make_room_for_any
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.events.instants import TimeCounts
from spaseq.runtime.arrivals.tie_numbering import (
    Overlap,
    TieMerge,
    TieTable,
    TimeExtent,
    after,
    earlier,
)
from spaseq.runtime.bounded_sequence import SortedUnit, sequenced
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import UnitGraph
from spaseq.runtime.spark.rows.stage_rows import (
    END,
    EXTENT,
    NO_SPLIT,
    OUTPUT,
    OVERLAP,
    SIDE,
    TIES,
    ReportedRows,
    TaskReport,
    answer_rows,
    rows,
)
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve
from spaseq.stages.sorting import room_for_rows
from spaseq.stages.unit_stages import LazyStages

SOURCE = 2**31
"""The order of side rows: this stage comes after all streams."""


_PLACE = ("unit", "bucket", "split")


@dataclass(slots=True)
class SequenceTask:
    """One task of stage 2; `job` gets its reports, and counts."""

    solve: BoundedSolve
    job: Job
    ties: Mapping[int, TimeCounts] | None = None  # by split; from the rows if not given
    _how: LazyStages = field(init=False)
    _reported: ReportedRows = field(init=False)
    _place: tuple[int, int] | None = None  # the present group and bucket
    _nodes: dict[int, SortedUnit] = field(default_factory=dict)  # the units of the group
    _extents: list[TimeExtent] = field(default_factory=list)
    _merge: TieMerge = field(default_factory=TieMerge)
    _end: int | None = None  # the greatest time of all streams, if their end closes no window

    def __post_init__(self) -> None:
        job = self.job
        self._how = LazyStages(job.knowledge, job.options, job.take_bad)
        self._reported = ReportedRows(job.plans)
        job.on_partial, job.on_changes = self._reported.take_partial, self._reported.take_changes

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer rows and side rows of a partition."""
        for batch in batches:
            query = batch.column("query").to_numpy()
            if (query == TIES).any():
                payloads = batch.filter(pa.array(query == TIES)).column("payload").to_pylist()
                for data in payloads:
                    self._merge.add(TieTable.of(data))
            if (query == EXTENT).any():
                payloads = batch.filter(pa.array(query == EXTENT)).column("payload").to_pylist()
                self._extents += [TimeExtent.of(data) for data in payloads]
            if (query == END).any():
                payloads = batch.filter(pa.array(query == END)).column("payload").to_pylist()
                self.note_ends(map(TimeExtent.of, payloads))
            if (query == SIDE).any():
                yield batch.filter(pa.array(query == SIDE)).select(OUTPUT.names)
            for row in np.flatnonzero(query >= 0).tolist():
                pack_row, payload = batch.slice(row, 1), batch.column("payload")[row].as_py()
                unit, bucket, split = (pack_row.column(n)[0].as_py() for n in _PLACE)
                columns = self.solve.units.plans[unit].patterns.columns
                solutions = SolutionCodec(columns).decode(payload)
                yield from self.take(unit, bucket, split, solutions)
        yield from self.close()

    def note_ends(self, extents: Iterable[TimeExtent]) -> None:
        """Record the times of splits, if the end of the streams closes no window."""
        known = [self._end, *(extent.last for extent in extents)]
        if self.job.options.open_end:
            self._end = max((time for time in known if time is not None), default=None)

    def take(
        self, unit: int, bucket: int, split: int, solutions: SolutionBatch
    ) -> Iterator[pa.RecordBatch]:
        """Take a pack of a split; return the rows of `OUTPUT` of a group or bucket that it ends."""
        group = self.solve.groups.home[unit]
        if self._place != (group.first, bucket):
            yield from self.close()
            make_room_for_any()
            self._place = group.first, bucket
            units, room = self.solve.units, room_for_rows() // self.solve.buckets
            self._nodes = {
                n: SortedUnit(units.unit_plan(n), self.job, self._how, room // len(group.members))
                for n in group.members
            }
        if split != NO_SPLIT:
            streams = self.solve.units.plans[unit].inputs.streams
            solutions = after(solutions, self._ties().get(split), streams)
        self._nodes[unit].sorter.add(solutions)  # stage 1 has counted them

    def _ties(self) -> Mapping[int, TimeCounts]:
        """By split: the events of earlier splits; extents and tables come before packs."""
        if self.ties is None:
            self.ties = {**earlier(self._extents), **self._merge.ties()}
        return self.ties

    def close(self) -> Iterator[pa.RecordBatch]:
        """The rows of `OUTPUT` of the present group and bucket."""
        graph, self._nodes, self._place = UnitGraph(self._nodes.values()), {}, None
        for query, answers in sequenced(self.job, graph, self._end):
            yield answer_rows(query, answers)
            yield from self._reported.taken()
        yield from self._reported.taken()


def run_sequences(
    solve: BoundedSolve, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: sorted rows of `PACKS` to rows of `OUTPUT`."""
    solve.kernels.take()
    report = TaskReport(OUTPUT, SOURCE)
    task = SequenceTask(solve, solve.job(report.tell, report.stats))
    yield from report.rows(_unless_overlap(task.rows(batches), batches), batches)


def _unless_overlap(
    answer_parts: Iterator[pa.RecordBatch], given: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows; if splits overlap, one row that says so, after reading all input."""
    try:
        yield from answer_parts
    except Overlap:
        yield rows(OUTPUT, 1, query=OVERLAP, order="", payload=b"")
        for _ in given:
            pass
