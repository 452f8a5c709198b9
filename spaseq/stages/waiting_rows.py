"""Rows that wait until a match is possible.

A match has a row of each required GPM in one partition and one window. Most batches of a family, or
of a query that looks for rare events, have no such rows, so its evaluator would only take rows in
and let them go. These rows wait here instead, and leave with their window. When the last row that a
match needs comes, the evaluator gets all rows that wait, and whatever follows until that match's
window has closed.

See `hopeless_rows.py` for why other rows change no match.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from spaseq.automaton.program.window import Counted
from spaseq.compiled.arrays import Int64s
from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TextArray
from spaseq.stages.hopeless_rows import can_be_told, is_told_later

MOST_LOOKED_AT = 1024
"""More rows of a family go to the evaluator at once: it takes each in less time than looking."""

MOST_OF_ONE = 64
"""More rows of a single query go to the evaluator at once."""

MOST_WAITING = 8192
"""With more rows, the evaluator gets them, and goes on from there."""

_NEVER, _UNKNOWN = -(2**62), 2**62
_FACTOR = 0x9E3779B97F4A7C15 - 2**64
"""An odd number that mixes the bits of hashes of several variables (2^64 / golden ratio)."""

_hashes: dict[int, Int64s] = {}
"""By the id of an array of texts, as long as it lives: the hashes of its texts."""


class WaitingRows:
    """Decides when the evaluator gets rows, which come in order of time."""

    def __init__(self, plan: QueryPlan, length: int, required: Sequence[int]) -> None:
        """`length` of the window is in ms; `required` has at least two GPMs."""
        self._columns, self._partition = plan.patterns.columns, plan.sequence.partition
        self._is_family = QUERY in self._partition
        self._most = MOST_LOOKED_AT if self._is_family else MOST_OF_ONE
        self._length, self._place = length, {gpm: i for i, gpm in enumerate(required)}
        self._latest: dict[int, list[int]] = {}  # by partition: of each required GPM the last time
        self._pruned = 0  # how many partitions there were after the last look
        self._rows: list[tuple[int, SolutionBatch]] = []  # with the last time of each batch
        self._count = 0
        self._active_until = _NEVER  # what comes up to this time goes to the evaluator
        self._done = _NEVER  # the evaluator has all that came up to this time
        self._watermark = _NEVER  # of the last call

    @classmethod
    def of(cls, plan: QueryPlan) -> WaitingRows | None:
        """For the plan of a query or family; None if rows of it may be needed at once."""
        required, window = plan.required_gpms, plan.sequence.window
        if isinstance(window, Counted) or len(required) < 2:
            return None
        if is_told_later(plan) or not can_be_told(plan, window):
            return None
        return cls(plan, window.horizon, required)

    def __len__(self) -> int:
        return self._count

    def restored(self) -> None:
        """The evaluator has rows that nothing is known of."""
        self._active_until = _UNKNOWN

    def take(
        self, rows: SolutionBatch, watermark: int, at_once: bool = False
    ) -> SolutionBatch | None:
        """What the evaluator gets now; None if it need not run. With `at_once`, it gets all rows.

        Args:
            rows: all rows after the last call's watermark up to this one's, perhaps with some that
                are later.
            watermark: no row at or before this time (ms) follows.
        """
        self._watermark = now = watermark
        if len(rows):
            last = int(rows.time.max())
            now = max(now, last)
            self._rows.append((last, rows))
            self._count += len(rows)
        self._look(rows, now)
        if not at_once and self._count <= MOST_WAITING and self._active_until <= self._done:
            self._forget(watermark - self._length)
            return None
        self._done = now
        return self._taken()

    def _taken(self) -> SolutionBatch:
        """The rows that wait, which wait no longer."""
        found = SolutionBatch.concat(self.waiting(), self._columns)
        self._rows, self._count = [], 0
        return found

    def passes(self, watermark: int) -> bool:
        """Whether the evaluator need not learn of a watermark, as no rows have come since the last.

        It need until the windows of all matches that were possible have closed.
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
        """The most rows that one query has among those that wait and some others."""
        if not self._is_family:
            return self._count + len(rows)
        columns = [some.values[QUERY] for some in (*self.waiting(), rows)]
        members = np.concatenate([_hashes_of(own.terms)[own.codes] for own in columns])
        return int(np.unique(members, return_counts=True)[1].max(initial=0))

    @property
    def is_ahead(self) -> bool:
        """Whether the evaluator has not been told of the last watermark, or of all rows."""
        return self._count > 0 or self._done < self._watermark

    def release(self) -> tuple[SolutionBatch, int]:
        """(the rows that wait, the watermark): they go to the evaluator now."""
        self._done = max([self._done, self._watermark, *(last for last, _ in self._rows)])
        return self._taken(), self._watermark

    def _look(self, rows: SolutionBatch, now: int) -> None:
        """Learn how long matches are possible."""
        if self._active_until == _UNKNOWN or len(rows) > self._most:
            self._active_until = now + self._length + 1
        elif len(rows):
            possible = self._last_possible(rows)
            if possible != _NEVER:
                # A window closes when its length has passed.
                self._active_until = max(self._active_until, possible + self._length + 1)

    def _last_possible(self, rows: SolutionBatch) -> int:
        """The time (ms) of the last row that may complete what a match needs."""
        found, length, known = _NEVER, self._length, self._latest
        times, gpms, keys = rows.time, rows.gpm, self._keys(rows)
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, gpms, keys = times[order], gpms[order], keys[order]
        for time, gpm, key in zip(times.tolist(), gpms.tolist(), keys.tolist(), strict=True):
            place = self._place.get(gpm)
            if place is None:
                continue
            latest = known.get(key)
            if latest is None:
                latest = known[key] = [_NEVER] * len(self._place)
            latest[place] = time
            if min(latest) >= time - length:
                found = time
        return found

    def _keys(self, rows: SolutionBatch) -> Int64s:
        """A number for the partition of each row [n]. Two partitions rarely have the same."""
        keys = np.zeros(len(rows), np.int64)
        for variable in self._partition:
            column = rows.values[variable]
            keys = keys * _FACTOR + _hashes_of(column.terms)[column.codes]
        return keys

    def _forget(self, before: int) -> None:
        """Let go of rows and partitions whose last time (ms) lies before a time."""
        if self._rows and self._rows[0][0] < before:
            self._rows = [own for own in self._rows if own[0] >= before]
            self._count = sum(len(rows) for _, rows in self._rows)
        if len(self._latest) > 2 * self._pruned + MOST_LOOKED_AT:
            self._latest = {key: own for key, own in self._latest.items() if max(own) >= before}
            self._pruned = len(self._latest)


def _hashes_of(terms: TextArray) -> Int64s:
    """The hashes [n + 1] of n texts and of UNBOUND; the families of a run share arrays of texts."""
    found = _hashes.get(id(terms))
    if found is None:
        texts = [*terms.to_pylist(), None]
        found = _hashes[id(terms)] = np.fromiter(map(hash, texts), np.int64, len(texts))
        weakref.finalize(terms, _hashes.pop, id(terms), None)
    return found
