"""Columns of Parquet of which pyarrow and Spark read the same values.

A type that is not here, Spark reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

_SAME: tuple[tuple[type[st.DataType], pa.DataType], ...] = (
    (st.ByteType, pa.int8()),
    (st.ShortType, pa.int16()),
    (st.IntegerType, pa.int32()),
    (st.LongType, pa.int64()),
    (st.FloatType, pa.float32()),
    (st.DoubleType, pa.float64()),
    (st.BooleanType, pa.bool_()),
    (st.DateType, pa.date32()),
    (st.BinaryType, pa.binary()),
)

_UNITS = ("ms", "us")
"""Spark does not read nanoseconds."""

_LEAST_MS, _MOST_MS = -(2**63 // 1000), (2**63 - 1) // 1000


def is_same(spark: st.DataType, arrow: pa.DataType) -> bool:
    """Whether Spark's and pyarrow's values of a column of these types are equal.

    >>> is_same(st.LongType(), pa.int64()), is_same(st.LongType(), pa.int32())
    (True, False)
    """
    if pa.types.is_dictionary(arrow):
        return is_same(spark, arrow.value_type) and type(spark) is st.StringType
    match spark:
        case st.StringType():
            text = pa.types.is_string(arrow) or pa.types.is_large_string(arrow)
            return bool(text) and spark == st.StringType()
        case st.DecimalType():
            return bool(arrow == pa.decimal128(spark.precision, spark.scale))
        case st.TimestampType() | st.TimestampNTZType():
            zoned = isinstance(spark, st.TimestampType)
            return (
                pa.types.is_timestamp(arrow)
                and arrow.unit in _UNITS
                and (arrow.tz is not None) == zoned
            )
        case st.ArrayType():
            return pa.types.is_list(arrow) and is_same(spark.elementType, arrow.value_type)
        case st.StructType():
            return pa.types.is_struct(arrow) and _same_fields(spark, arrow)
    return any(type(spark) is one and arrow == other for one, other in _SAME)


def _same_fields(spark: st.StructType, arrow: pa.DataType) -> bool:
    fields = [arrow.field(n) for n in range(arrow.num_fields)]
    return [f.name for f in fields] == spark.names and all(
        is_same(one.dataType, other.type) for one, other in zip(spark, fields, strict=True)
    )


def leaf_paths(name: str, kind: pa.DataType) -> Iterator[str]:
    """The columns of Parquet that a field has, if its lists are written as the format says."""
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            inner = kind.field(number)
            yield from leaf_paths(f"{name}.{inner.name}", inner.type)
    elif pa.types.is_list(kind):
        yield from leaf_paths(f"{name}.list.{kind.value_field.name}", kind.value_type)
    else:
        yield name


def has_dates(kind: st.DataType) -> bool:
    """Whether values may be days or times, of which old versions of Spark wrote others."""
    match kind:
        case st.ArrayType():
            return has_dates(kind.elementType)
        case st.StructType():
            return any(has_dates(field.dataType) for field in kind)
    return isinstance(kind, st.DateType | st.TimestampType | st.TimestampNTZType)


def is_chunk_same(chunk: Any, logical: str) -> bool:
    """Whether values of a column of a row group are equal, too; `logical` is the column's type.

    Spark refuses milliseconds that are no microseconds in 64 bits.
    """
    if "milliseconds" not in logical or chunk.num_values == 0:
        return True
    if not chunk.is_stats_set:
        return False
    known = chunk.statistics
    if known.null_count == chunk.num_values:
        return True
    return bool(known.has_min_max and known.min_raw >= _LEAST_MS and known.max_raw <= _MOST_MS)
