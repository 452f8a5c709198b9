"""Repeated triples: a graph is a set, so a triple that an event states twice counts once."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s

_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


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
