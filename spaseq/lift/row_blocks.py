"""Rows from readers: lines of texts, in chunks and one by one, and blocks of consecutive rows.

A block has lists of cells, Arrow arrays, or unread rows. Arrays are cells by their types
(docs/lift.md#types). Fields whose values have several types are arrays of N-Triples texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq import thresholds
from spaseq.compiled.arrays import Int64s
from spaseq.expr.numbers import Float
from spaseq.expr.temporal import Duration
from spaseq.lift.cells import Cell, Items, Wrong, inner_name, variable_of
from spaseq.lift.python_values import python_cell
from spaseq.limits import Limits
from spaseq.rdf.inputs.files import READ_ERRORS

R = TypeVar("R")

Report = Callable[[int, str, str], None]
"""Called with the line, the reason and the text of a row that is bad."""

BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 23


class TermType(pa.ExtensionType):  # type: ignore[misc]
    """The type of such a column. No file has it."""

    def __init__(self) -> None:
        super().__init__(pa.large_string(), "spaseq.term")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> TermType:
        return cls()


def term_array(texts: Any) -> Any:
    """A column of the texts (an Arrow array of large strings) of terms."""
    return pa.ExtensionArray.from_storage(TermType(), texts)


def table_variables(schema: Any) -> list[str]:
    """The variables of all fields of a schema; a field in a struct counts, too."""
    return [name for field in schema for name in _names(variable_of(field.name), field.type)]


def _names(name: str, kind: Any) -> list[str]:
    if not pa.types.is_struct(kind):
        return [name]
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return [name, *(n for f in fields for n in _names(name + inner_name(f.name), f.type))]


def wanted_columns(schema: Any, wanted: frozenset[str]) -> list[str]:
    """The names of the columns that have a wanted field."""
    return [
        field.name
        for field in schema
        if any(name in wanted for name in _names(variable_of(field.name), field.type))
    ]


def joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Record batches of about `table_rows` rows, and at most as many, made of other ones.

    An error comes after the rows that came before it.
    """
    waiting: list[Any] = []
    rows, source = 0, iter(batches)
    failure: Exception | None = None
    while True:
        try:
            batch = next(source, None)
        except Exception as error:  # of a reader: a file may be damaged
            batch, failure = None, error
        if waiting and (batch is None or rows + len(batch) > thresholds.current.table_rows):
            for whole in _one_batch(waiting):
                for first in range(0, len(whole), thresholds.current.table_rows):
                    yield whole.slice(first, thresholds.current.table_rows)
            waiting, rows = [], 0
        if batch is None:
            break
        waiting.append(batch)
        rows += len(batch)
    if failure is not None:
        raise failure


def _one_batch(batches: list[Any]) -> list[Any]:
    """Some batches as one, if their types can be joined."""
    try:
        return [pa.concat_batches(batches)]
    except pa.ArrowException:
        return batches


def _add(name: str, column: Any, wanted: frozenset[str] | None, out: dict[str, Any]) -> None:
    """Add the arrays of the wanted fields in a column (None: all)."""
    if wanted is None or name in wanted:
        out[name] = column
    if pa.types.is_struct(column.type):
        for number, inner in enumerate(column.flatten()):
            _add(name + inner_name(column.type.field(number).name), inner, wanted, out)


def cells(column: Any) -> list[Cell]:
    """The cells of an Arrow array."""
    kind = column.type
    if isinstance(kind, TermType):
        texts: list[Cell] = column.storage.to_pylist()
        return texts
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name != "arrow.uuid":
        return _all(column.storage, Wrong(f"{kind} is no term"))
    if pa.types.is_dictionary(kind):
        return cells(column.dictionary_decode())
    if _is_list(kind):
        return _lists(column)
    if pa.types.is_struct(kind):
        return _all(column, Wrong("a struct is no term: use its fields, such as ?a_b"))
    values = _values(column)
    if values is None:
        return _all(column, Wrong(f"{kind} is no term"))
    return [*map(python_cell, values)]


def _all(column: Any, cell: Cell) -> list[Cell]:
    return [cell if valid else None for valid in column.is_valid().to_pylist()]


def _is_list(kind: Any) -> bool:
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def _lists(column: Any) -> list[Cell]:
    parts: dict[str, Any] = {}
    _add("", pc.list_flatten(column), None, parts)
    rows = zip(*map(cells, parts.values()), strict=True)
    elements = [dict(zip(parts, row, strict=True)) for row in rows]
    out: list[Cell] = []
    first = 0
    for length in pc.list_value_length(column).to_pylist():
        if length is None:
            out.append(None)
            continue
        out.append(Items(tuple(elements[first : first + length])))
        first += length
    return out


