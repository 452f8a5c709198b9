"""Rows of a content in the order of their events, which are counted, and the rows of which groups
are made; the ones that have left are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from spaseq.compiled.arrays import Array, Bools, Int64s
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import RowSelection

Form: TypeAlias = "Mapping[str, tuple[int | None, Any]]"
"""The columns of rows by name: how many values each row has, and their dtype; None: one value."""

EVENT_COLUMNS: Form = {
    "time": (None, np.int64),
    "partition": (None, np.int32),  # its number
    "next": (None, np.int64),  # the number of the partition's next row
    "event": (None, np.int64),  # the number of its event in the partition
}
"""The columns [n] of all rows."""

LINKS = "following"
"""The column of links between rows, which their owner makes."""

MADE_ANEW = frozenset([LINKS, "after", "before", "again"])
"""The columns that are no part of the state: rows that enter again make them."""


class EventOrder:
    """Puts rows into the order of the events of a window."""

    def __init__(self, plan: QueryPlan, window: int) -> None:
        self._streams = np.array(plan.inputs.windows[window].streams, np.int32)
        iris = plan.inputs.streams
        self._ranks = np.array([sorted(iris).index(iri) for iri in iris], np.int32)

    def ordered(self, rows: SolutionBatch) -> SolutionBatch:
        """The rows of the window's streams, by time, k and the stream's IRI."""
        places = self.places(rows)
        return rows if isinstance(places, slice) else rows.take(places)

    def places(self, rows: SolutionBatch) -> RowSelection:
        """The places of the rows of the window's streams, in that order."""
        of_streams: RowSelection = slice(None)
        if len(self._streams) < len(self._ranks):
            of_window = np.isin(rows.stream, self._streams)
            if not of_window.all():
                of_streams = np.flatnonzero(of_window)
        time, k, stream = rows.time[of_streams], rows.k[of_streams], rows.stream[of_streams]
        tied = time[1:] == time[:-1]
        ordered = (time[1:] >= time[:-1]).all() and not ((k[1:] < k[:-1]) & tied).any()
        if ordered and not differs(stream).any():
            return of_streams
        order = np.lexsort((self._ranks[stream], k, time))
        return order if isinstance(of_streams, slice) else of_streams[order]


def differs(column: Array) -> Bools:
    """[n - 1] whether each value differs from the one before."""
    changed: Bools = column[1:] != column[:-1]
    return changed


class KeptRows:
    """Rows with absolute numbers, in arrays [n] or [values, n] with room behind them.

    >>> rows = KeptRows(EVENT_COLUMNS)
    >>> rows.append(2, {"time": np.array([5, 7])})
    >>> rows.drop(1)
    >>> rows.time.tolist(), rows.first
    ([7], 1)
    """

    def __init__(self, form: Form) -> None:
        self.first = 0  # the number of the first row
        self._begin = self._end = 0  # its place, and the place behind the last row
        self._columns: dict[str, Array] = {
            name: np.empty(0 if values is None else (values, 0), kind)
            for name, (values, kind) in form.items()
        }
        self._objects = {name for name, array in self._columns.items() if array.dtype == np.object_}
        self._held: set[str] = set()  # columns of objects that have had one

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The arrays of all columns, with room before and behind the rows."""
        return self._columns

    @property
    def base(self) -> int:
        """The number of the row that would be at place 0 of the arrays."""
        return self.first - self._begin

    def column(self, name: str) -> Array:
        """A column, [n] or [values, n]; a view until the next `append`."""
        return self._columns[name][..., self._begin : self._end]

    @property
    def time(self) -> Int64s:
        """[n] the times (ms)."""
        return self.column("time")

    def append(self, size: int, columns: Mapping[str, Array]) -> None:
        """Take rows. A column that is not given is undefined; one of objects has None."""
        self._reserve(size)
        self._held |= self._objects & columns.keys()
        for name, values in columns.items():
            self._columns[name][..., self._end : self._end + size] = values
        self._end += size

    def drop(self, number: int) -> None:
        """Drop the rows before a number."""
        gone = min(number - self.first, len(self))
        if gone <= 0:
            return
        for name in self._held:
            self._columns[name][..., self._begin : self._begin + gone] = None
        self._begin += gone
        self.first += gone

    def keep(self, stays: Bools) -> Int64s:
        """Drop the rows that do not stay; return the new numbers [n] of all rows, -1 for none."""
        places = self._begin + np.flatnonzero(stays)
        end = self._begin + len(places)
        for name, column in self._columns.items():
            column[..., self._begin : end] = column[..., places]
            if name in self._held:
                column[..., end : self._end] = None
        self._end = end
        return np.where(stays, self.first + np.cumsum(stays) - 1, -1)

    def _reserve(self, size: int) -> None:
        room = self._columns["time"].shape[0]
        if self._end + size <= room:
            return
        kept = len(self)
        stays = kept <= self._begin and room // 16 <= kept + size <= room  # a burst's memory goes
        if not stays:
            room = 2 * (kept + size)
        for name, column in self._columns.items():
            moved = column if stays else np.empty((*column.shape[:-1], room), column.dtype)
            moved[..., :kept] = column[..., self._begin : self._end]
            if stays and name in self._held:
                moved[..., kept : self._end] = None
            self._columns[name] = moved
        self._begin, self._end = 0, kept

    @property
    def _saved(self) -> Mapping[str, Any]:
        """The columns of a state; links between rows are recomputed."""
        saved = self._columns.keys() - MADE_ANEW
        columns = {name: self.column(name).copy() for name in self._columns if name in saved}
        return columns | {name: columns[name].tolist() for name in self._objects}

    @_saved.setter
    def _saved(self, columns: Mapping[str, Any]) -> None:
        size = len(columns["time"])
        objects = {name: _objects(columns[name], size) for name in self._objects}
        self.append(size, {**columns, **objects})


def _objects(texts: list[list[str | None]], size: int) -> Array:
    """Texts as an array [values, n]."""
    objects = np.empty((len(texts), size), np.object_)
    for row, given in zip(objects, texts, strict=True):
        row[:] = given
    return objects
