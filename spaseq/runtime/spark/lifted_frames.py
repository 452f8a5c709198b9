"""Stage 1 over DataFrames whose rows are events by a lift. Their columns stay Arrow columns.

Rows go to Python once, and only their solutions continue: each partition numbers its events of
equal time, and stage 2 adds the numbers of other partitions. If the user names a column that orders
such rows, Spark first brings them together. Then it needs their times. If they are not simply a
column, an earlier pass in Python finds them.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from spaseq import thresholds
from spaseq.errors import UsageError
from spaseq.lang import ast
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import variables_of
from spaseq.lift.cells import inner_name, variable_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan, LostValue, bad_row, time_field
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.row_blocks import TableBlock
from spaseq.lift.row_groups import bounds
from spaseq.lift.table_files import check_names
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions, ignore
from spaseq.runtime.arrivals.tie_numbering import PartTimes, TieTable, provisional
from spaseq.runtime.spark.rows.stage_rows import (
    NO_SPLIT,
    PACKS,
    PACKS_DDL,
    TIES,
    TaskReport,
    rows,
)
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve

TIME = "spaseq time"
"""The column with the time (ms) of each row's event; arbitrary for a row without one."""

_MOST_PARTITIONS = 1 << 20

_MOST_EXACT = 2**53

_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
             "=": operator.eq}  # fmt: skip

_SAFE = {f"{name}Type" for name in ("Byte", "Short", "Integer", "Long", "Double", "Boolean",
                                    "String", "Timestamp")}  # fmt: skip
"""Spark types whose values never make a row bad that has no solution."""


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The lift of a DataFrame's rows, and the reading options of its stream."""

    options: StreamOptions
    plan: LiftPlan

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
        for batch in tables(batches):
            times = np.arange(len(batch), dtype=np.int64)  # spreads rows that are no events
            for made in maker.lifted(TableBlock(batch, 1), ignore):
                times[made.rows] = made.events.time
            yield batch.append_column(TIME, pa.array(times))

    def events(
        self, batches: Iterator[pa.RecordBatch], on_bad: OnBad, number_from: object
    ) -> Iterator[EventBatch]:
        """The events of rows at a position; `?_line` is refused, so their numbers do not matter."""
        maker = self.maker(self.options.predicates)
        maker.number_after(number_from)

        def report(row: int, reason: str, lost: LostValue | None) -> None:
            on_bad(bad_row(f"<{self.iri}>", None, reason, lost))

        for batch in tables(batches):
            for made in maker.lifted(TableBlock(batch, 1), report):
                yield made.events


