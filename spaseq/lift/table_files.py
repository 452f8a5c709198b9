"""Tables and JSON messages in files: which files, in which format, and their rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, cast

from spaseq import thresholds
from spaseq.errors import InputError
from spaseq.lang.spelling import suggested
from spaseq.lift.delimited_rows import DelimitedRows
from spaseq.lift.json_rows import DocumentRows, JsonRows, is_document
from spaseq.lift.lift_plan import ROW_NUMBER, Fields, LiftPlan
from spaseq.lift.pruned_lifts import KnownFields, known_fields, longest_harmless, surely_timed
from spaseq.lift.row_blocks import (
    FilteredRows,
    Report,
    RowBlock,
    TimedRows,
    joined,
    table_block,
    table_variables,
    wanted_columns,
)
from spaseq.lift.row_groups import AskedRows, GroupUse, row_group_runs
from spaseq.limits import Limits
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT, CsvDialect
from spaseq.rdf.inputs.files import READ_ERRORS, UnpackedFile, report_after_end
from spaseq.rdf.inputs.stream_options import BadInput, OnBad


class TableFormat(Enum):
    """The formats of rows; the value is the name in messages."""

    CSV = "CSV"
    TSV = "TSV"
    JSON_LINES = "JSON lines"
    JSON = "JSON"
    PARQUET = "Parquet"
    ARROW = "Arrow"


TABLE_EXTENSIONS = {
    ".csv": TableFormat.CSV,
    ".tsv": TableFormat.TSV,
    ".jsonl": TableFormat.JSON_LINES,
    ".ndjson": TableFormat.JSON_LINES,
    ".json": TableFormat.JSON,
    ".parquet": TableFormat.PARQUET,
    ".pq": TableFormat.PARQUET,
    ".arrow": TableFormat.ARROW,
    ".arrows": TableFormat.ARROW,
    ".feather": TableFormat.ARROW,
    ".ipc": TableFormat.ARROW,
}
DELIMITED = frozenset({TableFormat.CSV, TableFormat.TSV})
TEXT_FORMATS = DELIMITED | {TableFormat.JSON_LINES, TableFormat.JSON}


def table_format(path: str) -> TableFormat | None:
    """The format of a file by its name; None if it is no table."""
    form = TABLE_EXTENSIONS.get(Path(path.removesuffix(".gz")).suffix.lower())
    return None if path.endswith(".gz") and form not in TEXT_FORMATS else form


def is_table_input(path: str) -> bool:
    """Whether a path of a stream names tables, by its extension or its files'.

    A directory that cannot be read is no table; reading the stream reports the error.
    """
    given_path = Path(path)
    try:
        if given_path.is_dir():
            return any(table_format(inner.name) is not None for inner in given_path.iterdir())
        if has_magic(path) and not given_path.exists():
            paths = glob(path, recursive=True)
            return any(table_format(inner) is not None for inner in (path, *paths))
    except OSError:
        return False
    return table_format(path) is not None


def table_files(paths: Sequence[str], csv: CsvDialect = DEFAULT_DIALECT) -> tuple[TableFile, ...]:
    """The files at paths: files, the tables of directories, or globs; by path in byte order.

    Raises:
        InputError: a path does not exist, a glob matches nothing, or a format is unknown.
    """
    return tuple(
        TableFile(path, form, csv=csv) for given in paths for path, form in _files_at(given)
    )


def _files_at(path: str) -> list[tuple[str, TableFormat]]:
    given_path = Path(path)
    if given_path.is_dir():
        names = [str(p) for p in given_path.iterdir() if p.is_file() and p.name[0] not in "._"]
        named = [(name, table_format(name)) for name in sorted(names, key=os.fsencode)]
        return [(name, form) for name, form in named if form is not None]
    if given_path.exists():
        matches = [path]
    elif has_magic(path):
        matches = [p for p in glob(path, recursive=True) if Path(p).is_file()]
        if not matches:
            raise InputError(f"no file matches {path}")
    else:
        raise InputError(f"no such file or directory: {path}")
    files = []
    for match in sorted(matches, key=os.fsencode):
        form = table_format(match)
        if form is None:
            known = " ".join(TABLE_EXTENSIONS)
            raise InputError(f"{match}: unknown format; a table's name ends in one of {known}")
        files.append((match, form))
    return files


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file of rows."""

    path: str
    format: TableFormat
    csv: CsvDialect = field(default=DEFAULT_DIALECT, kw_only=True)

    def blocks(
        self,
        plan: LiftPlan,
        limits: Limits,
        on_bad: OnBad,
        columns: bool = False,
        asked: AskedRows | None = None,
    ) -> Iterator[RowBlock | FilteredRows | TimedRows]:
        """The rows as blocks; bad rows are reported.

        With `columns`, JSON lines become columns where possible. If there are `asked` rows, Parquet
        may give only the times of others.

        Raises:
            InputError: the file cannot be opened, or lacks a field that the lift reads.
        """

        def report(line: int, reason: str, text: str) -> None:
            on_bad(BadInput(self.path, line, reason, text))

        try:
            if self.format in TEXT_FORMATS:
                with closing(self._opened(limits)) as data:
                    yield from self._text_blocks(data, plan, limits, report, columns)
                    report_after_end(getattr(data, "raw", data), self.path, on_bad)
            else:
                yield from self._table_blocks(plan, self.known_fields(limits), asked)
        except READ_ERRORS as error:
            on_bad(BadInput(self.path, None, f"the rest of the file is not read: {_why(error)}"))

    def check(self, plan: LiftPlan, limits: Limits) -> None:
        """Look at the header or schema only.

        Raises:
            InputError: as for `blocks`.
        """
        if self.format in DELIMITED:
            try:
                with closing(self._opened(limits)) as data:
                    rows = DelimitedRows(data, self._dialect, limits, self.path)
            except READ_ERRORS as error:
                raise InputError(f"cannot read {self.path}: {_why(error)}") from None
            check_names(self.path, rows.names, plan.fields, rows.advice)
        elif self.format in TEXT_FORMATS:
            self._opened(limits).close()
        else:
            with closing(_OpenTable(self)) as table:
                check_names(self.path, table_variables(table.schema), plan.fields)

    def row_groups(self, count: int) -> range:
        """The row groups to read of a Parquet file that has `count`."""
        return range(count)

    def known_fields(self, limits: Limits) -> KnownFields:
        """The known properties of the file's columns, without reading them.

        Raises:
            InputError: it cannot be opened.
        """
        if self.format is not TableFormat.PARQUET:
            return KnownFields()
        with closing(_OpenTable(self)) as table:
            counts, times = table.counts(), table.usual_times()
            return known_fields(table.schema, *counts, times, longest_harmless(limits))

    @property
    def _dialect(self) -> CsvDialect:
        """The dialect; the delimiter of TSV is a tab."""
        tabs = self.format is TableFormat.TSV and self.csv.delimiter is None
        return replace(self.csv, delimiter="\t") if tabs else self.csv

    def _opened(self, limits: Limits) -> IO[bytes]:
        try:
            if self.path.endswith(".gz"):
                import io

                packed = open(self.path, "rb", 0)  # noqa: SIM115 - it is closed with `raw`
                raw: Any = UnpackedFile(packed, limits)
                return cast("IO[bytes]", io.BufferedReader(raw, 1 << 22))
            return open(self.path, "rb", 1 << 22)
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error

    def _text_blocks(
        self, data: IO[bytes], plan: LiftPlan, limits: Limits, report: Report, columns: bool
    ) -> Iterator[RowBlock]:
        fields = plan.fields
        if self.format is TableFormat.JSON and is_document(data):
            yield from DocumentRows(data, fields, limits).blocks(report)
            return
        if self.format not in DELIMITED:
            scanner = None
            if columns:
                from spaseq.lift.json_columns import JsonScanner

                scanner = JsonScanner(fields.wanted, fields.taken, limits)
            yield from JsonRows(data, fields, limits, scanner).blocks(report)
            return
        rows = DelimitedRows(data, self._dialect, limits, self.path)
        check_names(self.path, rows.names, fields, rows.advice)
        yield from rows.blocks(fields.wanted, report)

    def _table_blocks(
        self, plan: LiftPlan, known: KnownFields, asked: AskedRows | None
    ) -> Iterator[RowBlock | FilteredRows | TimedRows]:
        import pyarrow as pa

        with closing(_OpenTable(self)) as table:
            check_names(self.path, table_variables(table.schema), plan.fields)
            number = 1 + table.rows_before()
            try:
                for batch in table.batches(plan, known, asked):
                    if isinstance(batch, FilteredRows | TimedRows):
                        yield batch
                    else:
                        yield table_block(batch, plan.fields.wanted, number)
                    number += len(batch)
            except pa.ArrowException as error:
                raise OSError(str(error)) from error


