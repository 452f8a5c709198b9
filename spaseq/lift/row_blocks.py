"""Blocks of consecutive rows, as readers give them: cells, tables, and rows that are not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spaseq.compiled.arrays import Int64s
from spaseq.lift.cells import Cell


@dataclass(frozen=True, slots=True)
class RowBlock:
    """n consecutive rows of one file: the fields that the lift wants and the rows have.

    `lines` are the places for reports: lines of a text, from 1, and otherwise numbers of rows.
    """

    lines: list[int]  # [n]
    numbers: list[int]  # [n] the row's number in its file, from 1
    columns: dict[str, list[Cell]]  # [n] each

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Consecutive rows of a table; `first` is the number of the first one.

    In a text, that is on the line `first + above`, and each row has one line. `is_utf8` says that
    all strings are known to be valid.
    """

    batch: Any  # Arrow record batch
    first: int
    above: int = 0
    is_utf8: bool = False

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def lines(self) -> range:
        """The places of the rows for reports: their lines, or their numbers."""
        first = self.first + self.above
        return range(first, first + len(self))

    def part(self, start: int, rows: int) -> TableBlock:
        """At most `rows` rows from the row `start` on."""
        part = self.batch.slice(start, rows)
        return TableBlock(part, self.first + start, self.above, self.is_utf8)

    def rows(self, wanted: frozenset[str]) -> RowBlock:
        """The rows with cells for the wanted fields."""
        from spaseq.lift.arrow_rows import batch_columns  # it imports pyarrow

        numbers = [*range(self.first, self.first + len(self))]
        return RowBlock([*self.lines], numbers, batch_columns(self.batch, wanted))


@dataclass(frozen=True, slots=True)
class FilteredRows:
    """Consecutive rows that are no events by a FILTER of the lift, and are not read."""

    rows: int
    groups: int = 0  # of Parquet, which hold them

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True, slots=True)
class TimedRows:
    """Consecutive rows that are events of which no query needs more than the times."""

    times: Int64s  # [n] ms
    groups: int  # row groups of Parquet that are left out, counted with their first rows

    def __len__(self) -> int:
        return len(self.times)
