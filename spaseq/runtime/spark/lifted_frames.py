"""Stage 1 over DataFrames whose rows are events by a lift. Their columns stay Arrow columns.

Rows go to Python once, and only their solutions continue: each partition numbers its events of
equal time, and stage 2 adds the numbers of other partitions. If the user names a column that orders
such rows, Spark first brings them together. Then it needs their times. If they are not simply a
column, an earlier pass in Python finds them.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from spaseq.compiled import mode
from spaseq.errors import UsageError
from spaseq.lang import ast
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import variables_of
from spaseq.lift.cells import inner_name, variable_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan, row_reports, time_field
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.lifted_graphs import united
from spaseq.lift.row_blocks import joined, table_block
from spaseq.lift.row_groups import bounds
from spaseq.lift.table_files import check_names
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions, ignore
from spaseq.runtime.spark.rows.stage_rows import batch_of, struct_of
from spaseq.sources.base import SplitNumbering

TIME = "spaseq time"
"""The column with the time (ms) of each row's event; arbitrary for a row without one."""

_MOST_EXACT = 2**53

_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
             "=": operator.eq}  # fmt: skip

_SAFE = {f"{name}Type" for name in ("Byte", "Short", "Integer", "Long", "Double", "Boolean",
                                    "String", "Timestamp")}  # fmt: skip
"""Spark types whose values never make a row bad that has no solution."""


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The lift of a DataFrame's rows, and the reading options of its stream.

    `order` is the column that orders rows of equal time.
    """

    options: StreamOptions
    plan: LiftPlan
    order: str | None

    @property
    def iri(self) -> str:
        """The IRI of the stream."""
        return self.options.iri

    def maker(self, predicates: tuple[str, ...] | None) -> EventMaker:
        """The factory of events, with the triples of these predicates only."""
        return EventMaker(self.plan, self.iri, limits=self.options.limits, asked=predicates)

    def timed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows with the times of their events; nothing is reported."""
        maker = self.maker(())
        for batch in joined(batches):
            times = np.arange(len(batch), dtype=np.int64)  # spreads rows that are no events
            made = maker.lifted(table_block(batch, self.plan.fields.wanted, 1), ignore)
            times[made.rows] = made.events.time
            yield batch.append_column(TIME, pa.array(times))

    def events(
        self, batches: Iterator[pa.RecordBatch], on_bad: OnBad, number_from: object
    ) -> Iterator[EventBatch]:
        """The events of rows of a part; `?_line` is refused, so their numbers do not matter."""
        maker = self.maker(self.options.predicates)
        maker.number_after(number_from)
        report = row_reports(lambda _: (f"<{self.iri}>", None), on_bad)
        for batch in joined(batches):
            block = table_block(batch, self.plan.fields.wanted, 1)
            yield maker.lifted(block, report).events

    def in_time(
        self, iri: str, given: Sequence[Sequence[Any]], on_bad: OnBad
    ) -> Iterator[EventBatch]:
        """The events of rows of `_STORED` in order of time."""
        stored = [bytes(row[4]) for row in given]
        whole = pa.concat_tables(map(_table, stored))
        if self.order is not None:
            whole = whole.sort_by([(self.order, "ascending")])
        if self.plan.others:
            events = united([*self.events(iter(whole.to_batches()), on_bad, stored)])
            in_time = events.take(np.argsort(events.time, kind="stable"))
            yield replace(in_time, filtered=events.filtered)
            return
        times = [batch.column(TIME) for batch in self.timed(iter(whole.to_batches()))]
        places = np.argsort(pa.chunked_array(times, pa.int64()).to_numpy(), kind="stable")
        ordered = whole.take(pa.array(places)).to_batches()
        yield from self.events(iter(ordered), on_bad, stored)