def _why(error: Exception) -> str:
    """The reason of a failed read."""
    return str(getattr(error, "strerror", None) or error)


PARQUET_READING: dict[str, Any] = {"coerce_int96_timestamp_unit": "us"}
"""How Parquet is read: times of INT96 as microseconds, because nanoseconds end in 2262."""

_FEW_BYTES = 2.5
"""Bytes of a value where few texts are in a dictionary; a string by itself takes at least four."""


class _OpenTable:
    """An open Parquet or Arrow file."""

    def __init__(self, file: TableFile) -> None:
        import pyarrow as pa

        self._file = file
        try:
            if file.format is TableFormat.PARQUET:
                import pyarrow.parquet as pq

                self._reader: Any = pq.ParquetFile(file.path, **PARQUET_READING)
                few = _columns_of_few_texts(self._reader)
                if few:
                    self._reader.close()
                    self._reader = pq.ParquetFile(file.path, read_dictionary=few, **PARQUET_READING)
                self.schema = self._reader.schema_arrow
                self._parquet = True
                return
            source = pa.memory_map(file.path)
            try:
                self._reader = pa.ipc.open_file(source)
            except pa.ArrowInvalid:
                source.seek(0)
                self._reader = pa.ipc.open_stream(source)
            self.schema = self._reader.schema
            self._parquet = False
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0] if str(error) else "unreadable"
            raise InputError(f"cannot read {file.path} as {file.format.value}: {reason}") from None

    def batches(
        self, plan: LiftPlan, known: KnownFields, asked: AskedRows | None = None
    ) -> Iterator[Any]:
        """Record batches of at most `table_rows` rows, and rows that need not be read."""
        columns = wanted_columns(self.schema, plan.fields.wanted)
        if self._parquet:
            yield from self._row_groups(plan, known, asked, columns)
            return
        reader = self._reader
        counted = hasattr(reader, "num_record_batches")
        batches = (
            (reader.get_batch(i) for i in range(reader.num_record_batches)) if counted else reader
        )
        read = columns or self.schema.names[:1]  # a batch without columns has no rows
        yield from joined(batch.select(read) for batch in batches)

    def rows_before(self) -> int:
        """Number of rows of the file before the read ones."""
        if not self._parquet:
            return 0
        metadata = self._reader.metadata
        groups = self._file.row_groups(metadata.num_row_groups)
        return sum(metadata.row_group(g).num_rows for g in range(groups.start))

    def _row_groups(
        self, plan: LiftPlan, known: KnownFields, asked: AskedRows | None, columns: list[str]
    ) -> Iterator[Any]:
        from spaseq.lift.lanes import times_of

        time = None if asked is None else surely_timed(plan, known)
        numbers = self._file.row_groups(self._reader.metadata.num_row_groups)
        sure = None if time is None else asked
        runs = row_group_runs(self._reader, numbers, plan, known, sure)
        size = int(thresholds.current.table_rows)
        for use, groups, rows in runs:
            if use is GroupUse.NOTHING:
                yield FilteredRows(rows, len(groups))
            elif use is GroupUse.ALL:
                yield from self._reader.iter_batches(size, row_groups=groups, columns=columns)
            else:
                assert time is not None
                left = len(groups)
                names = wanted_columns(self.schema, frozenset([time]))
                for batch in self._reader.iter_batches(size, row_groups=groups, columns=names):
                    yield TimedRows(times_of(batch.column(0)), left)
                    left = 0

    def counts(self) -> tuple[dict[str, int | None], dict[str, int]]:
        """(nulls, None if not known; bytes of the largest part) by column of a Parquet file."""
        nulls: dict[str, int | None] = {}
        sizes: dict[str, int] = {}
        for chunk in _chunks(self._reader.metadata):
            name, null_count = chunk.path_in_schema, None
            if chunk.is_stats_set and chunk.statistics.has_null_count:
                null_count = chunk.statistics.null_count
            before = nulls.get(name, 0)
            nulls[name] = None if null_count is None or before is None else before + null_count
            sizes[name] = max(sizes.get(name, 0), chunk.total_uncompressed_size)
        return nulls, sizes

    def usual_times(self) -> set[str]:
        """The columns of a Parquet file whose statistics are times that Python can say."""
        times, odd = set[str](), set[str]()
        for chunk in _chunks(self._reader.metadata):
            try:
                known = chunk.is_stats_set and chunk.statistics.has_min_max
                usual = known and all(
                    isinstance(end, datetime)
                    for end in (chunk.statistics.min, chunk.statistics.max)
                )
            except (OverflowError, ValueError, NotImplementedError):
                # Years outside 1 to 9999; pyarrow before 23 does not read all types either.
                usual = False
            (times if usual else odd).add(chunk.path_in_schema)
        return times - odd

    def close(self) -> None:
        """Close the file."""
        if self._parquet:
            self._reader.close()


