"""Rows of a program: dicts, and tables of pandas, Polars and Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from types import NoneType
from typing import Any, cast

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.errors import UsageError
from spaseq.lift.cells import Cell, Flattening, variable_of
from spaseq.lift.lift_plan import Fields
from spaseq.lift.python_values import members, python_cell
from spaseq.lift.row_blocks import Report, RowBlock, term_array, wanted_cells

_TYPES: dict[type, Any] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", "UTC"),
}


def dict_columns(rows: Sequence[object], fields: Fields) -> dict[str, Any] | None:
    """The wanted fields of rows: arrays, or lists of cells; None if a row needs a closer look."""
    if {*map(type, rows)} != {dict}:
        return None
    dicts = cast("Sequence[dict[object, Any]]", rows)
    keys = _keys(dicts, fields)
    if keys is None:
        return None
    try:
        return {name: _column([row.get(keys.get(name)) for row in dicts]) for name in fields.wanted}
    except RecursionError:
        return None


def _keys(rows: Sequence[dict[object, Any]], fields: Fields) -> dict[str, str] | None:
    """The key of each wanted field; None if two keys, or an object's field, may have its name."""
    keys: dict[str, str] = {}
    for key in set().union(*rows):
        if type(key) is not str:
            return None
        name = variable_of(key)
        if name in fields.taken or name in keys:
            return None
        if any(other.startswith(f"{name}_") for other in fields.wanted | fields.taken) and any(
            isinstance(row.get(key), Mapping) for row in rows
        ):
            return None
        if name in fields.wanted:
            keys[name] = key
    return keys


def _column(values: list[Any]) -> Any:
    """The Arrow array of values; cells if they have several types or a rare one."""
    kinds = {*map(type, values)} - {NoneType}
    kind = _TYPES.get(*kinds) if len(kinds) == 1 else None
    if kind is not None:
        try:
            return pa.array(values, kind)
        except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
            pass
    return [*map(python_cell, values)]


_SHOWN = 300


def dict_blocks(
    rows: Iterable[object], fields: Fields, report: Report, first: int = 1, columns: bool = False
) -> Iterator[RowBlock]:
    """Rows that are dicts as blocks; a missing field is unbound. `first` is the first one's number.

    With `columns`, rows become tables, as far as they can.

    Raises:
        UsageError: a row is no dict.
    """
    flatten = Flattening(fields.wanted | fields.taken, python_cell, members)
    rest = iter(rows)
    while some := list(islice(rest, thresholds.current.block_rows)):
        arrays = None
        if columns and len(some) >= thresholds.current.lifted_rows:
            arrays = dict_columns(some, fields)
        if arrays is not None:
            numbers = np.arange(first, first + len(some), dtype=np.int64)
            yield RowBlock(numbers, numbers, arrays, True)
        else:
            yield from _row_block(some, fields, flatten, report, first)
        first += len(some)


def _row_block(
    rows: Sequence[object], fields: Fields, flatten: Flattening, report: Report, first: int
) -> Iterator[RowBlock]:
    places: list[int] = []
    kept: list[dict[str, Cell]] = []
    for number, row in enumerate(rows, first):
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise UsageError(f"a lifted stream has rows that are dicts, not {kind}")
        try:
            cells = flatten.row((str(name), value) for name, value in row.items())
            mine = fields.taken & cells.keys()
            reason = f"the row has a field {min(mine)}, which the lift binds" if mine else None
        except RecursionError:
            reason = "nested too deep"
        if reason is not None:
            report(number, reason, _shown(row))
            continue
        places.append(number)
        kept.append(cells)
    if places:
        numbers = np.array(places, np.int64)
        yield RowBlock(numbers, numbers, wanted_cells(fields.wanted, kept))


def _shown(row: object) -> str:
    try:
        return repr(row)[:_SHOWN]
    except (ValueError, RecursionError):  # a long integer, or deep nesting
        return ""


def arrow_table(data: Any) -> Any:
    """A DataFrame or Arrow object as something with a schema and record batches; None for others.

    NaN in a pandas column is null.
    """
    import pyarrow as pa

    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        try:
            return _pandas_table(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise UsageError(f"the DataFrame is no table: {error}") from None
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return None


def _pandas_table(data: Any) -> Any:
    """A pandas DataFrame as an Arrow table; integers beyond 64 bits are N-Triples texts."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(data, preserve_index=False)
    except OverflowError:
        columns = {name: _pandas_column(data[name]) for name in data.columns}
        return pa.table(columns)


def _pandas_column(values: Any) -> Any:
    """A column of a DataFrame as an Arrow array."""
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(values)
    except OverflowError:
        nulls = values.isna().tolist()
        cells = [
            None if null else python_cell(value)
            for null, value in zip(nulls, values.tolist(), strict=True)
        ]
        if any(cell is not None and type(cell) is not str for cell in cells):
            raise ValueError(f"column {values.name} has values that are no literals") from None
        return term_array(pa.array(cells, pa.large_string()))
