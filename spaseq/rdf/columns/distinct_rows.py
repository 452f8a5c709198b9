"""The order of rows of columns of integers, the distinct ones, and triples that repeat.

`np.lexsort` and `np.unique` of a table's rows give the same. But the one sorts by each column, and
the other compares rows byte by byte, which takes four and ten times as long. A graph is a set, so a
triple that an event states twice counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Indices, Int32s, Int64s

_MOST = 2**62

_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


def row_keys(columns: Sequence[Any]) -> Int64s:
    """Numbers [n] that are equal where rows of the columns [n] are, and order as the rows do.

    >>> row_keys([np.array([1, 0, 1]), np.array([-5, 2, -5])]).argsort(kind="stable").tolist()
    [1, 0, 2]
    """
    return _keys(columns)[0]


def _keys(columns: Sequence[Any]) -> tuple[Int64s, int]:
    """(the keys [n] of rows, a number above all of them)."""
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
    order = key * rows + np.arange(rows)  # to sort numbers takes a seventh of the time
    order.sort()
    order %= rows
    return order


def first_rows(columns: Sequence[Any]) -> Indices:
    """The first row of each distinct one, in the order of the rows' values."""
    return np.unique(row_keys(columns), return_index=True)[1]


def grouped_rows(columns: Sequence[Any]) -> tuple[Indices, Indices]:
    """(the first row of each distinct one, the place [n] of each row among the distinct ones)."""
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
