"""The last time of each required GPM in each partition: whether a match is possible now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.automaton.batch.kernels.latest_rows import NEVER, move_latest, note_latest
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.term_columns import Ints

_FEWEST_SLOTS = 16


class LatestRows:
    """Learns of rows in order of time. It forgets partitions that later rows are too far from."""

    def __init__(self, required: Sequence[int], gpms: int, length: int) -> None:
        """`required` are some of `gpms` GPMs; the `length` of the window is in ms."""
        self._steps = np.full(gpms + 1, -1, np.int32)  # by GPM, BARE last
        self._steps[[*required]] = np.arange(len(required))
        self._length, self._required = length, len(required)
        self._used = np.zeros(1, np.int64)  # the number of partitions
        self._keys, self._latest = self._empty(_FEWEST_SLOTS)

    def _empty(self, slots: int) -> tuple[Int64s, Int64s]:
        return np.zeros(slots, np.int64), np.full((slots, self._required), NEVER)

    def possible(self, time: Int64s, gpm: Int32s, key: Int64s) -> int:
        """The time (ms) of the last row that may complete what a match needs, NEVER if none.

        Args:
            time: [n > 0] in ms, in any order. No later call has a row before the first one.
            gpm: [n] the GPM of each row, BARE for none.
            key: [n] a number for the partition of each row.
        """
        if (time[1:] < time[:-1]).any():
            order = np.argsort(time, kind="stable")
            time, gpm, key = time[order], gpm[order], key[order]
        if 2 * (self._used[0] + len(time)) > len(self._keys):
            self._make_room(len(time), int(time[0]) - self._length)
        time, gpm, steps = _writable(time), _writable(gpm), self._steps
        table = self._keys, self._latest, self._used
        return int(note_latest(time, gpm, key, steps, self._length, *table))

    def _make_room(self, rows: int, before: int) -> None:
        """Forget partitions whose last time lies before a time (ms), and let others come."""
        kept = int(np.count_nonzero(self._latest.max(axis=1) >= before))
        slots = 1 << (4 * (kept + rows) - 1).bit_length()
        keys, latest = self._empty(max(_FEWEST_SLOTS, slots))
        self._used[0] = move_latest(self._keys, self._latest, keys, latest, before)
        self._keys, self._latest = keys, latest


def _writable(column: Ints) -> Ints:
    """A column as the kernel is compiled for; those from Arrow cannot be written."""
    return column if column.flags.writeable else column.copy()
