"""The window events of a window as columns: their times, and their rows.

Rows come in order of (time, k, stream IRI) and have absolute numbers. `spaseq.windows.window_runs`
does the same for one event at a time.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.gpm.graphs.vertical_partition import ranges
from spaseq.plan.query_plan import EachEventExtent, Extent, PanesExtent, SessionExtent
from spaseq.records import record
from spaseq.stateful import Stateful
from spaseq.windows.kernels.window_bounds import windows_of_events


@record
class Closes:
    """t window events, in order.

    `enter` and `leave` int64 [t] are numbers of rows: the rows before `enter` have come, and those
    before `leave` have gone. `begin` [t] are the begins of their ranges (ms).
    """

    time: Int64s
    k: Int32s
    begin: Int64s
    enter: Int64s
    leave: Int64s

    def __len__(self) -> int:
        return len(self.time)


class RowTimes(Protocol):
    """The rows that are in windows, or will be."""

    first: int  # the number of the first of them

    @property
    def time(self) -> Int64s:
        """[n] their times (ms)."""

    @property
    def opens(self) -> Bools:
        """[n] whether a row is the first one of its event."""


class WindowCloses(Protocol):
    """Says when the windows of an extent close."""

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""

    def after(self, rows: RowTimes, new: int, until: int) -> Closes:
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


class PaneCloses(Stateful):
    """Windows that close at regular times, which have numbers; see `PanesRun`."""

    STATE = ("_done", "_pending", "_is_new")

    def __init__(self, extent: PanesExtent) -> None:
        self._extent = extent
        self._done = self._pending = 0  # closes are numbered; _done < number <= _pending come
        self._is_new = True

    @property
    def next_due(self) -> int | None:
        if self._is_new or self._pending <= self._done:
            return None
        return self._extent.origin_ms + (self._done + 1) * self._extent.slide_ms

    def after(self, rows: RowTimes, new: int, until: int) -> Closes:
        extent = self._extent
        time = rows.time[len(rows.time) - new :] - extent.origin_ms
        first = time // extent.slide_ms + 1
        end = (time + extent.range_ms) // extent.slide_ms + 1  # the first one without the row
        held = end > first
        first, end = first[held], end[held]
        if not self._is_new and self._pending > self._done:
            first, end = np.append(self._done + 1, first), np.append(self._pending, end)
        if not len(first):
            return self._at(rows, np.empty(0, np.int64))
        last = (until - extent.origin_ms) // extent.slide_ms
        begin = np.maximum(first, np.append(first[0], end[:-1] + 1))
        due = np.minimum(end, min(last, int(end[-1])))
        numbers = ranges(begin, np.maximum(due - begin + 1, 0))
        self._is_new, self._pending = False, int(end[-1])
        self._done = min(last, self._pending)
        return self._at(rows, numbers)

    def _at(self, rows: RowTimes, numbers: Int64s) -> Closes:
        extent = self._extent
        close = extent.origin_ms + numbers * extent.slide_ms
        begin = close - extent.range_ms
        enter = rows.first + np.searchsorted(rows.time, close)
        leave = rows.first + np.searchsorted(rows.time, begin)
        return Closes(close, np.full(len(close), -1, np.int32), begin, enter, leave)


_ANY_LENGTH = 2**62
"""Longer (ms) than any window is."""


class EventCloses(Stateful):
    """A window for each event, which is its last; see `EachEventRun`."""

    STATE = ("_last", "_k")

    next_due = None

    def __init__(self, extent: EachEventExtent) -> None:
        self._extent = extent
        self._last, self._k = 0, -1  # the time of the last event, and its k

    def after(self, rows: RowTimes, new: int, until: int) -> Closes:
        times, opens, first = rows.time, rows.opens, len(rows.time) - new
        length, leave = self._extent.range_ms, 0
        if length is None:
            length = _ANY_LENGTH
        elif new:
            leave = int(np.searchsorted(times, times[first] - length))
        columns = np.empty((5, new), np.int64)
        size = windows_of_events(times, opens, first, length, leave, self._last, self._k, columns)
        time, k, enter, left, begin = columns[:, :size]
        if self._extent.events is not None:
            starts = np.flatnonzero(opens)
            last = np.arange(len(starts) - size, len(starts))
            left = starts[np.maximum(last - self._extent.events + 1, 0)]
            begin = times[left]
        if size:
            self._last, self._k = int(time[-1]), int(k[-1])
        return Closes(time, k.astype(np.int32), begin, rows.first + enter, rows.first + left)


class SessionCloses(Stateful):
    """Events that are less than the gap apart; see `SessionRun`."""

    STATE = ("_start", "_last")

    def __init__(self, extent: SessionExtent) -> None:
        self._gap = extent.gap_ms
        self._start: int | None = None  # the row with which the open session begins
        self._last = 0  # the time of its last event

    @property
    def next_due(self) -> int | None:
        return None if self._start is None else self._last + self._gap

    def after(self, rows: RowTimes, new: int, until: int) -> Closes:
        time, first = rows.time, rows.first
        begin = len(time) - new if self._start is None else self._start - first
        open_rows = time[begin:]
        if not len(open_rows):
            return self._closed(rows, np.empty(0, np.int64), np.empty(0, np.int64))
        cuts = begin + 1 + np.flatnonzero(np.diff(open_rows) >= self._gap)
        starts, ends = np.append(begin, cuts), np.append(cuts, len(time))
        self._last = int(time[-1])
        if self._last + self._gap <= until:
            self._start = None
        else:
            self._start = int(first + starts[-1])
            starts, ends = starts[:-1], ends[:-1]
        return self._closed(rows, starts, ends)

    def _closed(self, rows: RowTimes, starts: Int64s, ends: Int64s) -> Closes:
        k = np.full(len(starts), -1, np.int32)
        time = rows.time[ends - 1] + self._gap
        begin = rows.time[starts]
        return Closes(time, k, begin, rows.first + ends, rows.first + starts)
