"""DataFrames that only scan Parquet files; tasks read the files directly.

Java would read the rows and pass them to Python, which takes longer than all of Python's work with
them. A DataFrame is such a scan if its plan has only a relation of files and projections of
columns. The session's settings and the footers of all files are checked for differences between
Spark's values and pyarrow's. In case of doubt, Spark reads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_type

from spaseq.errors import InputError
from spaseq.lift.cells import variable_of
from spaseq.lift.parquet_scan import ParquetScan, ScannedFile
from spaseq.lift.row_blocks import table_variables
from spaseq.lift.table_files import PARQUET_READING, check_names
from spaseq.runtime.spark.lifted_frames import LiftedFrame, variables

_EXACT = {
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.date32(), pa.binary(), pa.string(), pa.large_string()),
}
"""Types of columns that pyarrow reads as Spark does."""

_UNITS = ("ms", "us")
"""Spark does not read nanoseconds."""

_LEAST_MS, _MOST_MS = -(2**63 // 1000), (2**63 - 1) // 1000


def is_same(spark: st.DataType, arrow: pa.DataType) -> bool:
    """Whether Spark's and pyarrow's values of a column of these types are equal.

    >>> is_same(st.LongType(), pa.int64()), is_same(st.LongType(), pa.int32())
    (True, False)
    """
    if not _is_exact(arrow):
        return False
    return bool(from_arrow_type(arrow, True).simpleString() == spark.simpleString())


def _is_exact(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_exact(kind.field(n).type) for n in range(kind.num_fields))
    if pa.types.is_list(kind):
        return _is_exact(kind.value_type)
    if pa.types.is_dictionary(kind):
        return kind.value_type in (pa.string(), pa.large_string())
    if pa.types.is_timestamp(kind):
        return kind.unit in _UNITS
    return kind in _EXACT or pa.types.is_decimal128(kind)


def leaf_paths(name: str, kind: pa.DataType) -> Iterator[str]:
    """The Parquet columns of a field, if its lists follow the format."""
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            inner = kind.field(number)
            yield from leaf_paths(f"{name}.{inner.name}", inner.type)
    elif pa.types.is_list(kind):
        yield from leaf_paths(f"{name}.list.{kind.value_field.name}", kind.value_type)
    else:
        yield name


def has_dates(kind: st.DataType) -> bool:
    """Whether values may be days or times; old versions of Spark wrote these otherwise."""
    match kind:
        case st.ArrayType():
            return has_dates(kind.elementType)
        case st.StructType():
            return any(has_dates(field.dataType) for field in kind)
    return isinstance(kind, st.DateType | st.TimestampType | st.TimestampNTZType)


def is_chunk_same(chunk: Any, logical: str) -> bool:
    """Whether values of a column of a row group are equal, too; `logical` is the column's type.

    Spark refuses milliseconds that do not fit 64 bits as microseconds.
    """
    if "milliseconds" not in logical or chunk.num_values == 0:
        return True
    if not chunk.is_stats_set:
        return False
    known = chunk.statistics
    if known.null_count == chunk.num_values:
        return True
    return bool(known.has_min_max and known.min_raw >= _LEAST_MS and known.max_raw <= _MOST_MS)


_LOGGER = logging.getLogger("spaseq")

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_FILES = "org.apache.spark.sql.execution.datasources."
_RELATION = _FILES + "LogicalRelation"
_COLUMN = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
_TRANSPARENT = {_LOGICAL + "SubqueryAlias", _LOGICAL + "View"}

_PARTS = {
    "relation": _FILES + "HadoopFsRelation",
    "fileFormat": _FILES + "parquet.ParquetFileFormat",
    "location": _FILES + "InMemoryFileIndex",
}
"""The Java classes of a recognised scan."""

_OFF = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.parquet.int96TimestampConversion",
)
_CORRECTED = (
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInRead",
)

_MOST_FILES = 1_000
"""With more files, checking all of them first would take long."""

_CODECS = {"UNCOMPRESSED": None, "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd",
           "BROTLI": "brotli", "LZ4": "lz4", "LZ4_RAW": "lz4_raw"}  # fmt: skip

_CHARACTERS = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata keys of a column of fixed length."""


