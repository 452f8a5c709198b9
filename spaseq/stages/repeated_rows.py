"""Rows of a family in less memory: what consecutive rows have in common is kept once.

An event is often a solution for many members, one after the other. Their rows differ in the number
of the member and in what is computed with its constants, but in no other column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.lang.shapes import QUERY
from spaseq.rdf.columns.event_batch import NO_NAMES
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import NumberColumn, RowSelection, TermColumn
from spaseq.records import record


@record
class RepeatedRows:
    """n rows in m groups, which follow each other.

    `common` has a row [m] for each group, with the columns that are equal in all rows of a group.
    `starts` int32 [m] is the number of its first row. `values` and `numbers` are the other columns
    [n]. Numbers of a variable that has whole numbers as values are made of these.
    """

    common: SolutionBatch
    starts: Int32s
    size: int
    values: Mapping[str, TermColumn]
    numbers: Mapping[str, NumberColumn]
    of_values: tuple[str, ...]

    def __len__(self) -> int:
        return self.size

    @property
    def time(self) -> Int64s:
        """The time [n] of each row, ms since the epoch."""
        return np.repeat(self.common.time, self._counts())

    @property
    def gpm(self) -> Int32s:
        """The GPM [n] of each row."""
        return np.repeat(self.common.gpm, self._counts())

    @property
    def own_bytes(self) -> int:
        """Bytes of all but `common`; batches share the texts of members."""
        numbers = (a for c in self.numbers.values() for a in (c.value, c.kind))
        arrays = [self.starts, *numbers, *(c.arrays[0] for c in self.values.values())]
        return sum(int(array.nbytes) for array in arrays)

    def keys(self, variables: tuple[str, ...]) -> SolutionBatch:
        """The rows with the columns of some variables only, and no names of events."""
        common, counts = self.common, self._counts()
        return SolutionBatch(
            np.repeat(common.stream, counts),
            self.time,
            np.repeat(common.k, counts),
            self.gpm,
            NO_NAMES,
            {v: self.terms(v) for v in variables},
        )

    def terms(self, variable: str) -> TermColumn:
        """The terms [n] of a variable."""
        own = self.values.get(variable)
        return self.common.values[variable].take(self._groups()) if own is None else own

    def whole(self) -> SolutionBatch:
        """The rows as a batch."""
        return self._made(self._groups(), slice(None))

    def take(self, rows: Indices) -> SolutionBatch:
        """The rows at the given positions, in that order."""
        return self._made(np.searchsorted(self.starts, rows, side="right") - 1, rows)

    def _counts(self) -> Int32s:
        """The number [m] of rows of each group."""
        return np.diff(self.starts, append=np.int32(self.size))

    def _groups(self) -> Indices:
        """The group [n] of each row."""
        return np.repeat(np.arange(len(self.starts)), self._counts())

    def _made(self, groups: Indices, rows: RowSelection) -> SolutionBatch:
        made = self.common.take(groups)
        made.values.update((v, column.take(rows)) for v, column in self.values.items())
        made.numbers.update((v, column.take(rows)) for v, column in self.numbers.items())
        for variable in self.of_values:
            values = made.values[variable].values
            assert values is not None
            made.numbers[variable] = NumberColumn.of_integers(values)
        return made


HeldRows: TypeAlias = "SolutionBatch | RepeatedRows"
"""A batch of rows, perhaps in less memory."""


def in_less_memory(rows: SolutionBatch) -> HeldRows:
    """The same rows, of a family as groups if they have much in common."""
    if QUERY not in rows.values or not len(rows):
        return rows
    begins = _begins(rows)
    starts = np.flatnonzero(begins)
    if len(rows) // len(starts) < thresholds.current.repeated_rows:
        return rows
    goes_on = ~begins[1:]
    values = {v: c for v, c in rows.values.items() if _differ(_codes(c), goes_on)}
    numbers = {v: c for v, c in rows.numbers.items() if v in values or _numbers_differ(c, goes_on)}
    of_values = tuple(v for v in numbers if v in values and values[v].values is not None)
    common = replace(
        rows,
        values={v: c for v, c in rows.values.items() if v not in values},
        numbers={v: c for v, c in rows.numbers.items() if v not in numbers},
    )
    numbers = {v: c for v, c in numbers.items() if v not in of_values}
    values |= {
        v: TermColumn.of_integers(_codes(values[v])) for v in of_values
    }  # without their texts
    taken = common.take(starts)
    return RepeatedRows(taken, starts.astype(np.int32), len(rows), values, numbers, of_values)


def keys(rows: HeldRows, variables: tuple[str, ...]) -> SolutionBatch:
    """The rows with the columns of some variables only, and no names of events."""
    if isinstance(rows, RepeatedRows):
        return rows.keys(variables)
    own = {v: rows.values[v] for v in variables}
    return replace(rows, event=NO_NAMES, values=own, numbers={})


def terms(rows: HeldRows, variable: str) -> TermColumn:
    """The terms that the rows bind a variable to."""
    return rows.terms(variable) if isinstance(rows, RepeatedRows) else rows.values[variable]


def is_ordered(rows: HeldRows) -> bool:
    """Whether the rows are in order of time."""
    time = rows.common.time if isinstance(rows, RepeatedRows) else rows.time
    return bool((time[1:] >= time[:-1]).all())


def whole(rows: HeldRows) -> SolutionBatch:
    """The rows as a batch."""
    return rows.whole() if isinstance(rows, RepeatedRows) else rows


def _begins(rows: SolutionBatch) -> Bools:
    """Which rows [n] differ from the row before in event or GPM."""
    begins = np.ones(len(rows), np.bool_)
    inner = begins[1:]
    np.not_equal(rows.time[1:], rows.time[:-1], out=inner)
    for column in (rows.k, rows.gpm, rows.stream):
        inner |= column[1:] != column[:-1]
    return begins


def _differ(column: Any, goes_on: Bools) -> bool:
    """Whether some row that goes on with the one before differs from it in a column [n]."""
    return bool(((column[1:] != column[:-1]) & goes_on).any())


def _codes(column: TermColumn) -> Any:
    """What is equal in two rows if their terms are."""
    return column.codes if column.values is None else column.values


def _numbers_differ(column: NumberColumn, goes_on: Bools) -> bool:
    return _differ(column.value.view(np.int64), goes_on) or _differ(column.kind, goes_on)
