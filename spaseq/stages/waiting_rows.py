"""Rows of a family that wait until a match is possible.

A match has a row of each required GPM in one partition and one window. Most batches of a family
have no such rows, so its evaluator would only take rows in and let them go. These rows wait here
instead, and leave with their window. When the last row that a match needs comes, the evaluator gets
all rows that wait, and whatever follows until that match's window has closed.

See `hopeless_rows.py` for why other rows change no match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.automaton.program.window import Counted, Window
from spaseq.lang.shapes import QUERY
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stages.latest_rows import LatestRows
from spaseq.stages.partition_places import hashes_of, place_hashes

MOST_LOOKED_AT = 1024
"""More rows go to the evaluator at once: it takes each in less time than looking."""

MOST_WAITING = 8192
"""With more rows, the evaluator gets them, and goes on from there."""

_NEVER = -(2**62)


class WaitingRows:
    """Decides which rows the evaluator gets, and up to which time. Rows come in order of time."""

    def __init__(self, plan: QueryPlan, length: int, required: Sequence[int]) -> None:
        """`length` of the window is in ms; `required` has at least two GPMs."""
        self._columns, self._partition = plan.patterns.columns, plan.sequence.partition
        self._length = length
        self._latest = LatestRows(required, len(plan.patterns.gpms), length)
        # With the first and the last time of each batch, in order of first times.
        self._rows: list[tuple[int, int, SolutionBatch]] = []
        self._count = 0
        self._active_until: int | None = _NEVER  # all rows up to this time go to the evaluator
        self._done = _NEVER  # the evaluator has all that came up to this time
        self._watermark = _NEVER  # of the last call

    @classmethod
    def of(cls, plan: QueryPlan, window: Window) -> WaitingRows | None:
        """For the plan of a family; None if a single row can make a match possible."""
        required = plan.required_gpms
        if isinstance(window, Counted) or len(required) < 2:
            return None
        return cls(plan, window.horizon, required)

    def __len__(self) -> int:
        return self._count

    def restored(self) -> None:
        """The evaluator has rows that nothing is known of."""
        self._active_until = None

    def take(
        self, rows: SolutionBatch, watermark: int, at_once: bool = False
    ) -> tuple[SolutionBatch, int] | None:
        """(what the evaluator gets now, the watermark for it); None if it need not run.

        With `at_once`, it gets all rows.

        Args:
            rows: all rows after the last call's watermark up to this one's, perhaps with some that
                are later.
            watermark: no row at or before this time (ms) follows.
        """
        self._watermark = now = watermark
        if len(rows):
            first, last = int(rows.time.min()), int(rows.time.max())
            now = max(now, last)
            self._rows.append((first, last, rows))
            self._count += len(rows)
        self._look(rows, now)
        assert self._active_until is not None
        at_once = at_once or self._count > MOST_WAITING
        until = now if at_once else min(now, self._active_until)
        due = self._due(until)
        self._forget(watermark - self._length)
        if due is None and until <= self._done:
            return None
        self._done = max(self._done, until)
        return due or SolutionBatch.empty(self._columns), min(watermark, self._done)

    def waiting(self) -> list[SolutionBatch]:
        """The rows that wait, in order of time."""
        return [rows for _, _, rows in self._rows]

    def most_of_member(self, rows: SolutionBatch) -> int:
        """The most rows that one member has among those that wait and some others."""
        columns = [some.values[QUERY] for some in (*self.waiting(), rows)]
        members = np.concatenate([hashes_of(own.terms)[own.codes] for own in columns])
        return int(np.unique(members, return_counts=True)[1].max(initial=0))

    @property
    def is_ahead(self) -> bool:
        """Whether the evaluator has not been told of the last watermark, or of all rows."""
        return self._count > 0 or self._done < self._watermark

    def release(self) -> tuple[SolutionBatch, int]:
        """(the rows that wait, the watermark): they go to the evaluator now."""
        found = SolutionBatch.concat(self.waiting(), self._columns)
        self._done = max([self._done, self._watermark, *(last for _, last, _ in self._rows)])
        self._rows, self._count = [], 0
        return found, self._watermark

    def _look(self, rows: SolutionBatch, now: int) -> None:
        """Learn how long matches are possible."""
        if self._active_until is None or len(rows) > MOST_LOOKED_AT:
            self._active_until = now + self._length + 1
        elif len(rows):
            possible = self._latest.possible(
                rows.time, rows.gpm, place_hashes(rows, self._partition)
            )
            # A window closes when its length has passed.
            self._active_until = max(self._active_until, possible + self._length + 1)

    def _due(self, until: int) -> SolutionBatch | None:
        """The rows up to a time (ms), which wait no longer."""
        if not self._rows or until < self._rows[0][0]:
            return None
        due: list[SolutionBatch] = []
        later: list[tuple[int, int, SolutionBatch]] = []
        for first, last, rows in self._rows:
            if last <= until:
                due.append(rows)
            elif until < first:
                later.append((first, last, rows))
            else:
                mask = rows.time <= until
                due.append(rows.take(np.flatnonzero(mask)))
                rest = rows.take(np.flatnonzero(~mask))
                later.append((int(rest.time.min()), last, rest))
        self._rows = later
        if not due:
            return None
        self._count = sum(len(rows) for _, _, rows in later)
        return SolutionBatch.concat(due, self._columns)

    def _forget(self, before: int) -> None:
        """Let go of rows whose last time (ms) lies before a time."""
        if self._rows and self._rows[0][1] < before:
            self._rows = [own for own in self._rows if own[1] >= before]
            self._count = sum(len(rows) for _, _, rows in self._rows)
