"""Known Parquet files as a source, in splits of whole row groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from spaseq.errors import InputError
from spaseq.lift.lifted_source import LiftedFiles
from spaseq.lift.table_files import TableFile, TableFormat
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.sources.base import Split, SplitNumbering


@dataclass(frozen=True, slots=True)
class ParquetPart(TableFile):
    """The row groups `first` to `end` of a file that has `size` bytes."""

    size: int
    first: int
    end: int

    def row_groups(self, count: int) -> range:
        if self.end > count:
            raise self.changed()
        return range(self.first, self.end)

    def changed(self) -> InputError:
        """The error for a file that has changed since it was scanned."""
        return InputError(f"{self.path} has changed since the query was prepared")


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A Parquet file: its bytes, and the rows of its row groups."""

    path: str
    size: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScanSplit(Split):
    """Row groups that a task reads: (number of the file, first, end) of each part."""

    number: int
    parts: tuple[tuple[int, int, int], ...]

    @property
    def numbering(self) -> SplitNumbering:
        return SplitNumbering.APART


@dataclass(frozen=True, slots=True)
class ParquetScan(LiftedFiles):
    """Scanned files, as events, for at most some tasks. A file that cannot be read to its end
    fails.
    """

    scanned: tuple[ScannedFile, ...]
    tasks: int = 1

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(sum(file.rows) for file in self.scanned)

    def files(self) -> Sequence[TableFile]:
        return self._parts(self.divided(1)[0])

    def describe(self) -> str:
        return f"{len(self.scanned)} Parquet files of a DataFrame"

    def divided(self, count: int) -> list[ScanSplit]:
        """At most `count` splits of about as many rows, in order; at least one."""
        goal = max(1, -(-self.rows // count))
        splits: list[list[tuple[int, int, int]]] = [[]]
        waiting = 0
        for number, file in enumerate(self.scanned):
            for group, rows in enumerate(file.rows):
                if waiting and waiting + rows // 2 >= goal and len(splits) < count:
                    splits.append([])
                    waiting = 0
                _extend(splits[-1], number, group)
                waiting += rows
        return [ScanSplit(number, tuple(parts)) for number, parts in enumerate(splits)]

    def splits(
        self, pool: Executor, *, split_bytes: int | None = None, time_scan: bool = True
    ) -> list[ScanSplit]:
        return self.divided(self.tasks)

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        scan = self.divided(1)[0] if split is None else split
        assert isinstance(scan, ScanSplit)
        maker = self.maker()
        maker.number_after(scan.number)

        def checked(bad: BadInput) -> None:
            if bad.line is None:  # of no row
                raise InputError(f"{bad.file}: {bad.reason}")
            on_bad(bad)

        for part in self._parts(scan):
            for batch in self._of_file(part, maker, checked):
                if len(batch.events) or batch.events.filtered:
                    yield batch.events

    def _parts(self, split: ScanSplit) -> list[ParquetPart]:
        return [_part(self.scanned[number], first, end) for number, first, end in split.parts]


def _part(file: ScannedFile, first: int, end: int) -> ParquetPart:
    """The part of a file.

    Raises:
        InputError: the file has changed.
    """
    part = ParquetPart(file.path, TableFormat.PARQUET, file.size, first, end)
    try:
        if os.stat(file.path).st_size != file.size:
            raise part.changed()
    except OSError as error:
        raise InputError(f"cannot read {file.path}: {error.strerror}") from None
    return part


def _extend(parts: list[tuple[int, int, int]], file: int, group: int) -> None:
    """Add a row group to the parts of a split; it may continue the last one."""
    if parts and parts[-1][0] == file and parts[-1][2] == group:
        parts[-1] = (file, parts[-1][1], group + 1)
    else:
        parts.append((file, group, group + 1))
