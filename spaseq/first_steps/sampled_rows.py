"""The first rows of a user's file: their fields with types, and the field of the time.

Nested objects of a row become fields, as a lift sees them.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from spaseq.errors import InputError
from spaseq.first_steps.field_types import FieldType, text_of, type_of
from spaseq.first_steps.samples import EventKind, Sample, Seen
from spaseq.lift.cells import inner_name, variable_of
from spaseq.lift.delimited_rows import DelimitedRows
from spaseq.lift.table_files import DELIMITED, TableFormat, table_format
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.inputs.csv_dialect import CsvDialect
from spaseq.rdf.terms.term import split_literal
from spaseq.records import record

Row = dict[str, Any]
"""The values that are not null, by variable."""

_ROWS, _FIELDS = 2000, 30
_DAY = re.compile(r"[0-9]{4}_[0-9]{2}_[0-9]{2}|[0-9]{1,2}_[0-9]{1,2}_[0-9]{4}")
_START = 2**20
"""The bytes that identify an encoding."""


@record
class FlatRows:
    """Rows, with their variables.

    Attributes:
        rows: the rows, without values that are no terms.
        names: the variables of all fields, objects and lists included.
        objects: by variable of a nested field, the objects at the top of the row that it is in.
        inner: the fields directly in such an object.
    """

    rows: list[Row]
    names: frozenset[str] = frozenset()
    objects: Mapping[str, str] = field(default_factory=dict)
    inner: frozenset[str] = frozenset()


def flat_rows(values: Iterable[Mapping[str, Any]]) -> FlatRows:
    """The rows of objects. A field that is no term in one of them is left out of all."""
    fields = _Fields()
    rows = [dict(fields.of(value, ())) for value in values]
    kept = [{n: v for n, v in row.items() if n not in fields.composite} for row in rows]
    return FlatRows(kept, frozenset(fields.names), fields.objects, frozenset(fields.inner))


class _Fields:
    """Takes note of the fields of rows."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.objects: dict[str, str] = {}
        self.inner: set[str] = set()
        self.composite: set[str] = set()

    def of(self, value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """(variable, value) of each field; `path` has the variables of the objects around it."""
        for name, content in value.items():
            variable = path[-1] + inner_name(name) if path else variable_of(name)
            self.names.add(variable)
            if path:
                self.objects[variable] = path[0]
            if len(path) == 1:
                self.inner.add(variable)
            if isinstance(content, Mapping | list | bytes):
                self.composite.add(variable)
            if not isinstance(content, Mapping):
                yield variable, content
            elif name != "@context":
                yield from self.of(content, (*path, variable))


def sampled_rows(path: Path) -> Sample:
    """The events of the first rows of a file.

    Raises:
        InputError: it has no rows, or cannot be read.
    """
    flat, records, csv = _read(path)
    rows = flat.rows
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    types = {name: type_of(name, values) for name, values in columns.items()}
    types = dict([*types.items()][:_FIELDS])
    if not types:
        raise InputError(f"{path} has no rows with values")
    kinds = event_kinds(types, columns, flat)
    seen = (
        Seen(number, time, _values(row, types), row)
        for number, whole in enumerate(rows, 1)
        for row, time in _events(whole, number, types, kinds)
    )
    timed = tuple(each for each in seen if each.time is not None)
    if not timed:
        raise InputError(f"no row of {path} has a readable time in {kinds[0].time}")
    return Sample(str(path), timed, types, kinds, flat.names, records, csv)


def _events(
    row: Row, number: int, types: Mapping[str, FieldType], kinds: tuple[EventKind, ...]
) -> Iterator[tuple[Row, int | None]]:
    """(fields, time in ms) of each event of a row."""
    if len(kinds) == 1:
        yield row, _time(row, number, types, kinds[0])
        return
    for kind in kinds:
        if kind.time in row:
            fields = {name: row[name] for name in (*kind.fields, kind.time) if name in row}
            yield fields, _time(row, number, types, kind)


def _time(row: Row, number: int, types: Mapping[str, FieldType], kind: EventKind) -> int | None:
    """The time (ms) of a row's event: that of a field, or of a date and a time of day."""
    if kind.time is None:
        return number * 1000
    parts = [name for name in (kind.time, kind.clock) if name is not None]
    times = [types[n].value(text_of(row[n])) for n in parts if n in row]
    return sum(times) if len(times) == len(parts) and None not in times else None


def _values(row: Row, types: Mapping[str, FieldType]) -> dict[str, Any]:
    values = {n: types[n].value(text_of(v)) for n, v in row.items() if n in types}
    return {name: value for name, value in values.items() if value is not None}


def _read(path: Path) -> tuple[FlatRows, str | None, str]:
    """The rows; JSON lines of them, if a document lists them; the value of `--csv` for the file."""
    form = table_format(path.name)
    if form in DELIMITED:
        dialect = CsvDialect("\t" if form is TableFormat.TSV else None, encoding=_encoding(path))
        said = [] if dialect.is_utf8 else [f"encoding={dialect.encoding}"]
        rows = [*islice(_delimited(path, dialect), _ROWS)]
        if rows and any(_DAY.match(name) for name in rows[0]):  # no name, but the first row's time
            said.append("header=false")
            rows = [*islice(_delimited(path, replace(dialect, header=False)), _ROWS)]
        return FlatRows(rows), None, ",".join(said)
    if form in (TableFormat.PARQUET, TableFormat.ARROW):
        return _present(_table(path, form)), None, ""
    document = json_records(path, _ROWS)
    records = None if document.field is None else lines_of(document.objects)
    return _present(document.objects[:_ROWS]), records, ""


def _present(values: Iterable[Mapping[str, Any]]) -> FlatRows:
    flat = flat_rows(values)
    rows = [{name: v for name, v in row.items() if v is not None} for row in flat.rows]
    return replace(flat, rows=rows)


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _encoding(path: Path) -> str:
    """The encoding of a text: UTF-8, unless its start is none."""
    with _opened(path) as data:
        start = data.read(_START)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return "cp1252"  # which spreadsheets write on Windows
    return "utf-8"


def _delimited(path: Path, dialect: CsvDialect) -> Iterator[Row]:
    with _opened(path) as data:
        rows = DelimitedRows(data, dialect, DEFAULT_LIMITS, str(path))
        if rows.names[0].startswith("sep_"):
            raise InputError(f"{path} begins with a line sep=, which only Excel reads: remove it")
        names = [n for n in rows.names if n and rows.names.count(n) == 1]
        for block in rows.blocks(frozenset(names), lambda *_: None):
            cells = {name: block.cells(name) for name in names}
            for row in range(len(block)):
                terms = {name: cells[name][row] for name in names}
                yield {n: split_literal(t)[0] for n, t in terms.items() if isinstance(t, str)}


def _table(path: Path, form: TableFormat | None) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    try:
        if form is TableFormat.PARQUET:
            batches = parquet.ParquetFile(path).iter_batches(_ROWS)
        else:
            batches = iter(feather.read_table(path).to_batches(_ROWS))
        yield from next(batches, pa.RecordBatch.from_pylist([])).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {path}: {error}") from None


# --- Which events the rows of a user's file are: mostly one each, with the likeliest time ---------

_TIME = re.compile(r"(?i)(time|date|when|created|observed|(^|_)(at|ts)(_ms|_us|_s)?$)")


def event_kinds(
    types: Mapping[str, FieldType], columns: Mapping[str, Sequence[Any]], flat: FlatRows
) -> tuple[EventKind, ...]:
    """The events of a row: several, if it has no time itself, and several of its objects have one.

    So it is in NGSI-LD, whose entities have an `observedAt` in each attribute. `columns` are the
    values by field.
    """
    times = [name for name, kind in types.items() if kind.name == "time"]
    complete = [name for name in times if len(columns[name]) == len(flat.rows)]
    if all(name in flat.objects for name in complete):
        several = [*_several(types, [name for name in times if name in flat.inner], flat)]
        if len(several) > 1:
            return tuple(several)
    best = min(
        complete or times,
        key=lambda name: (name in flat.objects, _TIME.search(name) is None),
        default=None,
    )
    clock = None
    if best is not None and types[best].day:
        clocks = [name for name, kind in types.items() if kind.name == "clock"]
        clock = next((n for n in clocks if len(columns[n]) == len(flat.rows)), None)
    fields = tuple(name for name in types if name not in (best, clock))
    return (EventKind("", best, fields, clock),)


def _several(
    types: Mapping[str, FieldType], times: Sequence[str], flat: FlatRows
) -> Iterator[EventKind]:
    """An event for each object with a time and other fields, with the fields at the row's top."""
    of = {flat.objects[time]: time for time in reversed(times)}
    common = [name for name in types if name not in flat.objects]
    for parent, time in reversed(of.items()):
        fields = [n for n in types if flat.objects.get(n) == parent and types[n].name != "time"]
        if fields:
            yield EventKind(parent, time, (*common, *fields))


# The objects of a user's JSON file: its lines, an array, or the objects that a document lists

Object = Mapping[str, Any]


@record
class JsonRecords:
    """Objects, each a row.

    Attributes:
        objects: the objects.
        field: the field of a document whose list they are; "" if the document is the list, None if
            the file's own rows are these objects.
    """

    objects: Sequence[Object]
    field: str | None


def json_records(path: Path, most: int) -> JsonRecords:
    """The first objects of a file, or all that a document lists."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(
        "utf-8-sig", errors="replace"
    )
    try:
        whole = json.loads(text)
    except ValueError:
        return JsonRecords([*islice(_lines(text), most)], None)
    linked = ".jsonld" in path.name.lower()  # which streams of rows are not read from
    if isinstance(whole, dict):
        field = _listing(whole)
        objects = [whole] if field is None else _dicts(whole[field])
        return JsonRecords(objects, "" if linked and field is None else field)
    objects = _dicts(whole) if isinstance(whole, list) else []
    return JsonRecords(objects, "") if linked else JsonRecords(objects[:most], None)


def lines_of(objects: Sequence[Object]) -> str:
    """The objects as JSON lines."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)


def _listing(document: Object) -> str | None:
    """The only field of a document that lists several objects; None if there is no such one."""
    if "@graph" in document:
        return "@graph"
    lists = [name for name, value in document.items() if len(_dicts(value)) > 1]
    return lists[0] if len(lists) == 1 and lists != ["@context"] else None


def _dicts(value: Any) -> list[Object]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _lines(text: str) -> Iterator[Object]:
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