@dataclass(frozen=True, slots=True)
class LiftedFrame:
    """A DataFrame of rows, which become events by a lift; `text` is the text of the lift."""

    frame: Any
    rows: FrameRows
    text: str

    numbering: ClassVar[SplitNumbering] = SplitNumbering.APART

    def identity(self) -> list[str]:
        """The parts that must stay the same for a run to resume."""
        digest, order = hashlib.sha256(self.text.encode()).hexdigest(), self.rows.order
        return [digest, *([] if order is None else [order])]

    def stored(self) -> Any:
        """The DataFrame of `_STORED` rows for a streaming DataFrame."""
        iri = self.rows.iri

        def stored(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in joined(batches):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                yield batch_of(_STORED, [(iri, None, None, None, bytes(sink.getvalue()))])

        return self.selected().mapInArrow(stored, struct_of(_STORED))

    def placed(self, kernels: mode.Mode) -> Any:
        """The DataFrame for `FrameRows.events`; an order brings rows of equal time together."""
        frame = self.selected()
        if self.rows.order is None:
            return frame
        count, by = frame.sparkSession.sparkContext.defaultParallelism, _quoted(self.rows.order)
        if self.rows.plan.others:  # a row has several times, so parts are in order of the column
            return frame.repartitionByRange(count, by).sortWithinPartitions(by)
        placed = self._timed(frame, kernels).repartition(count, TIME)
        return placed.sortWithinPartitions(TIME, by).drop(TIME)

    def _timed(self, frame: Any, kernels: mode.Mode) -> Any:
        """The rows with the column `TIME`: equal for equal times, and in their order."""
        from pyspark.sql.types import LongType, StructField, StructType

        column, rows = self.time_column(), self.rows
        if column is not None:
            return frame.withColumn(TIME, column)

        def timed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            kernels.take()
            yield from rows.timed(batches)

        schema = StructType([*frame.schema.fields, StructField(TIME, LongType())])
        return frame.mapInArrow(timed, schema)

    def selected(self) -> Any:
        """The DataFrame with the columns that the lift reads, and the order's.

        Raises:
            InputError: the lift reads a missing column.
            UsageError: the lift reads row numbers, or there is no column for the order.
        """
        plan, where = self.rows.plan, f"stream <{self.rows.iri}>: the DataFrame"
        if _reads_row_number(plan):
            raise UsageError(f"{where} has no row numbers, and the lift reads ?{ROW_NUMBER}")
        known = {f.name: variables(variable_of(f.name), f.dataType) for f in self.frame.schema}
        check_names(where, [*chain.from_iterable(known.values())], plan.fields)
        order = self.rows.order
        if order is not None and order not in known:
            near = suggested(order, known)
            hint = f"; did you mean {near}?" if near else ""
            raise UsageError(f"{where} has no column {order} for order{hint}")
        names = [n for n in known if n == order or not plan.fields.wanted.isdisjoint(known[n])]
        frame = self.frame.select(*map(_quoted, names or [*known][:1]))
        for test in self._tests():
            frame = frame.where(test)
        return frame

    def time_column(self) -> Any:
        """The column of the rows' times, in ms; None if no single column has them."""
        from pyspark.sql import functions as sf
        from pyspark.sql.types import IntegralType, TimestampType

        name = time_field(self.rows.plan)
        kind = self._types().get(name) if name is not None else None
        if kind is None:
            return None
        column, of = kind
        if isinstance(of, TimestampType):
            return sf.unix_millis(_quoted(column))
        return sf.col(_quoted(column)).cast("bigint") if isinstance(of, IntegralType) else None

    def _tests(self) -> Iterator[Any]:
        """FILTERs of the lift that Spark evaluates equally, if they can hide no bad row."""
        from pyspark.sql import functions as sf
        from pyspark.sql.types import DoubleType, IntegralType

        types = self._types()
        if not all(type(types.get(n, ("", None))[1]).__name__ in _SAFE for n in self._read()):
            return
        for bound in bounds(self.rows.plan):
            (column, kind), number = types[bound.field], bound.value
            if not isinstance(number, int) or abs(number) > _MOST_EXACT:
                continue
            if not isinstance(kind, DoubleType | IntegralType):
                continue
            value, other = sf.col(_quoted(column)), sf.lit(number)
            if isinstance(kind, DoubleType):  # of which Spark takes NaN for the greatest
                yield ~sf.isnan(value)
            yield _COMPARED[bound.op](value, other)

    def _read(self) -> frozenset[str]:
        return self.rows.plan.fields.wanted

    def _types(self) -> dict[str, tuple[str, Any]]:
        """(column, type) by variable."""
        return {variable_of(f.name): (f.name, f.dataType) for f in self.frame.schema}


_STORED = pa.schema(
    [
        ("stream", pa.string()),
        ("time", pa.int64()),
        ("k", pa.int32()),
        ("event", pa.string()),
        ("graph", pa.binary()),
    ]
)
"""Rows of a streaming DataFrame; rows of a table have Arrow bytes in place of the graph."""


def _table(stored: bytes) -> pa.Table:
    with pa.ipc.open_stream(stored) as reader:
        return reader.read_all()


def variables(name: str, kind: Any) -> list[str]:
    """The variables of a column, and of the fields in it if it is a struct."""
    if kind.typeName() != "struct":
        return [name]
    inner = (n for f in kind.fields for n in variables(name + inner_name(f.name), f.dataType))
    return [name, *inner]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _reads_row_number(plan: LiftPlan) -> bool:
    read = {term.name for term in plan.terms if isinstance(term, ast.Var)}
    return ROW_NUMBER in read.union(*map(variables_of, plan.elements))
