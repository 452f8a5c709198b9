"""Solutions of graph patterns on events: in columns, in order, and as Arrow bytes.

Columns may share their tables of terms: work on the terms is done once for all. `np.lexsort` and
`np.unique` would give the order and the distinct rows of integer columns. But the former sorts by
each column, and the latter compares rows byte by byte, which takes four and ten times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq.compiled.arrays import Indices, Int32s, Int64s
from spaseq.rdf.columns.event_batch import NO_NAMES, WHOLE, EventNames, NameForm
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import NumberColumn, RowSelection, TermColumn
from spaseq.records import record

_MOST = 2**62

_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)

BARE = -1
"""`gpm` of a bare event: a row that holds only the instant of an event without a solution."""


def row_keys(columns: Sequence[Any]) -> Int64s:
    """Numbers [n] that are equal where rows of the columns [n] are, and order as the rows do.

    >>> row_keys([np.array([1, 0, 1]), np.array([-5, 2, -5])]).argsort(kind="stable").tolist()
    [1, 0, 2]
    """
    return _keys(columns)[0]


def _keys(columns: Sequence[Any]) -> tuple[Int64s, int]:
    """(the keys [n] of rows, an upper bound of the keys)."""
    key, keys = np.zeros(len(columns[0]), np.int64), 1
    if not len(key):
        return key, keys
    for column in columns:
        low, high = int(column.min()), int(column.max())
        if high - low >= 2**32:
            values, column = np.unique(column, return_inverse=True)
            low, high = 0, len(values) - 1
        width = high - low + 1
        if keys * width >= _MOST:
            used, key = np.unique(key, return_inverse=True)
            keys = len(used)
        key, keys = key * width + (column.astype(np.int64) - low), keys * width
    return key, keys


def row_order(columns: Sequence[Any]) -> Indices:
    """The order [n] of rows, the first column first; equal rows stay as they are."""
    key, keys = _keys(columns)
    rows = len(key)
    if not rows or keys * rows >= _MOST:
        return np.argsort(key, kind="stable")
    order = key * rows + np.arange(rows)  # sorting numbers takes a seventh of the time
    order.sort()
    order %= rows
    return order


def first_rows(columns: Sequence[Any]) -> Indices:
    """The first row of each distinct one, in the order of the rows' values."""
    return np.unique(row_keys(columns), return_index=True)[1]


def grouped_rows(columns: Sequence[Any]) -> tuple[Indices, Indices]:
    """(the first row of each distinct one, the index [n] of each row among the distinct ones)."""
    _, first, which = np.unique(row_keys(columns), return_index=True, return_inverse=True)
    return first, which


def repeated_rows(start: Int64s, s: Int32s, p: Int32s, o: Int32s) -> Int64s:
    """The rows, ascending, that repeat the triple of an earlier row of the same event.

    Event i has the rows start[i]:start[i + 1]. As repeated triples are rare, the rows are hashed
    first, and compared only if two hashes are equal.
    """
    event = np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start))
    key = event.view(np.uint64) * _ODD[0]
    for column in (s, p, o):
        key = (key ^ column.astype(np.uint64)) * _ODD[1]
        key ^= key >> np.uint64(29)
    key.sort()
    if not (key[1:] == key[:-1]).any():
        return np.empty(0, np.int64)
    order = np.lexsort((o, p, s, event))  # stable, so the first of equals comes first
    columns = np.stack((event, s, p, o))[:, order]
    same = (columns[:, 1:] == columns[:, :-1]).all(axis=0)
    return np.sort(order[1:][same])


def concat_columns(parts: Sequence[Sequence[TermColumn]]) -> list[TermColumn]:
    """`TermColumn.concat` of each column, given the columns of several parts.

    Columns that share their terms in every part still do.
    """
    return _by_table(parts, lambda alike: TermColumn.concat(alike) if len(alike) > 1 else alike[0])


def compact_columns(columns: Sequence[TermColumn]) -> list[TermColumn]:
    """The same columns; a table loses its unused terms if its columns together use few of them."""
    return _by_table([columns], lambda alike: alike[0].compact())


