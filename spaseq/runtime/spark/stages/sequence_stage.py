"""Stage 2 of a bounded run on Spark's workers: sorted packs of solutions in, answers out.

The packs of a partition come sorted by group, bucket and least time. A task takes the packs of one
(group, bucket), and sequences them as a local run does after the end of its streams. Then it takes
the packs of the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from spaseq.lang.depth import make_room_for_any
from spaseq.rdf.events.instants import TimeCounts
from spaseq.runtime.arrivals.input_splits import paths_from
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
from spaseq.runtime.local import run_batches
from spaseq.runtime.spark.rows.run_files import PackReader
from spaseq.runtime.spark.rows.stage_rows import (
    END,
    EXTENT,
    NO_SPLIT,
    OUTPUT,
    OVERLAP,
    SIDE,
    TIES,
    OutputRow,
    Pack,
    ReportedRows,
    TaskReport,
    batches_of,
)
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve
from spaseq.stages.sorting import room_for_rows
from spaseq.stages.unit_stages import LazyStages

SOURCE = 2**31
"""The order of side rows: this stage comes after all streams."""


@dataclass(slots=True)
class SequenceTask:
    """One task of stage 2; `job` gets its reports, and counts."""

    solve: BoundedSolve
    job: Job
    _how: LazyStages = field(init=False)
    _reported: ReportedRows = field(init=False)
    _reader: PackReader = field(init=False)
    _place: tuple[int, int] | None = None  # the present group and bucket
    _nodes: dict[int, SortedUnit] = field(default_factory=dict)  # the units of the group
    _extents: list[TimeExtent] = field(default_factory=list)
    _merge: TieMerge = field(default_factory=TieMerge)
    _ties: Mapping[int, TimeCounts] | None = None  # by split: the events of earlier splits
    _end: int | None = None  # the greatest time of all streams, if their end closes no window

    def __post_init__(self) -> None:
        job = self.job
        self._how = LazyStages(job.knowledge, job.options, job.take_bad)
        self._reader = PackReader(self.solve.units.plans)
        self._reported = ReportedRows(job)

    def rows(self, packs: Iterable[Pack]) -> Iterator[list[OutputRow]]:
        """Answer rows and side rows of a partition; extents and tables come before packs."""
        for pack in packs:
            if pack.query >= 0:
                yield from self._take(pack)
            elif pack.query == SIDE:
                yield [OutputRow(SIDE, pack.order, pack.payload)]
            elif pack.query == TIES:
                self._merge.add(TieTable.of(pack.payload))
            elif pack.query == EXTENT:
                self._extents.append(TimeExtent.of(pack.payload))
            elif pack.query == END:
                end = TimeExtent.of(pack.payload).last
                self._end = max((t for t in (self._end, end) if t is not None), default=None)
        yield from self._close()

    def _take(self, pack: Pack) -> Iterator[list[OutputRow]]:
        """Take solutions; return the rows of a group or bucket that ends with them."""
        group, plan = self.solve.groups.home[pack.unit], self.solve.units.plans[pack.unit]
        if self._place != (group.first, pack.bucket):
            yield from self._close()
            make_room_for_any()
            self._place = group.first, pack.bucket
            units, room = self.solve.units, room_for_rows() // self.solve.buckets
            self._nodes = {
                n: SortedUnit(units.unit_plan(n), self.job, self._how, room // len(group.members))
                for n in group.members
            }
        solutions = self._reader.rows(pack)
        if pack.split != NO_SPLIT:
            if self._ties is None:
                self._ties = {**earlier(self._extents), **self._merge.ties()}
            solutions = after(solutions, self._ties.get(pack.split), plan.inputs.streams)
        self._nodes[pack.unit].sorter.add(solutions)  # stage 1 has counted them

    def _close(self) -> Iterator[list[OutputRow]]:
        """The rows of the present group and bucket."""
        graph, self._nodes, self._place = UnitGraph(self._nodes.values()), {}, None
        yield from self._reported.with_answers(sequenced(self.job, graph, self._end))


def run_sequences(
    solve: BoundedSolve, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: sorted rows of `PACKS` to rows of `OUTPUT`."""
    packs = (pack for batch in batches for pack in _packs(batch))
    yield from batches_of(OUTPUT, sequences(solve, packs))


def _packs(batch: pa.RecordBatch) -> Iterator[Pack]:
    *columns, payload = batch.columns
    payloads = (each.as_py() for each in payload)  # large ones, one at a time
    return map(Pack, *(column.to_pylist() for column in columns), payloads)


def sequences(solve: BoundedSolve, packs: Iterable[Pack]) -> Iterator[list[OutputRow]]:
    """The rows of a task of stage 2; if splits overlap, one row says so."""
    solve.kernels.take()
    report = TaskReport(SOURCE, OutputRow.of_messages)
    task = SequenceTask(solve, solve.job(report))
    yield from report.rows(_unless_overlap(task.rows(packs), packs), packs)


def _unless_overlap(
    found: Iterator[list[OutputRow]], packs: Iterable[Pack]
) -> Iterator[list[OutputRow]]:
    try:
        yield from found
    except Overlap:
        yield [OutputRow(OVERLAP, "", b"")]
        for _ in packs:  # Spark expects a task to read all of its input
            pass


def whole_run(solve: BoundedSolve, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: rows of `OUTPUT` of both stages, in the one task that has a row."""
    solve.kernels.take()
    make_room_for_any()
    for _ in (batch for batch in batches if len(batch)):
        report = TaskReport(SOURCE, OutputRow.of_messages)
        job = replace(solve.job(report), streams=solve.streams)
        found = ReportedRows(job).with_answers(run_batches(job))
        with paths_from(solve.directory):
            yield from batches_of(OUTPUT, report.rows(found))
