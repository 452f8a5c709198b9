"""The window events of a window in all partitions as columns: their times, and their rows.

Rows come in order of (time, k, stream IRI) and have absolute numbers. `spaseq.windows.window_runs`
does the same for one event at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from spaseq.compiled.arrays import Array, Bools, Int32s, Int64s
from spaseq.gpm.graphs.vertical_partition import ranges
from spaseq.plan.pattern_plan import EachEventExtent, Extent, PanesExtent, SessionExtent
from spaseq.records import record
from spaseq.windows.kernels.window_bounds import (
    DONE,
    PENDING,
    START,
    sessions,
    windows_of_events,
)


@record
class Closes:
    """t window events, in order, partition by partition.

    `partition` int64 [t] are numbers. `enter` and `leave` int64 [t] are numbers of rows: the rows
    of the partition before `enter` have come, and those before `leave` have gone. `begin` [t] are
    the begins of their ranges (ms).
    """

    partition: Int64s
    time: Int64s
    k: Int32s
    begin: Int64s
    enter: Int64s
    leave: Int64s

    @classmethod
    def of(cls, found: Int64s) -> Closes:
        """The window events [6, t] that a kernel of `window_bounds` has found."""
        partition, time, k, begin, enter, leave = found
        return cls(partition, time, k.astype(np.int32), begin, enter, leave)

    def __len__(self) -> int:
        return len(self.time)


class PartitionedRows(Protocol):
    """The rows that are in windows, or will be, and the lists of their partitions."""

    lists: Int64s
    """[PLACES, room] (`kernels.window_bounds`)."""

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The columns of rows, with room before and behind them."""

    @property
    def base(self) -> int:
        """The number of the row that would be at place 0 of the arrays."""

    @property
    def first(self) -> int:
        """The number of the first row."""

    @property
    def time(self) -> Int64s:
        """[n] the times (ms) of the rows, in order."""

    def by_partition(self, new: int) -> Int64s:
        """The numbers of the last `new` rows, in order, partition by partition."""


class WindowCloses(Protocol):
    """Says when the windows of an extent close."""

    def are_due(self, lists: Int64s) -> Bools:
        """Which partitions [p] have a window event if no further event comes."""

    def next_due(self, lists: Int64s) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""

    def after(self, rows: PartitionedRows, new: int, until: int) -> Closes:
        """The window events up to a time (ms); the last `new` rows have just come.

        No more rows come at or before `until`.
        """


def closes_of(extent: Extent) -> WindowCloses:
    """When the windows of an extent close."""
    match extent:
        case PanesExtent():
            return PaneCloses(extent)
        case EachEventExtent():
            return EventCloses(extent)
        case SessionExtent():
            return SessionCloses(extent)
    raise AssertionError(extent)


class PaneCloses:
    """Windows that close at regular times, which have numbers; see `PanesRun`."""

    def __init__(self, extent: PanesExtent) -> None:
        self._extent = extent

    def are_due(self, lists: Int64s) -> Bools:
        due: Bools = lists[PENDING] > lists[DONE]
        return due

    def next_due(self, lists: Int64s) -> int | None:
        done = lists[DONE][self.are_due(lists)]
        if not len(done):
            return None
        return self._extent.origin_ms + (int(done.min()) + 1) * self._extent.slide_ms

    def after(self, rows: PartitionedRows, new: int, until: int) -> Closes:
        extent, lists = self._extent, rows.lists
        given = rows.by_partition(new) - rows.base
        time = rows.arrays["time"][given] - extent.origin_ms
        first = time // extent.slide_ms + 1
        end = (time + extent.range_ms) // extent.slide_ms + 1  # the first one without the row
        held = end > first
        open_ones = np.flatnonzero(self.are_due(lists))
        partition = np.append(open_ones, rows.arrays["partition"][given[held]])
        first = np.append(lists[DONE, open_ones] + 1, first[held])
        end = np.append(lists[PENDING, open_ones], end[held])
        if len(open_ones):
            order = np.argsort(partition, kind="stable")
            partition, first, end = partition[order], first[order], end[order]
        follows = np.append(False, partition[1:] == partition[:-1])[: len(partition)]
        begin = np.where(follows, np.maximum(first, np.roll(end, 1) + 1), first)
        last = min((until - extent.origin_ms) // extent.slide_ms, _ANY)
        sizes = np.maximum(np.minimum(end, last) - begin + 1, 0)
        reached = np.flatnonzero(~np.append(follows[1:], False)[: len(partition)])
        lists[PENDING, partition[reached]] = end[reached]
        lists[DONE, partition[reached]] = np.minimum(last, end[reached])
        return self._at(rows, np.repeat(partition, sizes), ranges(begin, sizes))

    def _at(self, rows: PartitionedRows, partition: Int64s, numbers: Int64s) -> Closes:
        extent = self._extent
        close = extent.origin_ms + numbers * extent.slide_ms
        begin = close - extent.range_ms
        enter = rows.first + np.searchsorted(rows.time, close)
        leave = rows.first + np.searchsorted(rows.time, begin)
        return Closes(partition, close, np.full(len(close), -1, np.int32), begin, enter, leave)


_ANY = 2**62
"""Longer (ms) than any window is, or more events."""


class EventCloses:
    """A window for each event, which is its last; see `EachEventRun`."""

    def __init__(self, extent: EachEventExtent) -> None:
        self._length = _ANY if extent.range_ms is None else extent.range_ms
        self._most = _ANY if extent.events is None else extent.events

    def are_due(self, lists: Int64s) -> Bools:
        return np.zeros(lists.shape[1], np.bool_)

    def next_due(self, lists: Int64s) -> int | None:
        return None

    def after(self, rows: PartitionedRows, new: int, until: int) -> Closes:
        found = np.empty((6, new), np.int64)
        arrays = rows.arrays
        size = windows_of_events(
            rows.lists,
            rows.by_partition(new),
            rows.base,
            self._length,
            self._most,
            (arrays["time"], arrays["partition"], arrays["next"], arrays["event"]),
            found,
        )
        return Closes.of(found[:, :size])


class SessionCloses:
    """Events that are less than the gap apart; see `SessionRun`."""

    def __init__(self, extent: SessionExtent) -> None:
        self._gap = extent.gap_ms

    def are_due(self, lists: Int64s) -> Bools:
        due: Bools = lists[START] >= 0
        return due

    def next_due(self, lists: Int64s) -> int | None:
        last = lists[DONE][self.are_due(lists)]
        return int(last.min()) + self._gap if len(last) else None

    def after(self, rows: PartitionedRows, new: int, until: int) -> Closes:
        lists = rows.lists
        found = np.empty((6, new + lists.shape[1]), np.int64)
        columns = rows.arrays["time"], rows.arrays["partition"]
        end = rows.first + len(rows.time)
        given = rows.by_partition(new), rows.base, self._gap, until, end
        size = sessions(lists, *given, columns, found)
        order = np.argsort(found[0, :size], kind="stable")
        return Closes.of(found.take(order, axis=1))
