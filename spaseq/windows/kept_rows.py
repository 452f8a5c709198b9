"""Rows of which groups are made, in the order of events; the ones that have left are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Array, Bools, Int64s

COLUMNS: Mapping[str, Any] = {
    "time": np.int64,
    "opens": np.bool_,  # the first row of its event
    "event": np.int64,  # the number of its event
    "group": np.int32,  # -1 for none
    "following": np.int64,  # the number of the next row of the group
}
"""The columns [n] of all rows."""

OPERAND_COLUMNS: Mapping[str, Any] = {
    "kind": np.int8,
    "whole": np.int64,  # m and shift of a number (`kernels.group_runs`)
    "shift": np.int16,
    "value": np.float64,  # of a double without text
    "text": np.object_,  # of other terms
}
"""The columns [operands, n] of the aggregates' operands."""


class KeptRows:
    """Rows with absolute numbers, in arrays with room behind them.

    >>> rows = KeptRows(0)
    >>> rows.append(2, {"time": np.array([5, 7])})
    >>> rows.drop(1)
    >>> rows.time.tolist(), rows.first
    ([7], 1)
    """

    def __init__(self, operands: int) -> None:
        self.first = 0  # the number of the first row
        self._begin = self._end = 0  # its place, and the place behind the last row
        self._operands = operands
        self._columns: dict[str, Array] = {v: np.empty(0, t) for v, t in COLUMNS.items()}
        for name, kind in OPERAND_COLUMNS.items():
            self._columns[name] = np.empty((operands, 0), kind)

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
        """A column, [n] or [operands, n]; a view that the next `append` may leave behind."""
        return self._columns[name][..., self._begin : self._end]

    @property
    def time(self) -> Int64s:
        """[n] the times (ms)."""
        return self.column("time")

    @property
    def opens(self) -> Bools:
        """[n] whether a row is the first one of its event."""
        return self.column("opens")

    def append(self, size: int, columns: Mapping[str, Array]) -> None:
        """Take rows; columns that are not given are undefined."""
        self._reserve(size)
        for name, values in columns.items():
            self._columns[name][..., self._end : self._end + size] = values
        self._end += size

    def drop(self, number: int) -> None:
        """Let go of the rows before a number."""
        gone = min(number - self.first, len(self))
        if gone <= 0:
            return
        self._columns["text"][:, self._begin : self._begin + gone] = None
        self._begin += gone
        self.first += gone

    def _reserve(self, size: int) -> None:
        room = self._columns["time"].shape[0]
        if self._end + size <= room:
            return
        kept = len(self)
        if 2 * (kept + size) > room:
            room = 2 * (kept + size)
        for name, column in self._columns.items():
            grown = np.empty((*column.shape[:-1], room), column.dtype)
            grown[..., :kept] = column[..., self._begin : self._end]
            self._columns[name] = grown
        self._begin, self._end = 0, kept

    # --- state ------------------------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        """The rows, for `restore`; links between rows are made anew."""
        names = [name for name in self._columns if name != "following"]
        columns = {name: self.column(name).copy() for name in names}
        return [self.first, {**columns, "text": columns["text"].tolist()}]

    def restore(self, state: list[Any]) -> None:
        """Take the rows of a snapshot."""
        self.first, columns = state
        self._begin = self._end = 0
        given = {**columns, "text": _objects(columns["text"])}
        size = len(columns["time"])
        self.append(size, given if self._operands else {n: given[n] for n in COLUMNS if n in given})


def _objects(texts: list[list[str | None]]) -> Array:
    """Texts as an array [operands, n]."""
    found = np.empty((len(texts), len(texts[0]) if texts else 0), np.object_)
    for own, given in zip(found, texts, strict=True):
        own[:] = given
    return found
