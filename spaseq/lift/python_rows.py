"""Rows of a program: dicts, and tables of pandas, Polars and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID

from spaseq.errors import UsageError
from spaseq.expr.numbers import MOST_DIGITS, Float, write_decimal, write_double
from spaseq.expr.temporal import Duration, write_duration
from spaseq.lift.cells import BLOCK_ROWS, Cell, Items, RowBlock, TableBlock, Wrong, has_surrogate
from spaseq.lift.flattening import OBJECT, Flattening, element
from spaseq.lift.lift_plan import Fields
from spaseq.rdf.terms.term import literal_text
from spaseq.rdf.terms.vocabulary import XSD

Report = Callable[[int, str, str], None]

_SHOWN = 300
_FEW_ROWS = 64
"""Fewer rows than this are no table."""

_MOST_BITS = 13_000  # of integers, which Python writes in up to 4,300 digits


def dict_blocks(
    rows: Iterable[object],
    fields: Fields,
    report: Report,
    first: int = 1,
    columns: bool = False,
) -> Iterator[RowBlock | TableBlock]:
    """Rows that are dicts as blocks; a missing field is unbound. `first` is the first one's number.

    With `columns`, rows become tables, as far as they can.

    Raises:
        UsageError: a row is no dict.
    """
    flatten = Flattening(fields.wanted | fields.taken, python_cell, _members)
    rest = iter(rows)
    while some := list(islice(rest, BLOCK_ROWS)):
        table = None
        if columns and len(some) >= _FEW_ROWS:
            from spaseq.lift.dict_columns import dict_table

            table = dict_table(some, fields)
        if table is not None:
            yield TableBlock(table, first)
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
        yield RowBlock(places, places, {v: [r.get(v) for r in kept] for v in fields.wanted})


def _shown(row: object) -> str:
    try:
        return repr(row)[:_SHOWN]
    except (ValueError, RecursionError):  # a long integer, or deep nesting
        return ""


def _members(value: Any) -> Iterable[tuple[str, Any]] | None:
    if isinstance(value, Mapping):
        return ((str(name), item) for name, item in value.items())
    return None


def python_cell(value: Any) -> Cell:
    """The cell of a Python value; a date or time is its own XSD type."""
    kind = type(value)
    if value is None or kind.__name__ in ("NAType", "NaTType"):
        return None
    if kind.__module__ == "numpy" and hasattr(value, "item"):
        if kind.__name__ in ("float32", "float16"):
            return f'"{write_double(Float(value))}"^^<{XSD}float>'
        value = value.item()
    match value:
        case bool():
            return literal_text(str(value).lower(), f"{XSD}boolean")
        case str():
            wrong = has_surrogate(value)
            return Wrong("a lone surrogate is no character") if wrong else literal_text(value)
        case int():
            if value.bit_length() > _MOST_BITS:
                return Wrong("the integer is too long")
            return f'"{int(value)}"^^<{XSD}integer>'
        case float():
            return f'"{write_double(float(value))}"^^<{XSD}double>'
        case UUID():
            return literal_text(str(value))
        case Mapping():
            return OBJECT
        case list() | tuple():
            return Items(tuple(element(item, python_cell, _members) for item in value))
    return _other_cell(value)


def _other_cell(value: Any) -> Cell:
    match value:
        case Decimal() if value.is_finite() and abs(value.adjusted()) < MOST_DIGITS:
            return f'"{write_decimal(value)}"^^<{XSD}decimal>'
        case datetime():
            moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
            try:
                moment = moment.astimezone(UTC)
            except OverflowError:
                return Wrong("a year outside 1 to 9999")
            return f'"{_fraction(moment.replace(tzinfo=None), 26)}Z"^^<{XSD}dateTime>'
        case date():
            return f'"{value.isoformat()}"^^<{XSD}date>'
        case time() if value.tzinfo is None:
            return f'"{_fraction(value, 15)}"^^<{XSD}time>'
        case timedelta():
            micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
            duration = Duration("dayTimeDuration", 0, Decimal(micros).scaleb(-6))
            return f'"{write_duration(duration)}"^^<{XSD}dayTimeDuration>'
    return Wrong(f"{type(value).__name__} is no term")


def _fraction(moment: Any, most: int) -> str:
    """ISO text cut to microseconds, without zeros at the end of the fraction."""
    text = str(moment.isoformat())[:most]
    return text.rstrip("0").rstrip(".") if "." in text else text


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
            return pa.Table.from_pandas(data, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise UsageError(f"the DataFrame is no table: {error}") from None
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return None
