"""What a check of a match needs to know of its rows, by row number."""

from __future__ import annotations

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.compiled.arrays import Bools, Bytes, Float64s, Indices, Int64s
from spaseq.compiled.growth import grown

_ROW, _GPM, _SLOT, _TIME, _POINTERS = range(5)
"""Columns: the row's number, GPM, slot and time (ms), then a pointer for each check."""


class RowNotes:
    """Integers and numbers of the rows that are kept, and of a batch, both by ascending row."""

    def __init__(self, pointers: int, numbers: int) -> None:
        self._columns = np.empty((0, _POINTERS + pointers), np.int64)
        self._numbers = np.empty((0, numbers))
        self._size = 0  # rows that are kept; the arrays may have room for more
        self._first = 0  # row of the batch
        self._batch, self._batch_numbers = self._columns, self._numbers

    def begin(self, rows: OrderedRows, pointers: list[Int64s], numbers: Float64s) -> None:
        """Begin a batch of n rows; `pointers` [checks][n], `numbers` [numbers, n]."""
        self._first = rows.number
        number = np.arange(rows.number, rows.number + len(rows))
        self._batch = np.stack([number, rows.gpm, rows.slot, rows.time, *pointers], axis=1)
        self._batch_numbers = numbers.T

    def end(self, taken: Bytes) -> None:
        """End the batch, and keep the rows for which `taken` [n] is 1."""
        kept = np.flatnonzero(taken)
        size = self._size + len(kept)
        if size > len(self._columns):
            self._columns = grown(self._columns, 2 * size)
            self._numbers = grown(self._numbers, 2 * size)
        self._columns[self._size : size] = self._batch[kept]
        self._numbers[self._size : size] = self._batch_numbers[kept]
        self._size = size
        self._first += len(self._batch)
        self._batch, self._batch_numbers = self._batch[:0], self._batch_numbers[:0]

    def keep(self, rows: Int64s) -> None:
        """Keep only some rows; `rows` ascend."""
        kept = np.flatnonzero(np.isin(self._columns[: self._size, _ROW], rows))
        self._columns, self._numbers = self._columns[kept], self._numbers[kept]
        self._size = len(kept)

    # --- reading ----------------------------------------------------------------------------------

    def gpms(self, rows: Int64s) -> Int64s:
        """[n] the GPMs of n rows."""
        return self._column(_GPM, rows)

    def slots(self, rows: Int64s) -> Int64s:
        """[n] the slots of n rows."""
        return self._column(_SLOT, rows)

    def times(self, rows: Int64s) -> Int64s:
        """[n] the times (ms) of n rows."""
        return self._column(_TIME, rows)

    def pointers(self, rows: Int64s, check: int) -> Int64s:
        """[n] where a check begins at each of n rows."""
        return self._column(_POINTERS + check, rows)

    def values(self, rows: Int64s) -> Float64s:
        """[n, numbers] the numbers of n rows."""
        values = np.empty((len(rows), self._numbers.shape[1]))
        is_new, old, new = self._places(rows)
        values[~is_new], values[is_new] = self._numbers[old], self._batch_numbers[new]
        return values

    def kept(self, number: int) -> Float64s:
        """One number of all rows that are kept."""
        return self._numbers[: self._size, number]

    def _column(self, column: int, rows: Int64s) -> Int64s:
        values = np.empty(len(rows), np.int64)
        is_new, old, new = self._places(rows)
        values[~is_new], values[is_new] = self._columns[old, column], self._batch[new, column]
        return values

    def _places(self, rows: Int64s) -> tuple[Bools, Indices, Indices]:
        """Which rows belong to the batch, and the places of the others and of these."""
        is_new: Bools = rows >= self._first
        kept = self._columns[: self._size, _ROW]
        return is_new, np.searchsorted(kept, rows[~is_new]), rows[is_new] - self._first

    def snapshot(self) -> object:
        """The state for a snapshot."""
        return self._columns[: self._size], self._numbers[: self._size], self._first

    def restore(self, state: object) -> None:
        """Continue from what `snapshot` returned."""
        assert isinstance(state, tuple)
        self._columns, self._numbers, self._first = state
        self._size = len(self._columns)
        self._batch, self._batch_numbers = self._columns[:0], self._numbers[:0]