@dataclass(frozen=True, slots=True)
class LiftedFrame:
    """A DataFrame, the source of its rows, and the column that orders rows of equal time.

    `text` is the text of the lift.
    """

    frame: Any
    rows: FrameRows
    order: str | None
    text: str

    def identity(self) -> list[str]:
        """The parts that must stay the same for a run to resume."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return [digest, *([] if self.order is None else [self.order])]

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
        if self.order is not None and self.order not in known:
            near = suggested(self.order, known)
            hint = f"; did you mean {near}?" if near else ""
            raise UsageError(f"{where} has no column {self.order} for order{hint}")
        names = [n for n in known if n == self.order or not plan.fields.wanted.isdisjoint(known[n])]
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


def lifted_solutions(given: LiftedFrame, solve: BoundedSolve, number: int) -> Any:
    """Stage 1 of a bounded run: the DataFrame of solution rows for a DataFrame of rows.

    `number` counts the lifted DataFrames of a run.
    """
    frame = given.selected()
    task = FrameRowSolve(solve, given.rows, number)
    if given.order is not None:
        count, by = frame.sparkSession.sparkContext.defaultParallelism, _quoted(given.order)
        if given.rows.plan.others:  # a row has several times, so parts are in order of the column
            frame = frame.repartitionByRange(count, by).sortWithinPartitions(by)
        else:
            placed = _timed(frame, given, task).repartition(count, TIME)
            frame = placed.sortWithinPartitions(TIME, by).drop(TIME)
    return frame.mapInArrow(lambda batches: task.solved(batches), PACKS_DDL)


def _timed(frame: Any, given: LiftedFrame, task: FrameRowSolve) -> Any:
    """The rows with the column `TIME`: equal for equal times, and in their order."""
    from pyspark.sql.types import LongType, StructField, StructType

    column = given.time_column()
    if column is not None:
        return frame.withColumn(TIME, column)
    schema = StructType([*frame.schema.fields, StructField(TIME, LongType())])
    return frame.mapInArrow(lambda batches: task.timed(batches), schema)


@dataclass(frozen=True, slots=True)
class FrameRowSolve:
    """Stage 1 of a bounded run over the rows of one lifted DataFrame."""

    solve: BoundedSolve
    rows: FrameRows
    number: int

    def timed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: the rows with their times."""
        self.solve.kernels.take()
        yield from self.rows.timed(batches)

    def solved(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: the rows of a partition to rows of `PACKS`."""
        self.solve.kernels.take()
        partition = task_partition()
        part = PartSolve(self.solve, self.rows.iri, self.number, partition)
        yield from part.packs(lambda on_bad: self.rows.events(batches, on_bad, partition))
        for _ in batches:  # read to the end after an error, as Spark expects
            pass


@dataclass(frozen=True, slots=True)
class PartSolve:
    """Stage 1 of a bounded run over a part of a stream, which may overlap with others in time.

    `number` is the number of the stream, among the streams with parts. `place` is the part's
    position in its stream.
    """

    solve: BoundedSolve
    iri: str
    number: int
    place: int

    def packs(
        self, events: Callable[[OnBad], Iterator[EventBatch]], alone: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Rows of `PACKS`; a part that is `alone` needs no numbers of other parts' events."""
        part = (self.number + 1) * _MOST_PARTITIONS + self.place
        report, times = TaskReport(PACKS, part), PartTimes(self.number, part)
        given, split = events(report.take), NO_SPLIT
        if not alone:
            given, split = provisional(times.watch(given)), part
        yield from report.rows(self.solve.solved(self.iri, given, report.stats, report.take, split))
        for table in times.tables():
            yield self._for_all(table)

    def _for_all(self, table: TieTable) -> pa.RecordBatch:
        """A tie table for each task of stage 2."""
        count, first = self.solve.parts, int(table.times[0])
        part, data = np.arange(count, dtype=np.int32), [table.data()] * count
        return rows(PACKS, count, part=part, query=TIES, time=[first] * count, payload=data)


STORED_DDL = "stream string, time bigint, k int, event string, graph binary"
"""Rows of a streaming DataFrame; rows of a table have Arrow bytes in place of the graph."""

_STORED = pa.schema(
    [
        ("stream", pa.string()),
        ("time", pa.int64()),
        ("k", pa.int32()),
        ("event", pa.string()),
        ("graph", pa.binary()),
    ]
)


def stored_rows(given: LiftedFrame) -> Any:
    """The DataFrame of `STORED_DDL` rows for a streaming DataFrame of rows."""
    iri = given.rows.iri

    def stored(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tables(batches):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield rows(_STORED, 1, stream=iri, graph=bytes(sink.getvalue()))

    return given.selected().mapInArrow(stored, STORED_DDL)


def events_of_stored(
    source: FrameRows, order: str | None, stored: Sequence[bytes], on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of tables in order of time; a column orders events of equal time."""
    whole, stored_bytes = pa.concat_tables(map(_table, stored)), [*map(bytes, stored)]
    if order is not None:
        whole = whole.sort_by([(order, "ascending")])
    if source.plan.others:
        united = _united([*source.events(iter(whole.to_batches()), on_bad, stored_bytes)])
        in_time = united.take(np.argsort(united.time, kind="stable"))
        yield replace(in_time, filtered=united.filtered)
        return
    times = [batch.column(TIME) for batch in source.timed(iter(whole.to_batches()))]
    places = np.argsort(pa.chunked_array(times, pa.int64()).to_numpy(), kind="stable")
    ordered = whole.take(pa.array(places)).to_batches()
    yield from source.events(iter(ordered), on_bad, stored_bytes)


def _united(batches: Sequence[EventBatch]) -> EventBatch:
    """Events of rows that were lifted one by one, as one batch."""
    codes: dict[str, int] = {}
    coded = [
        np.array([codes.setdefault(t, len(codes)) for t in b.terms], np.int32) for b in batches
    ]
    s, p, o = (
        np.concatenate([code[getattr(b, name)] for b, code in zip(batches, coded, strict=True)])
        for name in "spo"
    )
    sizes = np.concatenate([np.diff(b.start) for b in batches])
    return EventBatch(
        batches[0].stream,
        np.concatenate([b.time for b in batches]),
        np.concatenate([b.k for b in batches]),
        EventNames.concat([b.graph.read(np.arange(len(b))) for b in batches]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        s,
        p,
        o,
        ListedTerms([*codes]),
        filtered=sum(b.filtered for b in batches),
    )


def _table(stored: bytes) -> pa.Table:
    with pa.ipc.open_stream(stored) as reader:
        return reader.read_all()


def tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of batches in batches of at least `table_rows` rows, where there are enough."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if len(batch):
            waiting.append(batch)
        if sum(map(len, waiting)) >= thresholds.current.table_rows:
            yield from _whole(waiting)
            waiting = []
    if waiting:
        yield from _whole(waiting)


def _whole(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def variables(name: str, kind: Any) -> list[str]:
    """The variables of a column, and of the fields in it if it is a struct."""
    if kind.typeName() != "struct":
        return [name]
    inner = (n for f in kind.fields for n in variables(name + inner_name(f.name), f.dataType))
    return [name, *inner]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def task_partition() -> int:
    """The number of the partition that this task has; 0 outside of tasks."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def _reads_row_number(plan: LiftPlan) -> bool:
    read = {term.name for term in plan.terms if isinstance(term, ast.Var)}
    return ROW_NUMBER in read.union(*map(variables_of, plan.elements))