class _NoScan(Exception):
    """The DataFrame is not a recognised scan; the text gives the reason."""


def scan_of(given: LiftedFrame) -> ParquetScan | None:
    """The files of a DataFrame that is a scan; None if Spark must read its rows.

    The log gives the decision.

    Raises:
        InputError, UsageError: as `LiftedFrame.selected`.
    """
    given.selected()
    iri = given.rows.iri
    try:
        scan = _scan(given)
    except _NoScan as reason:
        _LOGGER.info("stream <%s>: Spark reads the rows of the DataFrame, as %s", iri, reason)
        return None
    count = len(scan.scanned)
    _LOGGER.info("stream <%s>: tasks read %d Parquet files of the DataFrame", iri, count)
    return scan


def _scan(given: LiftedFrame) -> ParquetScan:
    if given.rows.order is not None:
        raise _NoScan("a column orders them")
    if not hasattr(given.frame, "_jdf"):
        raise _NoScan("its plan is not known here")
    relation = _relation(given.frame)
    _check_settings(given.frame.sparkSession)
    files = [*_files(relation.location().allFiles())]
    if not files:
        raise _NoScan("it has no files")
    settings = given.frame.sparkSession.conf
    rebased = any(settings.get(name) != "CORRECTED" for name in _CORRECTED)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        scanned = (*pool.map(partial(_scanned, given, rebased), files),)
    tasks = given.frame.sparkSession.sparkContext.defaultParallelism
    return ParquetScan(given.rows.options, given.rows.plan, (), scanned, tasks)


def _relation(frame: Any) -> Any:
    """Java's relation of files."""
    plan = frame._jdf.queryExecution().withCachedData()
    while (kind := _class(plan)) != _RELATION:
        if kind == _LOGICAL + "Project":
            columns = plan.projectList()
            if any(_class(columns.apply(n)) != _COLUMN for n in range(columns.size())):
                raise _NoScan("its columns are computed or renamed")
        elif kind not in _TRANSPARENT:
            raise _NoScan(f"its plan has {kind.rpartition('.')[2]}")
        plan = plan.child()
    if plan.isStreaming() or plan.catalogTable().isDefined():
        raise _NoScan("it is a stream or a table of the catalog")
    relation = _checked(plan.relation(), "relation")
    for part in ("fileFormat", "location"):
        _checked(getattr(relation, part)(), part)
    if not relation.partitionSchema().isEmpty() or relation.bucketSpec().isDefined():
        raise _NoScan("its files are in partitions or buckets")
    options = relation.options().keySet().mkString(" ").split()
    if not {"path", "paths"}.issuperset(options):
        raise _NoScan(f"it has the options {' '.join(sorted(options))}")
    return relation


def _checked(part: Any, name: str) -> Any:
    if _class(part) != _PARTS[name]:
        raise _NoScan(f"its {name} is {_class(part).rpartition('.')[2]}")
    return part


def _class(thing: Any) -> str:
    name: str = thing.getClass().getName()
    return name


def _check_settings(spark: Any) -> None:
    for name in _OFF:
        if spark.conf.get(name, "false") != "false":
            raise _NoScan(f"the session has {name}")
    hadoop = spark._jsc.hadoopConfiguration()
    for name in ("parquet.crypto.factory.class", "fs.file.impl"):
        if hadoop.get(name) not in (None, "org.apache.hadoop.fs.LocalFileSystem"):
            raise _NoScan(f"the session has {name}")


