"""Rows that can be in no match: a GPM that every match takes has no solution near enough.

A match lies in one window and has a solution of each required GPM. What ends or forbids it lies at
most a window away from these solutions, too. So a row without such a solution of its partition
within a window before or after changes no match. An evaluator need not see it.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.program.required_gpms import required_gpms
from spaseq.automaton.program.window import Counted, Window
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch

FEWEST = 64
"""With fewer rows, looking costs more than it saves."""

LONGEST_REST = 32
"""The most batches without looking, after some in which it did not pay off."""

_ROUNDS = 3
_LARGEST = 2**62
_NEVER_BEFORE = -(2**62)


class HopelessRows:
    """Leaves out the rows of batches that can be in no match; batches follow each other in time.

    Rows near the ends of a batch stay, as what is beyond is not known. If few rows of a batch are
    left out, the next batches are not looked at: one, then two, four and so on.
    """

    def __init__(self, plan: QueryPlan, window: Window) -> None:
        self._length = 0 if isinstance(window, Counted) else window.horizon
        self._partition = plan.sequence.partition
        self._required = sorted(required_gpms(plan.sequence.program.automaton))
        self._unknown_until = _NEVER_BEFORE  # rows up to this time (ms) came in earlier batches
        self._rest, self._left = 1, 0  # batches without looking after a failure, and until the next

    @classmethod
    def of(cls, plan: QueryPlan, window: Window) -> HopelessRows | None:
        """For a query; None if its matches depend on events that are in no match."""
        sequence = plan.sequence
        if isinstance(window, Counted) or sequence.needs_instants or sequence.program.strict:
            return None
        found = cls(plan, window)
        return found if found._required else None

    def restored(self) -> None:
        """Rows have come before that nothing is known of."""
        self._unknown_until = _LARGEST

    def passed(self, until: int) -> None:
        """Rows up to a time (ms) have come that were not looked at."""
        before = self._unknown_until
        self._unknown_until = until if before == _LARGEST else max(before, until)

    def without(self, rows: SolutionBatch, watermark: int) -> SolutionBatch:
        """The rows that may be in a match.

        Args:
            rows: all rows after the last batch's watermark (ms) up to this one's, perhaps with some
                that are later.
            watermark: no row at or before this time follows.
        """
        kept = self._kept(rows, watermark) if self._is_worth(rows) else None
        self.passed(max(watermark, int(rows.time.max())) if len(rows) else watermark)
        if kept is None or kept.all():
            return rows
        return rows.take(np.flatnonzero(kept))

    def _is_worth(self, rows: SolutionBatch) -> bool:
        if len(rows) < FEWEST or self._unknown_until == _LARGEST:
            return False
        self._left -= 1
        return self._left < 0

    def _kept(self, rows: SolutionBatch, watermark: int) -> Bools | None:
        """Which rows stay; None if all do."""
        place = self._places(rows)
        if place is None:
            return None
        time, length = rows.time, self._length
        edges = (time - length <= self._unknown_until) | (time + length >= watermark)
        kept, before = np.ones(len(rows), np.bool_), len(rows)
        for _ in range(_ROUNDS):
            for gpm in self._required:
                near = np.sort(place[kept & (rows.gpm == gpm)])
                first = np.searchsorted(near, place - length)
                end = np.searchsorted(near, place + length, side="right")
                kept &= (end > first) | edges
            count = int(np.count_nonzero(kept))
            if 10 * (before - count) < len(rows):
                break
            before = count
        pays_off = 10 * (len(rows) - int(np.count_nonzero(kept))) >= len(rows)
        self._rest = 1 if pays_off else min(2 * self._rest, LONGEST_REST)
        self._left = 0 if pays_off else self._rest
        return kept

    def _places(self, rows: SolutionBatch) -> Int64s | None:
        """A number for each row [n]: times of one partition are near each other, others far apart.

        None if there are no such numbers of 64 bits.
        """
        first = int(rows.time.min())
        apart = int(rows.time.max()) - first + 2 * self._length + 1
        partition, count = np.zeros(len(rows), np.int64), 1
        for variable in self._partition:
            column = rows.values[variable]
            count *= len(column.terms) + 1
            if count * apart >= _LARGEST:
                return None
            partition = partition * (len(column.terms) + 1) + column.codes + 1
        return partition * apart + (rows.time - first)