def _values(column: Any) -> list[Any] | None:
    """The Python values of an Arrow array; None for types without terms."""
    t, kind = pa.types, column.type
    if t.is_temporal(kind):
        make = _TEMPORAL.get(str(kind).partition("[")[0])
        if make is None:
            return None
        times, parts = _MICROSECONDS.get(getattr(kind, "unit", ""), (1, 1))
        if t.is_date(kind):
            column = column.cast(pa.date32()).cast(pa.int32())
        numbers = column.cast(pa.int32() if t.is_time32(kind) else pa.int64()).to_pylist()
        return [None if number is None else make(number * times, parts) for number in numbers]
    if t.is_floating(kind) and not t.is_float64(kind):
        return [None if value is None else Float(value) for value in column.to_pylist()]
    texts = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
    number = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)
    known = texts or number or t.is_null(kind) or t.is_boolean(kind)
    return column.to_pylist() if known or isinstance(kind, pa.BaseExtensionType) else None


_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
"""By unit: multiplier and divisor of its numbers for microseconds."""


def _moment(number: int, parts: int) -> datetime | Wrong:
    try:
        return datetime(1970, 1, 1) + timedelta(microseconds=number // parts)
    except OverflowError:
        return Wrong("a year outside 1 to 9999")


def _date(days: int, _: int) -> date | Wrong:
    moment = _moment(days * 86_400_000_000, 1)
    return moment if isinstance(moment, Wrong) else moment.date()


def _time(number: int, parts: int) -> time:
    return (datetime.min + timedelta(microseconds=number // parts)).time()


def _duration(number: int, parts: int) -> Duration:
    whole = number // parts if number >= 0 else -(-number // parts)
    return Duration("dayTimeDuration", 0, Decimal(whole).scaleb(-6))


_TEMPORAL: dict[str, Callable[[int, int], Any]] = {
    "timestamp": _moment,
    "date32": _date,
    "date64": _date,
    "time32": _time,
    "time64": _time,
    "duration": _duration,
}


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


def row_blocks(
    rows: Iterable[tuple[int, int, R]], columns: Callable[[list[R]], Mapping[str, Any]]
) -> Iterator[RowBlock]:
    """Blocks of rows, given (line, number, row) of each row; `columns` are the fields of rows."""
    remaining = iter(rows)
    while some := [*islice(remaining, thresholds.current.block_rows)]:
        lines, numbers, kept = zip(*some, strict=True)
        places = np.array((lines, numbers), np.int64)
        yield RowBlock(places[0], places[1], columns([*kept]))


def wanted_cells(
    wanted: frozenset[str], rows: Sequence[Mapping[str, Cell]]
) -> dict[str, list[Cell]]:
    """The wanted fields of rows; a missing one is unbound."""
    return {name: [row.get(name) for row in rows] for name in wanted}


def lines_of(chunk: bytes) -> list[bytes]:
    """The lines of a text with their ends."""
    lines = [line + b"\n" for line in chunk.split(b"\n")]
    last = lines.pop()
    return [*lines, last[:-1]] if last != b"\n" else lines


@dataclass(frozen=True, slots=True)
class RowBlock:
    """n consecutive rows of one file: the fields that the lift wants and the rows have.

    A field of a table is an Arrow array, which is lifted as a lane; else it is a list of cells.
    `lines` are the places for reports: lines of a text, from 1, and otherwise numbers of rows.
    `is_utf8` says that all strings of arrays are known to be valid.
    """

    lines: Int64s  # [n]
    numbers: Int64s  # [n] the row's number in its file, from 1
    columns: Mapping[str, Any]  # [n] each
    is_table: bool = False
    is_utf8: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def cells(self, name: str) -> list[Cell]:
        """The cells of a field."""
        values = self.columns[name]
        return values if isinstance(values, list) else cells(values)


def table_block(
    batch: Any, wanted: frozenset[str], first: int, above: int = 0, is_utf8: bool = False
) -> RowBlock:
    """The rows of a record batch; `first` is the number of the first one.

    In a text, that is on the line `first + above`, and each row has one line.
    """
    columns: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        _add(variable_of(name), column, wanted, columns)
    numbers = np.arange(first, first + len(batch), dtype=np.int64)
    return RowBlock(numbers + above, numbers, columns, True, is_utf8)


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
