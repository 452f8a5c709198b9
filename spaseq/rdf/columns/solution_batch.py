"""Solutions of graph patterns on events, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.integer_terms import joined_terms
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.spelled_texts import SpelledTexts, Spelling, concat_names, text_arrays
from spaseq.rdf.columns.term_columns import (
    NO_TEXTS,
    NumberColumn,
    RowSelection,
    TermColumn,
    TextArray,
    take_texts,
)
from spaseq.records import record

BARE = -1
"""`gpm` of a bare event: a row that holds only the instant of an event without a solution."""


@record
class SolutionBatch:
    """n rows, each a solution of one GPM on one event, or a bare event.

    Attributes:
        stream: int32 [n], index into the plan's streams.
        time: int64 [n], ms since the epoch.
        k: int32 [n], second component of the instant.
        gpm: int32 [n], index into the plan's GPMs, or BARE.
        event: Arrow large strings [n], IRI of the event's graph, null if it has none;
            `SpelledTexts` until somebody reads them if the events are lifted.
        values: by variable, the terms [n] that the rows bind it to.
        numbers: by variable, the same terms as float64, for variables that conditions between
            steps compare.

    `values` and `numbers` have the variables of `PatternPlan.columns`, which later stages need.
    Rows come in no particular order; a stage keeps the order of its input.
    """

    stream: Int32s
    time: Int64s
    k: Int32s
    gpm: Int32s
    event: TextArray
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
        """The N-Triples texts that some rows bind a variable to, None where it is unbound."""
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
        return cls(
            np.concatenate([b.stream for b in batches]),
            np.concatenate([b.time for b in batches]),
            np.concatenate([b.k for b in batches]),
            np.concatenate([b.gpm for b in batches]),
            concat_names([b.event for b in batches]),
            {v: joined_terms([b.values[v] for b in batches]) for v in columns.variables},
            {v: NumberColumn.concat([b.numbers[v] for b in batches]) for v in columns.numbers},
        )

    def take(self, rows: RowSelection) -> SolutionBatch:
        """The rows at the given positions, in that order."""
        return SolutionBatch(
            self.stream[rows],
            self.time[rows],
            self.k[rows],
            self.gpm[rows],
            take_texts(self.event, rows),
            {v: c.take(rows) for v, c in self.values.items()},
            {v: c.take(rows) for v, c in self.numbers.items()},
        )

    def compact(self) -> SolutionBatch:
        """The same rows, without most of the unused terms."""
        return replace(self, values={v: c.compact() for v, c in self.values.items()})

    @staticmethod
    def schema(columns: SolutionColumns, spelling: Spelling | None = None) -> pa.Schema:
        """The Arrow schema of a batch.

        Variable ?x has the column `v_x` for its terms, `n_x` and `k_x` for its value and kind as a
        number. Of names with a `spelling` there are the values.
        """
        names = pa.large_string() if spelling is None else spelling[1]
        terms = pa.dictionary(pa.int32(), pa.large_string())
        return pa.schema(
            [
                ("stream", pa.int32()),
                ("time", pa.int64()),
                ("k", pa.int32()),
                ("gpm", pa.int32()),
                ("event", names),
                *((f"v_{v}", terms) for v in columns.variables),
                *((f"n_{v}", pa.float64()) for v in columns.numbers),
                *((f"k_{v}", pa.int8()) for v in columns.numbers),
            ]
        )

    def to_arrow(
        self, columns: SolutionColumns, spelling: Spelling | None = None
    ) -> pa.RecordBatch:
        """The batch as Arrow columns of `schema`; its names must have the `spelling`, if any."""
        arrays: list[Any] = [pa.array(c) for c in (self.stream, self.time, self.k, self.gpm)]
        arrays += text_arrays([self.event]) if spelling is None else [self.event.values]
        arrays.extend(self.values[v].compact().to_arrow() for v in columns.variables)
        arrays.extend(pa.array(self.numbers[v].value) for v in columns.numbers)
        arrays.extend(pa.array(self.numbers[v].kind) for v in columns.numbers)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema(columns, spelling))

    @classmethod
    def from_arrow(
        cls, batch: pa.RecordBatch, columns: SolutionColumns, spelling: Spelling | None = None
    ) -> SolutionBatch:
        """The inverse of `to_arrow`; further columns are ignored."""
        names = batch.column("event")

        def ints(name: str) -> Any:
            return batch.column(name).to_numpy(zero_copy_only=False)

        return cls(
            ints("stream"),
            ints("time"),
            ints("k"),
            ints("gpm"),
            names if spelling is None else SpelledTexts(spelling[0], names, spelling[2]),
            {v: TermColumn.from_arrow(batch.column(f"v_{v}")) for v in columns.variables},
            {v: NumberColumn(ints(f"n_{v}"), ints(f"k_{v}")) for v in columns.numbers},
        )

    def rows(self) -> Iterator[int]:
        """Row numbers in order of instant, then stream, then arrival in the batch."""
        return iter(np.lexsort((self.stream, self.k, self.time)).tolist())


@lru_cache(64)
def _empty(columns: SolutionColumns) -> SolutionBatch:
    no_number = NumberColumn(np.empty(0), np.empty(0, np.int8))
    return SolutionBatch(
        np.empty(0, np.int32),
        np.empty(0, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        NO_TEXTS,
        dict.fromkeys(columns.variables, TermColumn.unbound(0)),
        dict.fromkeys(columns.numbers, no_number),
    )
