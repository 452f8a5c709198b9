"""Dicts as Arrow columns, as far as each field has plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, cast

import pyarrow as pa

from spaseq.lift.cells import variable_of
from spaseq.lift.lift_plan import Fields
from spaseq.lift.python_cells import python_cell
from spaseq.lift.term_arrays import term_array

_TYPES: dict[type, Any] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", "UTC"),
}


def dict_table(rows: Sequence[object], fields: Fields) -> Any | None:
    """The wanted fields of rows as a record batch; None if one of the rows needs a closer look."""
    if {*map(type, rows)} != {dict}:
        return None
    dicts = cast("Sequence[dict[object, Any]]", rows)
    keys = _keys(dicts, fields)
    if keys is None:
        return None
    columns = {}
    for name in sorted(fields.wanted):
        values = [row.get(keys[name]) for row in dicts] if name in keys else [None] * len(dicts)
        column = _column(values)
        if column is None:
            return None
        columns[name] = column
    return pa.record_batch(columns or {"#": pa.nulls(len(dicts))})


def _keys(rows: Sequence[dict[object, Any]], fields: Fields) -> dict[str, str] | None:
    """The key of each wanted field; None if two keys or an object's field may give one of them."""
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


def _column(values: list[Any]) -> Any | None:
    """The Arrow array of values; of N-Triples texts, if they have several types or a rare one."""
    kinds = {*map(type, values)} - {NoneType}
    try:
        if not kinds:
            return pa.nulls(len(values), pa.string())
        if len(kinds) == 1 and (kind := _TYPES.get(*kinds)) is not None:
            return pa.array(values, kind)
        cells = [python_cell(value) for value in values]
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid, RecursionError):
        return None
    if any(cell is not None and type(cell) is not str for cell in cells):
        return None
    return term_array(pa.array(cells, pa.large_string()))
