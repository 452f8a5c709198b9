"""Both stages of a bounded run whose driver and workers are on one machine.

A task writes its rows to a file of the run's directory, and returns their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import InputSplit, paths_from
from spaseq.runtime.spark.rows.run_files import TaskFile
from spaseq.runtime.spark.rows.stage_rows import SIDE, OutputRow, Pack, TaskReport
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve
from spaseq.runtime.spark.stages.sequence_stage import sequences


@record
class FileTasks:
    """The tasks of a run, which keep their files in a directory."""

    solve: BoundedSolve
    directory: str

    def solved(self, split: InputSplit) -> tuple[list[Pack], bool]:
        """Stage 1 of a split; whether it has failed."""
        self.solve.kernels.take()
        report = TaskReport(split.number, Pack.of_messages)
        with closing(self._file()) as file, paths_from(self.solve.directory):
            packs = self.solve.packs(split, self.solve.opened(split), report, file)
            found = [
                pack._replace(payload=file.payload(pack.payload)) if pack.query == SIDE else pack
                for some in report.rows(packs)
                for pack in some
            ]
        return found, report.failed

    def sequenced(self, packs: Sequence[Pack]) -> list[OutputRow]:
        """Stage 2 of the packs of a part, in order."""
        with closing(self._file()) as file:
            return [
                row._replace(payload=file.payload(row.payload))
                for some in sequences(self.solve, packs)
                for row in some
            ]

    def _file(self) -> TaskFile:
        """A file that no other task has, and no earlier attempt at this task."""
        return TaskFile(Path(self.directory, f"rows-{uuid4().hex}"))
