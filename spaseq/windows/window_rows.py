"""The rows of a window in all partitions: in lists, with the window events that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spaseq import thresholds
from spaseq.compiled.arrays import Array, Bools, Int32s, Int64s
from spaseq.gpm.solutions.lazy_columns import Lexicon, encoded
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.stateful import Stateful
from spaseq.windows.group_tables import GroupTable, Key
from spaseq.windows.kept_rows import EventOrder, Form, KeptRows, differs
from spaseq.windows.kernels.window_bounds import (
    EVENTS,
    FIRST,
    PLACES,
    WAIT,
    linked,
    sizes_of_windows,
)
from spaseq.windows.window_closes import Closes, closes_of


class WindowRows(KeptRows, Stateful):
    """Kept rows of the events of a window.

    Attributes:
        order: of events.
        partitions: the numbers of partitions, by the values of PARTITION BY; there is one without.
        lists: int64 [PLACES, room] (`kernels.window_bounds`); the last column is free.
        next_due: the time (ms) of the next window event, if no further event comes; None: never.
    """

    STATE = ("first", "_saved", "_events", "partitions", ("lists", "_used_lists"))

    def __init__(
        self, plan: QueryPlan, window: int, form: Form, partitions: GroupTable | None = None
    ) -> None:
        super().__init__(form)
        self.variables = plan.sequence.own_partition
        self.order = EventOrder(plan, window)
        self.partitions = GroupTable(self.variables) if partitions is None else partitions
        self.lists = with_room(np.empty((PLACES, 0), np.int64), len(self.partitions) + 1)
        self._closes = closes_of(plan.inputs.windows[window].extent)
        self.next_due: int | None = None
        self._events = 0  # so far
        self._enough = 0  # rows among which few have left

    # --- rows that come ---------------------------------------------------------------------------

    def partitions_of(self, rows: SolutionBatch) -> Int32s:
        """The partition [n] of each row; new ones are added."""
        partition = self.partitions.of_rows(rows)
        self.lists = with_room(self.lists, len(self.partitions) + 1)
        return partition

    def partitions_of_keys(self, keys: Sequence[Key]) -> Int64s:
        """The partition [g] of each group, whose keys begin with the partition's; -1 for none."""
        numbers = {key: number for number, key in enumerate(self.partitions.keys)}
        size = len(self.variables)
        return np.array([numbers.get(key[:size], -1) for key in keys], np.int64)

    def events_of(self, rows: SolutionBatch) -> Int64s:
        """The numbers [n] of the events of some rows in order, the next ones."""
        opens = differs(rows.time) | differs(rows.k) | differs(rows.stream)
        numbers = self._events + np.append(0, np.cumsum(opens))
        self._events = int(numbers[-1]) + 1
        return numbers

    def take(self, rows: SolutionBatch, columns: Mapping[str, Array]) -> None:
        """Append rows in order, of which `columns` has all but times and links.

        `event` has the numbers of their events in all partitions.
        """
        first = self.first + len(self)
        self.append(len(rows), {"time": rows.time, **columns})
        links = (self.arrays[name] for name in ("partition", "next", "event"))
        linked(self.lists, first, first + len(rows), self.base, *links)

    def by_partition(self, new: int) -> Int64s:
        """The numbers of the last `new` rows, in order, partition by partition."""
        numbers = self.first + np.arange(len(self) - new, len(self))
        if len(self.partitions) == 1:
            return numbers
        partition = self.column("partition")[len(self) - new :]
        return numbers[np.argsort(partition, kind="stable")]

    def closes_after(self, new: int, until: int) -> Closes:
        """The window events up to a time (ms); the last `new` rows have just come."""
        closes = self._closes.after(self, new, until)
        self.next_due = self._closes.next_due(self.lists)
        return closes

    def sizes(self, closes: Closes) -> tuple[Int64s, int]:
        """(the numbers of events [t] of window events, how many rows enter and leave for them)."""
        sizes = np.empty(len(closes), np.int64)
        bounds = closes.partition, closes.enter, closes.leave
        links = self.arrays["next"], self.arrays["event"]
        return sizes, sizes_of_windows(self.lists, self.base, *bounds, *links, sizes)

    def partition_codes(self, partition: Int64s, lexicon: Lexicon) -> dict[str, Int32s]:
        """The codes [n] of the values of PARTITION BY in some partitions."""
        if not self.variables:
            return {}
        used, which = np.unique(partition, return_inverse=True)
        keys = [self.partitions.keys[number] for number in used.tolist()]
        return {
            v: encoded(lexicon, [key[i] for key in keys])[which]
            for i, v in enumerate(self.variables)
        }

    # --- rows that go -----------------------------------------------------------------------------

    def inside(self) -> Bools:
        """[n] which rows have entered and not left."""
        partition = self.column("partition")
        numbers = self.first + np.arange(len(self))
        head, wait = self.lists[FIRST, partition], self.lists[WAIT, partition]
        inside: Bools = (head >= 0) & (head <= numbers) & ((wait < 0) | (numbers < wait))
        return inside

    def drop_left(self) -> None:
        """Drop the rows before all that have not left."""
        heads = self.lists[FIRST][self.lists[FIRST] >= 0]
        self.drop(int(heads.min()) if len(heads) else self.first + len(self))

    def without_left(self, is_needed: bool) -> Int64s | None:
        """Drop the rows that have left if it is needed, or if they are most of many.

        Returns the new numbers [n] of rows, from `first` on; None if all stay.
        """
        if len(self) <= self._enough and not is_needed:
            return None
        head = self.lists[FIRST, self.column("partition")]
        stays = (head >= 0) & (head <= self.first + np.arange(len(self)))
        live = int(np.count_nonzero(stays))
        self._enough = 2 * live + thresholds.current.kept_groups
        if live == len(self) or not (is_needed or len(self) > self._enough):
            return None
        first, places = self.first, self.keep(stays)
        self.lists[:EVENTS] = renumbered(self.lists[:EVENTS], places, first)
        following = self.column("next")
        following[:] = renumbered(following, places, first)
        return places

    def without_idle(self, is_held: Callable[[int], bool]) -> Int32s | None:
        """Drop the partitions without rows, window events to come and solutions, if there are many.

        `is_held` says whether a partition has solutions. Returns the new numbers [p] of partitions;
        None if all stay.
        """
        size = len(self.partitions)
        if size <= thresholds.current.kept_groups:
            return None
        used = (self.lists[FIRST] >= 0) | self._closes.are_due(self.lists)
        used = used[:size]
        if 4 * np.count_nonzero(used) > size:  # few are renumbered often
            return None
        for number in np.flatnonzero(~used).tolist():
            used[number] = is_held(number)
        if 4 * np.count_nonzero(used) > size:
            return None
        places = self.partitions.without_empty(used)
        if places is not None:
            self.lists = with_room(self.lists[:, :size][:, used], len(self.partitions) + 1)
            partition = self.column("partition")
            partition[:] = np.append(places, np.int32(-1))[partition]
        return places

    # --- state ------------------------------------------------------------------------------------

    @property
    def _used_lists(self) -> Int64s:
        return self.lists[:, : len(self.partitions)].copy()

    def entering_again(self) -> Closes:
        """Let all rows inside wait; return window events at which they enter again."""
        head, wait = self.lists[FIRST], self.lists[WAIT]
        partition = np.flatnonzero((head >= 0) & (head != wait))
        head, wait = head[partition], wait[partition]
        self.lists[WAIT, partition] = head
        enter = np.where(wait < 0, self.first + len(self), wait)
        none = np.zeros(len(head), np.int64)
        return Closes(partition, none, none.astype(np.int32), none, enter, head)

    def _after_restore(self) -> None:
        self.lists = with_room(self.lists, len(self.partitions) + 1)
        self.next_due = self._closes.next_due(self.lists)


def with_room(columns: Int64s, size: int) -> Int64s:
    """Columns [m, n] with room for `size`; -1 is in the new ones."""
    room = columns.shape[1]
    if size <= room:
        return columns
    return np.pad(columns, ((0, 0), (0, max(64, 2 * size) - room)), constant_values=-1)


def renumbered(numbers: Int64s, places: Int64s, first: int) -> Int64s:
    """Numbers of rows after others are dropped (`KeptRows.keep`); -1 for rows that are none.

    >>> renumbered(np.array([3, 4, 5, -1]), np.array([-1, 4]), 4).tolist()
    [-1, -1, 4, -1]
    """
    there = (numbers >= first) & (numbers < first + len(places))
    given = np.full(numbers.shape, -1, np.int64)
    given[there] = places[numbers[there] - first]
    return given
