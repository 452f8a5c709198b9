"""Columns of variables beside `bindings`, with the types of their values.

The types come from all answers, by the rules of `spaseq.sinks.typed_columns`, or from the caller. A
term without a value of its column's type is null there; `bindings` has every term.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record
from spaseq.runtime.spark.rows.stage_rows import struct_of
from spaseq.runtime.spark.session.failures import errors
from spaseq.sinks.answer_columns import own_column
from spaseq.sinks.typed_columns import TIME, ColumnType, fitting_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Decoder: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_TYPES = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "timestamp": TIME,
    "date": pa.date32(),
    "string": pa.string(),
}
_NAMES = {kind: name for name, kind in _TYPES.items()}
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")
_MOST_DIGITS = 38  # of a decimal in Spark


@record
class TypedVariables:
    """The variables that get columns, and the caller's types; None: find the types."""

    variables: Sequence[str]
    named: Mapping[str, pa.DataType] | None

    @classmethod
    def of(
        cls, plans: Sequence[QueryPlan], typed: bool | Mapping[str, str], streamed: bool
    ) -> TypedVariables:
        """The columns for the argument `typed` of `spaseq.spark.answers`.

        Raises:
            UsageError: an unknown type or variable, or a streaming DataFrame with `typed=True`.
        """
        if typed is False:
            return cls((), {})
        variables = tuple(dict.fromkeys(p.name for q in plans for p in q.answers.projection))
        if not isinstance(typed, bool):
            for name in typed:
                _check_variable(name, variables)
            return cls(variables, {name: _type_of(name, text) for name, text in typed.items()})
        if streamed:
            example = ", ".join(f'"{name}": "double"' for name in variables[:2])
            raise UsageError(
                "typed=True finds the types from all answers, and a streaming DataFrame has no"
                f" last one: name them, such as typed={{{example}}}"
            )
        return cls(variables, None)

    def frame(self, output: Any, decode: Decoder, schema: Any) -> DataFrame:
        """The DataFrame of these rows of a Spark type, with a column for each variable."""
        if not self.variables:
            return output.mapInArrow(lambda batches: decode(batches), schema)
        if self.named is not None:
            types = {name: self.named.get(name, pa.string()) for name in self.variables}
            return self._typed(output, decode, schema, types)
        with errors():
            # Not computed again, and freed when nothing refers to the DataFrame any more.
            rows = output.mapInArrow(lambda batches: decode(batches), schema).localCheckpoint()
            types = self._found(rows)
        return self._typed(rows, lambda batches: batches, schema, types)

    def _typed(
        self, rows: Any, decode: Decoder, schema: Any, types: Mapping[str, pa.DataType]
    ) -> DataFrame:
        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in decode(batches):
                yield _with_columns(batch, types)

        query, *others = schema.fields
        columns = struct_of(pa.schema([(f"_{n}", kind) for n, kind in enumerate(types.values())]))
        frame = rows.mapInArrow(run, type(schema)([query, *columns.fields, *others]))
        lower = [name.lower() for name in types]  # Spark's names ignore case
        given = [name for name in frame.columns if name not in {f"_{n}" for n in range(len(types))}]
        first, *rest = (own_column(name, lower) for name in given)
        return frame.toDF(first, *types, *rest)

    def _found(self, frame: Any) -> dict[str, pa.DataType]:
        """The types of the variables in all rows."""
        variables = self.variables

        def see(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            types = {name: ColumnType() for name in variables}
            for batch in batches:
                for name, column in types.items():
                    column.see(_terms(batch, name).unique().to_pylist())
            yield pa.RecordBatch.from_pydict({"types": [pickle.dumps([*types.values()])]})

        seen = frame.select("bindings").mapInArrow(see, "types binary").collect()
        parts = [pickle.loads(row.types) for row in seen]
        whole = reduce(_both, parts, [ColumnType() for _ in variables])
        return {
            name: column.arrow
            if column.arrow in _NAMES or isinstance(column.arrow, pa.Decimal128Type)
            else pa.string()
            for name, column in zip(variables, whole, strict=True)
        }


def _both(one: list[ColumnType], other: list[ColumnType]) -> list[ColumnType]:
    for column, also in zip(one, other, strict=True):
        column.add(also)
    return one


def _with_columns(batch: pa.RecordBatch, types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """A batch with the columns of the variables after its first column."""
    columns = [fitting_values(_terms(batch, name), kind) for name, kind in types.items()]
    first, *rest = batch.columns
    names = [f"_{n}" for n in range(len(columns))]
    query, *others = batch.schema.names
    return pa.RecordBatch.from_arrays([first, *columns, *rest], [query, *names, *others])


def _terms(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The terms of a variable, as N-Triples texts."""
    return pc.map_lookup(batch.column("bindings"), pa.scalar(name), "first").cast(pa.string())


def _check_variable(name: str, variables: Sequence[str]) -> None:
    if name in variables:
        return
    near = get_close_matches(name, variables, 1)
    meant = f", did you mean {near[0]}?" if near else f"; they are {', '.join(variables)}"
    raise UsageError(f"typed: no query projects a variable {name!r}{meant}")


def _type_of(name: str, text: str) -> pa.DataType:
    """The Arrow type of a Spark type's name."""
    known = _TYPES.get(text.lower())
    if known is not None:
        return known
    digits = _DECIMAL.fullmatch(text.lower())
    if digits and int(digits[2]) <= int(digits[1]) <= _MOST_DIGITS and int(digits[1]):
        return pa.decimal128(int(digits[1]), int(digits[2]))
    names = ", ".join([*_TYPES, "decimal(p,s)"])
    raise UsageError(f"typed: {text!r} of {name!r} is no type of a variable; they are {names}")
