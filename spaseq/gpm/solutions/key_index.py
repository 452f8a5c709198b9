"""An index of rows by the values of several columns: the sort-merge part of joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from spaseq.budget import current_budget
from spaseq.compiled.arrays import Indices, Int32s, Int64s

Column: TypeAlias = "Int32s | Int64s"

_NOWHERE = -2


class KeyIndex:
    """Rows, indexed by the values of some columns.

    Values are below 2^31, so two columns pack into one int64. With more columns, the ranks of the
    packed keys replace them before the next column is packed.
    """

    def __init__(self, columns: Sequence[Column], size: int) -> None:
        """Index `columns` [size]; without columns every row matches."""
        self._ranks: list[Int64s] = []
        keys = self._packed(columns, size, grow=True)
        self._order: Indices | None = None
        steps = keys[1:] - keys[:-1]
        if len(steps) and steps.min() < 0:
            self._order = np.argsort(keys, kind="stable")
            keys = keys[self._order]
            steps = keys[1:] - keys[:-1]
        self._keys = keys
        self._unique = not len(steps) or bool(steps.min() > 0)

    def same(self, columns: Sequence[Column], size: int) -> bool:
        """Whether each row of `columns` [size] matches only the indexed row of the same number."""
        if not self._unique or self._order is not None or len(self._keys) != size:
            return False
        return np.array_equal(self._keys, self._packed(columns, size, grow=False))

    def match(self, columns: Sequence[Column], size: int) -> tuple[Indices, Indices]:
        """(rows of `columns`, indexed rows) of all pairs with equal values, by row of `columns`."""
        left, places = self._places(self._packed(columns, size, grow=False))
        return left, places if self._order is None else self._order[places]

    def count(self, columns: Sequence[Column], size: int) -> int:
        """The number of pairs that `match` gives."""
        probe = self._packed(columns, size, grow=False)
        low, high = (np.searchsorted(self._keys, probe, side) for side in ("left", "right"))
        return int((high - low).sum())

    def _places(self, probe: Int64s) -> tuple[Indices, Indices]:
        keys = self._keys
        low = np.searchsorted(keys, probe, "left")
        if self._unique:
            if not len(keys):
                return low[:0], low[:0]
            left = np.flatnonzero(keys[np.minimum(low, len(keys) - 1)] == probe)
            return left, low[left]
        counts = np.searchsorted(keys, probe, "right") - low
        return expanded(low, counts)

    def _packed(self, columns: Sequence[Column], size: int, *, grow: bool) -> Int64s:
        if not columns:
            return np.zeros(size, np.int64)
        key = columns[0].astype(np.int64)
        for i, column in enumerate(columns[1:]):
            if i:
                key = self._rank(key, i - 1, grow)
            key = (key << 32) | (column.astype(np.int64) & 0xFFFFFFFF)
        return key

    def _rank(self, key: Int64s, level: int, grow: bool) -> Int64s:
        if grow:
            ranks, where = np.unique(key, return_inverse=True)
            self._ranks.append(ranks)
            return where.astype(np.int64)
        ranks = self._ranks[level]
        if not len(ranks):
            return np.full(len(key), _NOWHERE, np.int64)
        place = np.minimum(np.searchsorted(ranks, key), len(ranks) - 1)
        return np.where(ranks[place] == key, place, _NOWHERE)


def expanded(low: Indices, counts: Indices) -> tuple[Indices, Indices]:
    """All ranges low[i] .. low[i] + counts[i] - 1, joined: (i for each element, the elements).

    Raises:
        LimitExceeded: there are more elements than the budget allows.
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    current_budget().spend(total)
    left = np.repeat(np.arange(len(counts)), counts)
    return left, np.arange(total) + np.repeat(low - ends + counts, counts)
