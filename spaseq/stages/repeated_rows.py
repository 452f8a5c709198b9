"""Rows of a family in less memory: what consecutive rows have in common is kept once.

An event is often a solution for many members, one after the other. Their rows differ in the number
of the member and in what is computed with its constants, but in no other column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.lang.shapes import QUERY
from spaseq.rdf.columns.integer_terms import IntegerTerms
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import NO_TEXTS, NumberColumn, RowSelection, TermColumn
from spaseq.records import record

FEWEST_REPEATS = 2
"""With fewer rows for each event and GPM on average, it is not worth it."""


_SOME = 1024
"""The rows of a column that are looked at before the others."""


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
            NO_TEXTS,
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
            values = made.values[variable]
            assert isinstance(values, IntegerTerms)
            made.numbers[variable] = values.numbers()
        return made


HeldRows: TypeAlias = "SolutionBatch | RepeatedRows"
"""A batch of rows, perhaps in less memory."""


def in_less_memory(rows: SolutionBatch) -> HeldRows:
    """The same rows, of a family as groups if they have much in common."""
    if QUERY not in rows.values or len(rows) < FEWEST_REPEATS:
        return rows
    begins = _begins(rows)
    starts = np.flatnonzero(begins)
    if len(rows) < FEWEST_REPEATS * len(starts):
        return rows
    goes_on = ~begins[1:]
    values = {v: c for v, c in rows.values.items() if _differ(_codes(c), goes_on)}
    numbers = {v: c for v, c in rows.numbers.items() if v in values or _numbers_differ(c, goes_on)}
    of_values = tuple(v for v in numbers if isinstance(values.get(v), IntegerTerms))
    common = replace(
        rows,
        values={v: c for v, c in rows.values.items() if v not in values},
        numbers={v: c for v, c in rows.numbers.items() if v not in numbers},
    )
    numbers = {v: c for v, c in numbers.items() if v not in of_values}
    values |= {v: IntegerTerms(_codes(values[v])) for v in of_values}  # without their texts
    taken = common.take(starts)
    return RepeatedRows(taken, starts.astype(np.int32), len(rows), values, numbers, of_values)


def keys(rows: HeldRows, variables: tuple[str, ...]) -> SolutionBatch:
    """The rows with the columns of some variables only, and no names of events."""
    if isinstance(rows, RepeatedRows):
        return rows.keys(variables)
    own = {v: rows.values[v] for v in variables}
    return replace(rows, event=NO_TEXTS, values=own, numbers={})


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
    for some in (slice(_SOME), slice(_SOME - 1, None)):  # most columns that differ do so soon
        own = column[some]
        if ((own[1:] != own[:-1]) & goes_on[some][: len(own) - 1]).any():
            return True
    return False


def _codes(column: TermColumn) -> Any:
    """What is equal in two rows if their terms are."""
    return column.values if isinstance(column, IntegerTerms) else column.codes


def _numbers_differ(column: NumberColumn, goes_on: Bools) -> bool:
    return _differ(column.value.view(np.int64), goes_on) or _differ(column.kind, goes_on)
