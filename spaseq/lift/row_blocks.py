"""Rows as readers give them: lines of texts, in chunks and one by one, and blocks of consecutive
rows: cells, tables, and rows that are not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from spaseq.compiled.arrays import Int64s
from spaseq.lift.cells import Cell
from spaseq.limits import Limits
from spaseq.rdf.inputs.files import READ_ERRORS

Report = Callable[[int, str, str], None]
"""Called with the line, the reason and the text of a row that is bad."""

BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 23


@dataclass
class TextLines:
    """The lines of a text, with one place back."""

    data: IO[bytes]
    limits: Limits
    number: int = 0  # lines given
    waiting: deque[bytes] = field(default_factory=deque)
    failure: Exception | None = None  # raised after the lines that came before it

    def next(self) -> bytes:
        """The next line with its end; b"" at the end."""
        line = self.waiting.popleft() if self.waiting else self.data.readline(self._most)
        self.number += bool(line)
        return line

    def chunk(self) -> bytes:
        """The next lines, whole ones if they are not too long; b"" at the end."""
        if self.failure is not None:
            raise self.failure
        if self.waiting:
            waited = b"".join(self.waiting)
            self.waiting.clear()
            return waited
        given: bytes = self.data.read1(_CHUNK)  # type: ignore[attr-defined]
        if given and not given.endswith(b"\n"):
            try:
                given += self.data.readline(self._most)
            except READ_ERRORS as error:
                self.failure = error
                given = given[: given.rfind(b"\n") + 1]
                return given or self.chunk()
        return given

    def skip_rest(self, raw: bytes) -> None:
        """Go to the end of a line that is too long; `raw` is its begin."""
        while raw and not raw.endswith(b"\n"):
            raw = self.next()
            self.number -= bool(raw)

    @property
    def _most(self) -> int:
        return self.limits.line_bytes + 1

    def back(self, lines: list[bytes]) -> None:
        """Give these lines, the last that were taken, once more."""
        self.waiting.extendleft(reversed(lines))
        self.number -= len(lines)


def lines_of(chunk: bytes) -> list[bytes]:
    """The lines of a text with their ends."""
    lines = [line + b"\n" for line in chunk.split(b"\n")]
    last = lines.pop()
    return [*lines, last[:-1]] if last != b"\n" else lines


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