def texts_of_columns(columns: Sequence[TermColumn]) -> list[list[str | None]]:
    """The texts of each column, None where unbound; a mostly used table is read once."""
    tables: dict[int, list[str | None]] = {}
    texts = []
    for column in columns:
        terms = column.terms
        if len(terms) > len(columns) * len(column):
            texts.append(column.texts())
            continue
        table = tables.get(id(terms))
        if table is None:
            table = tables[id(terms)] = [*terms.to_pylist(), None]  # the last is UNBOUND's
        texts.append([table[code] for code in column.codes.tolist()])
    return texts


def _by_table(
    parts: Sequence[Sequence[TermColumn]], of: Callable[[Sequence[TermColumn]], TermColumn]
) -> list[TermColumn]:
    """The results of `of` for the parts of each column; columns with the same tables share one."""
    alike: dict[object, list[int]] = {}
    for number, columns in enumerate(zip(*parts, strict=True)):
        tables = tuple([column.table for column in columns])
        alike.setdefault(number if None in tables else tables, []).append(number)
    made: dict[int, TermColumn] = {}
    for places in alike.values():
        if len(places) == 1:
            made[places[0]] = of([part[places[0]] for part in parts])
            continue
        whole = of([_stacked([part[number] for number in places]) for part in parts])
        split, first = [], 0
        for part in parts:
            end = first + len(places) * len(part[places[0]])
            split.append(whole.codes[first:end].reshape(len(places), -1))
            first = end
        codes = split[0] if len(split) == 1 else np.concatenate(split, axis=1)
        made |= {
            p: TermColumn(part_codes, whole.terms)
            for p, part_codes in zip(places, codes, strict=True)
        }
    return [made[number] for number in range(len(made))]


def _stacked(columns: Sequence[TermColumn]) -> TermColumn:
    """The rows of columns that share their terms, column by column."""
    return TermColumn(np.concatenate([column.codes for column in columns]), columns[0].terms)