def _chunks(metadata: Any) -> Iterator[Any]:
    """The metadata of the columns of all row groups of a Parquet file."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        yield from (row_group.column(number) for number in range(row_group.num_columns))


def _columns_of_few_texts(file: Any) -> list[str]:
    """The columns of strings that take so few bytes that they must be dictionaries with few texts.

    Arrow reads them as dictionaries, and makes no string for each row.
    """
    sizes: dict[str, float] = {}
    for chunk in _chunks(file.metadata):
        if chunk.physical_type == "BYTE_ARRAY" and chunk.num_values:
            size = chunk.total_uncompressed_size / chunk.num_values
            sizes[chunk.path_in_schema] = max(size, sizes.get(chunk.path_in_schema, 0))
    names = {field.name for field in file.schema_arrow if str(field.type) == "string"}
    return [name for name, size in sizes.items() if size < _FEW_BYTES and name in names]


def check_names(where: str, names: Sequence[str], fields: Fields, advice: str = "") -> None:
    """InputError if fields that the lift reads are missing, or stand twice, or have its names.

    `advice` says why fields may be missing, if that is known.
    """
    for name in sorted(fields.needed):
        if name == ROW_NUMBER:
            continue
        if name not in names:
            near = suggested(name, names)
            hint = f"did you mean ?{near}?" if near else f"it has {', '.join(names[:20])}"
            raise InputError(f"{where} has no field for ?{name} of the lift; {advice or hint}")
    for name in sorted(fields.wanted):
        if list(names).count(name) > 1:
            raise InputError(f"{where} has two fields for ?{name} of the lift")
    for name in sorted(fields.taken):
        if name in names:
            raise InputError(
                f"{where} has a field {name}, and the lift gives ?{name} another value"
            )