def _files(listed: Any) -> Iterator[tuple[str, int]]:
    """(path, bytes) of the files at the creation of the DataFrame."""
    count = listed.size()
    if count > _MOST_FILES:
        raise _NoScan(f"it has more than {_MOST_FILES} files")
    for number in range(count):
        status = listed.apply(number)
        uri = urlsplit(status.getPath().toUri().toASCIIString())
        path = unquote(uri.path)
        if uri.scheme != "file" or uri.netloc or Path(path).name[0] in "._":
            raise _NoScan(f"{path} is not just a file")
        try:
            now = os.stat(path)
        except OSError:
            raise _NoScan(f"{path} cannot be read here") from None
        listed_as = status.getLen(), status.getModificationTime()
        if (now.st_size, now.st_mtime_ns // 1_000_000) != listed_as:
            raise _NoScan(f"{path} has changed")
        yield path, now.st_size


def _scanned(given: LiftedFrame, rebased: bool, file: tuple[str, int]) -> ScannedFile:
    """A file whose columns are known to have Spark's values."""
    path, size = file
    try:
        with pq.ParquetFile(path, **PARQUET_READING) as opened:
            metadata, schema = opened.metadata, opened.schema_arrow
    except (OSError, pa.ArrowException):
        raise _NoScan(f"pyarrow cannot read {path}") from None
    if any(has_dates(f.dataType) for f in given.frame.schema) and _may_be_old(metadata, rebased):
        raise _NoScan(f"{path} may have times of another calendar")
    columns = [*map(metadata.schema.column, range(metadata.num_columns))]
    logical = {column.path: str(column.logical_type) for column in columns}
    int96 = {column.path for column in columns if column.physical_type == "INT96"}
    leaves = _leaves(given, schema, path, int96)
    if not leaves.issubset(logical):
        raise _NoScan(f"{path} has lists as an old version of Parquet wrote them")
    rows = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows.append(group.num_rows)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema in leaves:
                _check_chunk(chunk, logical[chunk.path_in_schema], path)
    return ScannedFile(path, size, tuple(rows))


def _leaves(given: LiftedFrame, schema: pa.Schema, path: str, int96: set[str]) -> set[str]:
    """The Parquet columns that the lift reads, all of the DataFrame's types."""
    fields, types = given.rows.plan.fields, {f.name: f for f in given.frame.schema}
    if len({name.lower() for name in schema.names}) < len(schema.names):
        raise _NoScan(f"columns of {path} have the same name")
    present = table_variables(schema)
    try:
        check_names(path, present, fields)
    except InputError as error:
        raise _NoScan(str(error)) from None
    known = {name for f in types.values() for name in variables(variable_of(f.name), f.dataType)}
    if not known & fields.wanted <= {*present}:
        raise _NoScan(f"{path} lacks columns of the DataFrame")
    leaves = set[str]()
    for field in schema:
        if fields.wanted.isdisjoint(table_variables(pa.schema([field]))):
            continue
        own = types.get(field.name)
        kind = pa.timestamp("us", "UTC") if field.name in int96 else field.type
        if own is None or not is_same(own.dataType, kind) or _CHARACTERS in own.metadata:
            raise _NoScan(f"{field.name} in {path} is {field.type}")
        leaves.update(leaf_paths(field.name, field.type))
    return leaves


def _may_be_old(metadata: Any, rebased: bool) -> bool:
    """Whether a version of Spark that uses the Julian calendar for times may have written the file.

    For files that do not say it, the session's setting decides.
    """
    known = metadata.metadata or {}
    version = known.get(b"org.apache.spark.version")
    if version is None:
        return rebased
    return bool(version < b"3.1.0" or any(b"legacy" in name for name in known))


def _check_chunk(chunk: Any, logical: str, path: str) -> None:
    codec = _CODECS.get(chunk.compression, "")
    if codec == "" or (codec is not None and not pa.Codec.is_available(codec)):
        raise _NoScan(f"{path} is compressed by {chunk.compression}")
    if not is_chunk_same(chunk, logical):
        raise _NoScan(f"{chunk.path_in_schema} in {path} is {logical} or {chunk.physical_type}")
