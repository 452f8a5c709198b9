"""The pace of a kernel: the rows it processes between two counts of waiting partial matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from spaseq import thresholds
from spaseq.automaton.batch.frame import BatchFrame, OrderedRows
from spaseq.automaton.run.waiting_limit import Member, WaitingLimit
from spaseq.compiled.arrays import Int64s

if TYPE_CHECKING:
    from spaseq.automaton.registers.compiled.carried_members import CarriedMembers


class Pace:
    """Leads a kernel through n rows: it may process rows before `end`, and has processed rows
    before `at`.

    Before `end` the limit is surely not exceeded. Or `end` is the end of an instant, after which
    partial matches are counted.
    """

    def __init__(
        self,
        rows: OrderedRows,
        frame: BatchFrame,
        limit: WaitingLimit,
        alive: Callable[[int], Int64s],
        carried: CarriedMembers | None = None,
    ) -> None:
        """
        Args:
            rows: the rows.
            frame: has their keys.
            limit: the limit.
            alive: counts, by slot, the waiting partial matches that began at a measure or later.
            carried: gives the member of each partial match, if partitions are shared.
        """
        self._rows, self._frame, self._limit, self._alive = rows, frame, limit, alive
        self.carried = carried
        self.at, self.end, self._is_held = 0, len(rows), False

    @property
    def goes_on(self) -> bool:
        """Whether there are rows left, and the limit was not exceeded."""
        return self.at < len(self._rows) and not self._limit.is_over

    @property
    def rows(self) -> OrderedRows:
        """The rows before `end`."""
        rows, end = self._rows, self.end
        if end == len(rows):
            return rows
        columns = {
            name: getattr(rows, name)[:end]
            for name in ("slot", "gpm", "time", "k", "start", "lowest", "ordinal")
        }
        return replace(rows, **columns)

    # --- where each row makes a bounded number of partial matches ---------------------------------

    def plan(self, most: int) -> None:
        """Set `end`, given the maximum number of partial matches per row."""
        limit, left = self._limit, len(self._rows) - self.at
        self.end = len(self._rows)
        if most == 0 or left * most <= limit.room:
            return
        self._learn(self.at)
        fits = max(limit.room, 0) // most
        if fits < left:
            self.end = self._begin_of_instant(self.at + fits)
            if self.end == self.at:
                self.end = self._end_of_instant(self.at)

    def passed(self, at: int, most: int) -> list[Member]:
        """The rows before `at` are processed. Returns the members that exceed the limit now."""
        before, self.at = self.at, at
        self._limit.room -= (at - before) * most
        return self._checked()

    # --- where a row may make any number ----------------------------------------------------------

    @property
    def room(self) -> int | None:
        """Number of partial matches that may be made before the next check; None: any number."""
        return None if self._is_held else max(self._limit.room, 0)

    def made(self, count: int) -> None:
        """Record `count` new partial matches."""
        self._limit.room -= count

    def look(self, row: int) -> OrderedRows:
        """Find more room at a row, where none is left, or set `end` after the row's instant.

        Returns `rows`.
        """
        self._learn(row)
        if self._limit.room < thresholds.current.limit_room:
            self._is_held, self.end = True, self._end_of_instant(row)
        return self.rows

    def reached(self) -> list[Member]:
        """The rows before `end` are processed. Returns the members that exceed the limit now."""
        self.at, self.end = self.end, len(self._rows)
        if self._is_held:
            self._limit.room = -1
        self._is_held = False
        return self._checked()

    # --- counts -----------------------------------------------------------------------------------

    def slots_of(self, members: list[Member]) -> Int64s:
        """The slots of some members of a family."""
        limit = self._limit
        slots = self._frame.slots_of(lambda key: limit.member(key) in members)
        assert slots is not None
        return slots

    def _learn(self, row: int) -> None:
        self._limit.learn(*self._counts(int(self._rows.lowest[row])))

    def _checked(self) -> list[Member]:
        if self._limit.room >= 0:
            return []
        rows, last = self._rows, self.at - 1
        instant = int(rows.time[last]), int(rows.k[last])
        return self._limit.check(instant, *self._counts(int(rows.lowest[last])))

    def _counts(self, lowest: int) -> tuple[int, Callable[[], Counter[Member]]]:
        """Number of waiting partial matches that began at a measure or later, and by member."""
        alive = self._alive(lowest)
        if self.carried is not None:
            return int(alive.sum()), partial(self.carried.counts, lowest)
        return int(alive.sum()), partial(self._frame.of_members, alive, self._limit)

    # --- instants ---------------------------------------------------------------------------------

    def _is_inside(self, row: int) -> bool:
        """Whether a row has the instant of the row before it."""
        time, k = self._rows.time, self._rows.k
        return bool(time[row] == time[row - 1] and k[row] == k[row - 1])

    def _begin_of_instant(self, row: int) -> int:
        while row > self.at and self._is_inside(row):
            row -= 1
        return row

    def _end_of_instant(self, row: int) -> int:
        row += 1
        while row < len(self._rows) and self._is_inside(row):
            row += 1
        return row
