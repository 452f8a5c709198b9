"""The input buffer of a GPM: its solutions in order of instants, indexed by join key.

To store a solution costs one append. The first search that needs an index makes it, and later
searches bring it up to date. So a solution that expires before any search is never indexed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.run.runs import Row

Key: TypeAlias = tuple[str | None, ...]


class Bucket:
    """Solutions in the order of instants; bisection finds a range of instants."""

    __slots__ = ("instants", "rows")

    def __init__(self) -> None:
        self.instants: list[Instant] = []
        self.rows: list[Row] = []

    def add(self, instant: Instant, row: Row) -> None:
        """Store a solution, which no solution stored before follows."""
        self.instants.append(instant)
        self.rows.append(row)

    def between(self, low: Instant, high: Instant) -> tuple[int, int]:
        """The range of the solutions after `low` and before `high`; it may have start >= stop."""
        return bisect_right(self.instants, low), bisect_left(self.instants, high)

    def forget(self, until: Instant) -> None:
        """Drop the solutions at or before an instant."""
        dead = bisect_right(self.instants, until)
        del self.instants[:dead]
        del self.rows[:dead]


NOTHING = Bucket()
"""The bucket of a key without solutions."""


class _Index:
    """The solutions of a buffer by their values in some columns."""

    __slots__ = ("buckets", "upto")

    def __init__(self) -> None:
        self.buckets: dict[Key, Bucket] = {}
        self.upto = 0  # how many solutions of the buffer are indexed

    def catch_up(self, whole: Bucket, columns: tuple[int, ...], expired: Instant) -> None:
        start = max(self.upto, bisect_right(whole.instants, expired))
        for i in range(start, len(whole.rows)):
            row = whole.rows[i]
            values = row[4]
            key = tuple([values[c] for c in columns])
            bucket = self.buckets.get(key)
            if bucket is None:
                bucket = self.buckets[key] = Bucket()
            bucket.add(whole.instants[i], row)
        self.upto = len(whole.rows)


class InputBuffer:
    """The solutions of one GPM that may still become part of a match."""

    __slots__ = ("_indexes", "_limit", "whole")

    def __init__(self) -> None:
        self.whole = Bucket()
        self._indexes: dict[tuple[int, ...], _Index] = {}
        self._limit = 64

    def add(self, instant: Instant, rows: list[Row], expired: Instant) -> None:
        """Store the solutions of an instant; no search needs those at or before `expired`.

        Expired solutions are dropped once they may be half of all, at O(1) per solution.
        """
        whole = self.whole
        for row in rows:
            whole.add(instant, row)
        if len(whole.rows) > self._limit:
            whole.forget(expired)
            self._indexes.clear()
            self._limit = 2 * len(whole.rows) + 64

    def bucket(self, columns: tuple[int, ...], key: Key, expired: Instant) -> Bucket:
        """The solutions with some values in some columns."""
        if not columns:
            return self.whole
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = _Index()
        if index.upto < len(self.whole.rows):
            index.catch_up(self.whole, columns, expired)
        return index.buckets.get(key, NOTHING)

    def since(self, expired: Instant) -> int:
        """How many solutions there are after an instant."""
        return len(self.whole.instants) - bisect_right(self.whole.instants, expired)

    def __len__(self) -> int:
        return len(self.whole.rows)

    def __getstate__(self) -> tuple[list[Instant], list[Row]]:
        return self.whole.instants, self.whole.rows  # searches make the indexes again

    def __setstate__(self, state: tuple[list[Instant], list[Row]]) -> None:
        self.__init__()  # type: ignore[misc]
        self.whole.instants, self.whole.rows = state
