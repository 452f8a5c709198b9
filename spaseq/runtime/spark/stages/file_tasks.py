"""Both stages of a bounded run whose driver and workers are on one machine.

A task writes its rows to files of the run's directory, and returns their positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa

from spaseq.errors import SpaseqError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.events.instants import TimeCounts
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import InputSplit, paths_from
from spaseq.runtime.arrivals.tie_numbering import TimeExtent, provisional
from spaseq.runtime.job.job import ProcessCounts, Stats
from spaseq.runtime.spark.rows.run_files import (
    BlockFile,
    Blocks,
    BucketRuns,
    RowFile,
    RowRun,
    RunFile,
    RunReader,
    StoredPiece,
    StoredRow,
)
from spaseq.runtime.spark.rows.stage_rows import NO_SPLIT, PARTIAL
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve, Solver
from spaseq.runtime.spark.stages.sequence_stage import SequenceTask
from spaseq.sources.files import MOST_SPLIT_BYTES
from spaseq.stages.hopeless_rows import leave_out_of_part
from spaseq.stages.sorting import room_for_rows


class SolvedSplit(NamedTuple):
    """The result of stage 1 for a split.

    `messages` are blocks of messages in order. `failed` says that one of them is an error. The
    extent `numbers` events of equal time, unless the split was scanned for its times.
    """

    pieces: list[StoredPiece]
    messages: list[Blocks]
    extent: TimeExtent
    numbers: bool
    failed: bool


class Sequenced(NamedTuple):
    """The result of a task of stage 2: rows of `OUTPUT`, and blocks of messages."""

    answers: list[StoredRow]
    partials: list[RowRun]
    messages: list[Blocks]


@record
class FileTasks:
    """The tasks of a run, which keep their files in a directory.

    `ends` has the first and the last split of each stream.
    """

    solve: BoundedSolve
    directory: str
    ends: Mapping[int, tuple[int, int]]

    def solved(self, split: InputSplit) -> SolvedSplit:
        """Stage 1 of a split."""
        self.solve.kernels.take()
        stats, bad, counts, failed = Stats(), list[BadInput](), ProcessCounts(), False
        extent = TimeExtent(split.stream, split.number)
        pieces: list[StoredPiece] = []
        messages: list[Blocks] = []
        with closing(BlockFile(self._new("messages"))) as file, paths_from(self.solve.directory):
            try:
                for some in self._pieces(split, extent, stats, bad):
                    pieces += some
                    if bad:
                        stats.count_bad(bad)
                        messages.append(file.append(bad))
                        bad.clear()
            except SpaseqError as error:
                failed = True
                messages.append(file.append([error]))
            stats.count_bad(bad)
            counts.add_to(stats)
            messages.append(file.append([*bad, stats]))
        return SolvedSplit(pieces, messages, extent, not split.time_scanned, failed)

    def _pieces(
        self, split: InputSplit, extent: TimeExtent, stats: Stats, bad: list[BadInput]
    ) -> Iterator[list[StoredPiece]]:
        """The pieces of runs as they are written; an empty list for each batch without a piece."""
        solve, number = self.solve, NO_SPLIT
        iri, limits = solve.streams[split.stream].iri, solve.options.limits
        plans, units = solve.units.plans, solve.units
        runs = {unit: self._runs(unit) for unit in plans}
        solver = Solver(units, iri, solve.knowledge, stats, bad.append, limits)
        events = extent.watch(solve.events(split, stats, bad.append))
        if not split.time_scanned:
            number, events = split.number, provisional(events)
        with closing(RunFile(self._new("solutions"))) as file:
            for unit, solutions in solver.solve(events):
                yield []
                for run in runs[unit].add(solutions):
                    yield file.write(solve.groups, unit, number, run)
            for unit, rest in runs.items():
                self._leave_out(split, extent, plans[unit], rest)
                for run in rest.rest():
                    yield file.write(solve.groups, unit, number, run)

    def _runs(self, unit: int) -> BucketRuns:
        """Runs of a unit, whose rows wait if some may be left out at the end of the split.

        The runs of all units take no more memory than the text of a split.
        """
        groups, plan = self.solve.groups, self.solve.units.plans[unit]
        room = room_for_rows() // self.solve.buckets
        few = min(room, MOST_SPLIT_BYTES) // len(groups.home)
        kept = few if len(plan.inputs.streams) == 1 else 0
        return BucketRuns(plan.patterns.columns, groups.key(unit), self.solve.buckets, kept)

    def _leave_out(
        self, split: InputSplit, extent: TimeExtent, plan: QueryPlan, rows: BucketRuns
    ) -> None:
        """Leave out rows of a split that can be in no match.

        Splits without a time scan follow each other in time; else `Overlap` will be raised.
        """
        first, last = self.ends[split.stream]
        if first == last or not split.time_scanned:
            after = None if split.number == first else extent.first
            before = None if split.number == last else extent.last
            rows.leave_out(lambda waiting: leave_out_of_part(plan, waiting, after, before))

    def sequenced(
        self,
        pieces: Sequence[StoredPiece],
        ties: Mapping[int, TimeCounts],
        extents: Sequence[TimeExtent] = (),
    ) -> Sequenced:
        """Stage 2 of the pieces of some groups and buckets, in order.

        `extents` are the extents of all splits.
        """
        self.solve.kernels.take()
        stats, bad, counts = Stats(), list[BadInput](), ProcessCounts()
        task = SequenceTask(self.solve, self.solve.job(bad.append, stats), dict(ties))
        task.note_ends(extents)
        with (
            closing(BlockFile(self._new("answers"))) as answers,
            closing(RowFile(BlockFile(self._new("partial")))) as partial,
            closing(BlockFile(self._new("messages"))) as file,
        ):
            answer_rows_, messages = list[StoredRow](), list[Blocks]()
            try:
                for rows in self._rows(task, pieces):
                    number = rows.column("query")[0].as_py()
                    order, payload = (rows.column(n).to_pylist() for n in ("order", "payload"))
                    if number >= PARTIAL:
                        partial.append(number, order, payload)
                        continue
                    for at, block in zip(order, payload, strict=True):
                        answer_rows_.append(StoredRow(number, at, answers.append(block)))
            except SpaseqError as error:
                messages.append(file.append([error]))
            counts.add_to(stats)
            messages.append(file.append([*bad, stats]))
            return Sequenced(answer_rows_, partial.runs, messages)

    def _rows(self, task: SequenceTask, pieces: Sequence[StoredPiece]) -> Iterator[pa.RecordBatch]:
        readers = {unit: RunReader(plan) for unit, plan in self.solve.units.plans.items()}
        for piece in pieces:
            rows = readers[piece.unit].rows(piece)
            yield from task.take(piece.unit, piece.bucket, piece.split, rows)
        yield from task.close()

    def _new(self, kind: str) -> Path:
        """A file that no other task has, and no earlier attempt at this task."""
        return Path(self.directory, f"{kind}-{uuid4().hex}")
