"""Rows that wait until a match is possible.

A match has a row of each required GPM in one partition and one window. Most batches of a family, or
of a query for rare events, have no such rows, so its evaluator would only take rows in and drop
them. These rows wait here instead, and leave with their window. When the last row that a match
needs comes, the evaluator gets all waiting rows, and all rows until that match's window has closed.

`hopeless_rows.py` explains why other rows change no match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq import thresholds
from spaseq.automaton.batch.kernels.near_rows import NEVER, move_latest, note_latest
from spaseq.automaton.program.window import Counted
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import Ints
from spaseq.stages.hopeless_rows import can_be_told, hashes_of, needs_every_row, place_hashes

_FEWEST_SLOTS = 16


class LatestRows:
    """Records rows in order of time. It drops partitions that are too far from later rows."""

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
        """The time (ms) of the last row that may complete the required GPMs, NEVER if none.

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
        """Drop partitions whose last time is before a time (ms), to make room for others."""
        kept = int(np.count_nonzero(self._latest.max(axis=1) >= before))
        slots = 1 << (4 * (kept + rows) - 1).bit_length()
        keys, latest = self._empty(max(_FEWEST_SLOTS, slots))
        self._used[0] = move_latest(self._keys, self._latest, keys, latest, before)
        self._keys, self._latest = keys, latest


def _writable(column: Ints) -> Ints:
    """A column in the form for which the kernel is compiled; Arrow's are read-only."""
    return column if column.flags.writeable else column.copy()


_UNKNOWN = 2**62


class WaitingRows:
    """Decides when the evaluator gets rows, which come in order of time."""

    def __init__(self, plan: QueryPlan, length: int, required: Sequence[int]) -> None:
        """`length` of the window is in ms; `required` has at least two GPMs."""
        self._columns, self._partition = plan.patterns.columns, plan.sequence.partition
        self._is_family = QUERY in self._partition
        self._most = (
            thresholds.current.waiting_family
            if self._is_family
            else thresholds.current.waiting_query
        )
        self._length = length
        self._latest = LatestRows(required, len(plan.patterns.gpms), length)
        self._rows: list[tuple[int, SolutionBatch]] = []  # with the last time of each batch
        self._count = 0
        self._active_until = NEVER  # rows up to this time go to the evaluator
        self._done = NEVER  # the evaluator has all rows up to this time
        self._watermark = NEVER  # of the last call

    @classmethod
    def of(cls, plan: QueryPlan) -> WaitingRows | None:
        """The object for a query or family; None if its rows may be needed at once."""
        required, window = plan.required_gpms, plan.sequence.window
        if isinstance(window, Counted) or len(required) < 2:
            return None
        if needs_every_row(plan) or not can_be_told(plan, window):
            return None
        return cls(plan, window.horizon, required)

    def __len__(self) -> int:
        return self._count

    def restored(self) -> None:
        """Record that the evaluator has unknown rows."""
        self._active_until = _UNKNOWN

    def take(
        self, rows: SolutionBatch, watermark: int, at_once: bool = False
    ) -> SolutionBatch | None:
        """The rows for the evaluator now; None if it need not run. With `at_once`, all rows.

        Args:
            rows: all rows between the last watermark and this one, perhaps with later ones.
            watermark: no row at or before this time (ms) follows.
        """
        self._watermark = now = watermark
        if len(rows):
            last = int(rows.time.max())
            now = max(now, last)
            self._rows.append((last, rows))
            self._count += len(rows)
        self._look(rows, now)
        if (
            not at_once
            and self._count <= thresholds.current.waiting_rows
            and self._active_until <= self._done
        ):
            self._forget(watermark - self._length)
            return None
        self._done = now
        return self._taken()

    def _taken(self) -> SolutionBatch:
        """Remove and return the waiting rows."""
        rows = SolutionBatch.concat(self.waiting(), self._columns)
        self._rows, self._count = [], 0
        return rows

    def passes(self, watermark: int) -> bool:
        """Take a watermark without rows; return whether the evaluator need not know it.

        The evaluator must know it while the window of a possible match is open.
        """
        if self._done < self._active_until:
            return False
        self._watermark = watermark
        self._forget(watermark - self._length)
        return True

    def waiting(self) -> list[SolutionBatch]:
        """The rows that wait, in order of time."""
        return [rows for _, rows in self._rows]

    def most_of_member(self, rows: SolutionBatch) -> int:
        """Maximum number of rows of one query among the waiting rows and some others."""
        if not self._is_family:
            return self._count + len(rows)
        columns = [some.values[QUERY] for some in (*self.waiting(), rows)]
        members = np.concatenate([hashes_of(column.terms)[column.codes] for column in columns])
        return int(np.unique(members, return_counts=True)[1].max(initial=0))

    @property
    def next_due(self) -> int:
        """The time (ms) before which a watermark changes nothing here, unless rows come."""
        active = self._active_until if self._done < self._active_until else _UNKNOWN
        return min([active, *(last + self._length + 1 for last, _ in self._rows)])

    @property
    def is_ahead(self) -> bool:
        """Whether the evaluator does not know the last watermark, or all rows."""
        return self._count > 0 or self._done < self._watermark

    def release(self) -> tuple[SolutionBatch, int]:
        """(the waiting rows, the watermark), which go to the evaluator now."""
        self._done = max([self._done, self._watermark, *(last for last, _ in self._rows)])
        return self._taken(), self._watermark

    def _look(self, rows: SolutionBatch, now: int) -> None:
        """Find out how long matches are possible."""
        if self._active_until == _UNKNOWN or len(rows) > self._most:
            self._active_until = now + self._length + 1
        elif len(rows):
            keys = place_hashes(rows, self._partition)
            possible = self._latest.possible(rows.time, rows.gpm, keys)
            if possible != NEVER:
                # A window closes when its length has passed.
                self._active_until = max(self._active_until, possible + self._length + 1)

    def _forget(self, before: int) -> None:
        """Drop batches whose last time (ms) is before a time, and join small ones."""
        kept = self._rows
        if kept and kept[0][0] < before:
            kept = [batch for batch in kept if batch[0] >= before]
        if len(kept) > thresholds.current.waiting_batches:
            rows = SolutionBatch.concat([batch for _, batch in kept], self._columns)
            rows = rows.take(np.flatnonzero(rows.time >= before))
            kept = [(int(rows.time.max()), rows)]
        if kept is not self._rows:
            self._rows, self._count = kept, sum(len(rows) for _, rows in kept)