@record
class SolutionBatch:
    """n rows, each a solution of one GPM on one event, or a bare event.

    Attributes:
        stream: int32 [n], index into the plan's streams.
        time: int64 [n], ms since the epoch.
        k: int32 [n], second component of the instant.
        gpm: int32 [n], index into the plan's GPMs, or BARE.
        event: the names [n] of the events.
        values: by variable, the terms [n] that the rows bind it to.
        numbers: by variable, the same terms as float64, for variables that conditions between
            steps compare.

    `values` and `numbers` have the variables of `PatternPlan.columns`. Rows come in no particular
    order; a stage keeps the order of its input.
    """

    stream: Int32s
    time: Int64s
    k: Int32s
    gpm: Int32s
    event: EventNames
    values: dict[str, TermColumn] = field(default_factory=dict)
    numbers: dict[str, NumberColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns. Terms that several columns share count once."""
        columns: list[Any] = [self.stream, self.time, self.k, self.gpm, self.event]
        columns += [a for c in self.numbers.values() for a in (c.value, c.kind)]
        columns += {id(a): a for c in self.values.values() for a in c.arrays}.values()
        return sum(int(column.nbytes) for column in columns)

    def texts(self, variable: str, rows: RowSelection = slice(None)) -> list[str | None]:
        """The N-Triples texts of a variable in some rows, None where it is unbound."""
        return self.values[variable].texts(rows)

    @classmethod
    def empty(cls, columns: SolutionColumns) -> SolutionBatch:
        """A batch of no rows."""
        return _empty(columns)

    @classmethod
    def concat(cls, batches: Sequence[SolutionBatch], columns: SolutionColumns) -> SolutionBatch:
        """One batch of all rows, in order."""
        if not batches:
            return cls.empty(columns)
        if len(batches) == 1:
            return batches[0]
        values = concat_columns([[b.values[v] for v in columns.variables] for b in batches])
        return cls(
            np.concatenate([b.stream for b in batches]),
            np.concatenate([b.time for b in batches]),
            np.concatenate([b.k for b in batches]),
            np.concatenate([b.gpm for b in batches]),
            EventNames.concat([b.event for b in batches]),
            dict(zip(columns.variables, values, strict=True)),
            {v: NumberColumn.concat([b.numbers[v] for b in batches]) for v in columns.numbers},
        )

    def take(self, rows: RowSelection) -> SolutionBatch:
        """The rows at the given positions, in that order."""
        return SolutionBatch(
            self.stream[rows],
            self.time[rows],
            self.k[rows],
            self.gpm[rows],
            self.event.take(rows),
            {v: c.take(rows) for v, c in self.values.items()},
            {v: c.take(rows) for v, c in self.numbers.items()},
        )

    def compact(self) -> SolutionBatch:
        """The same rows, without most of the unused terms."""
        columns = compact_columns([*self.values.values()])
        return replace(self, values=dict(zip(self.values, columns, strict=True)))

    def rows(self) -> Iterator[int]:
        """Row numbers in order of instant, then stream, then arrival in the batch."""
        return iter(np.lexsort((self.stream, self.k, self.time)).tolist())

    def __getstate__(self) -> list[Any]:
        head = [self.stream, self.time, self.k, self.gpm]
        return [*head, self.event.strings(), self.values, self.numbers]

    def __setstate__(self, state: list[Any]) -> None:
        names = ("stream", "time", "k", "gpm", "event", "values", "numbers")
        for name, value in zip(names, state, strict=True):
            converted = EventNames(value) if name == "event" else value
            object.__setattr__(self, name, converted)


@lru_cache(64)
def _empty(columns: SolutionColumns) -> SolutionBatch:
    no_number = NumberColumn(np.empty(0), np.empty(0, np.int8))
    return SolutionBatch(
        np.empty(0, np.int32),
        np.empty(0, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        NO_NAMES,
        dict.fromkeys(columns.variables, TermColumn.unbound(0)),
        dict.fromkeys(columns.numbers, no_number),
    )


@record
class SolutionCodec:
    """Writes and reads solutions with some columns.

    Variable ?x has the Arrow column `v_x` for its terms, a dictionary of texts; `n_x` and `k_x` are
    its value and kind as a number. A triple term is a text like any other. Names of events are
    written in the form `names` if all have it; the field says it.
    """

    columns: SolutionColumns
    names: NameForm = WHOLE

    @property
    def schema(self) -> pa.Schema:
        """The Arrow columns."""
        terms = pa.dictionary(pa.int32(), pa.large_string())
        return pa.schema(
            [
                ("stream", pa.int32()),
                ("time", pa.int64()),
                ("k", pa.int32()),
                ("gpm", pa.int32()),
                self.names.field,
                *((f"v_{v}", terms) for v in self.columns.variables),
                *((f"n_{v}", pa.float64()) for v in self.columns.numbers),
                *((f"k_{v}", pa.int8()) for v in self.columns.numbers),
            ]
        )

    def batch(self, rows: SolutionBatch) -> pa.RecordBatch:
        """The rows as Arrow columns of `schema`."""
        arrays: list[Any] = [pa.array(c) for c in (rows.stream, rows.time, rows.k, rows.gpm)]
        arrays.append(rows.event.to_arrow(self.names))
        arrays.extend(rows.values[v].compact().to_arrow() for v in self.columns.variables)
        arrays.extend(pa.array(rows.numbers[v].value) for v in self.columns.numbers)
        arrays.extend(pa.array(rows.numbers[v].kind) for v in self.columns.numbers)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def rows(self, batch: pa.RecordBatch) -> SolutionBatch:
        """The inverse of `batch`, whatever the form of the names; further columns are ignored."""

        def ints(name: str) -> Any:
            return batch.column(name).to_numpy(zero_copy_only=False)

        return SolutionBatch(
            ints("stream"),
            ints("time"),
            ints("k"),
            ints("gpm"),
            EventNames.from_arrow(batch.column("event"), batch.schema.field("event")),
            {v: TermColumn.from_arrow(batch.column(f"v_{v}")) for v in self.columns.variables},
            {v: NumberColumn(ints(f"n_{v}"), ints(f"k_{v}")) for v in self.columns.numbers},
        )

    def write(self, rows: SolutionBatch, file: Any) -> None:
        """Append the rows to an Arrow file, as a stream of one batch."""
        batch = self.batch(rows)
        with pa.ipc.new_stream(file, batch.schema) as writer:
            writer.write_batch(batch)

    def encode(self, rows: SolutionBatch) -> bytes:
        """The rows as bytes."""
        sink = pa.BufferOutputStream()
        self.write(rows, sink)
        return bytes(sink.getvalue())

    def decode(self, data: Any, *, check: bool = False) -> SolutionBatch:
        """The rows of bytes, or of a buffer, which stays in use.

        `check` verifies every offset and index; pa.ArrowInvalid if one is wrong.
        """
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
            if check:
                batch.validate(full=True)
            return self.rows(batch)
