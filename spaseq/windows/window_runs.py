"""The closes of the windows of one partition, and their events (docs/windows.md).

A run takes events in order of (time, k, stream IRI), and returns window events in order of
instants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from spaseq.plan.pattern_plan import EachEventExtent, Extent, PanesExtent, SessionExtent, WindowPlan
from spaseq.stateful import Stateful

EVER = 2**63 - 1
"""Later than every time (ms)."""


class ContentEvent(NamedTuple):
    """An event that windows hold: its instant, its stream (an index), its graph's IRI.

    `triples` is the value of EVENT: its triples as a literal.
    """

    time: int
    k: int
    stream: int
    name: str | None
    triples: str


Content: TypeAlias = "tuple[ContentEvent, ...]"


class Closed(NamedTuple):
    """A window event: its instant, the begin of its range (ms), and the events in it."""

    time: int
    k: int
    begin: int
    content: Content


class WindowRun(Stateful, ABC):
    """The windows of one partition. The fields of its state are described by each kind."""

    STATE = ("_events", "_time", "_count")

    def __init__(self) -> None:
        self._events: list[ContentEvent] = []
        self._time: int | None = None
        self._count = 0

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""
        return None

    @property
    def is_idle(self) -> bool:
        """Whether it is as good as a new one."""
        return not self._events

    @abstractmethod
    def add(self, event: ContentEvent) -> Iterator[Closed]:
        """Take the next event; the window events up to its instant."""

    @abstractmethod
    def due(self, until: int) -> Iterator[Closed]:
        """The window events up to a time (ms); no more events come at or before it."""


def run_of(extent: Extent) -> WindowRun:
    """A run of windows of an extent."""
    match extent:
        case PanesExtent():
            return PanesRun(extent)
        case EachEventExtent():
            return EachEventRun(extent)
        case SessionExtent():
            return SessionRun(extent)
    raise AssertionError(extent)


def longest_wait(windows: Iterable[WindowPlan]) -> int:
    """Maximum time (ms) between an event and its last window event."""
    return max((_wait(window.extent) for window in windows), default=0)


def _wait(extent: Extent) -> int:
    match extent:
        case PanesExtent(length, slide):
            return length + slide
        case SessionExtent(gap):
            return gap
        case _:
            return 0


class PanesRun(WindowRun):
    """Windows that close at regular times; an empty one counts only after one that was not.

    `_time` is the next close, and `_count` the number of events at the close before.
    """

    def __init__(self, extent: PanesExtent) -> None:
        super().__init__()
        self._extent = extent

    @property
    def next_due(self) -> int | None:
        return self._time

    @property
    def is_idle(self) -> bool:
        return self._time is None

    def add(self, event: ContentEvent) -> Iterator[Closed]:
        yield from self.due(event.time)
        self._events.append(event)
        if self._time is None:
            self._time = self._first_after(event.time)

    def _first_after(self, time: int) -> int:
        """The first close after a time."""
        extent = self._extent
        number = (time - extent.origin_ms) // extent.slide_ms + 1
        return extent.origin_ms + number * extent.slide_ms

    def due(self, until: int) -> Iterator[Closed]:
        extent = self._extent
        while self._time is not None and self._time <= until:
            close = self._time
            self._drop(close - extent.range_ms)
            if self._events or self._count:
                yield Closed(close, -1, close - extent.range_ms, tuple(self._events))
            self._count = len(self._events)
            self._time = close + extent.slide_ms if self._count else None

    def _drop(self, before: int) -> None:
        """Forget the events before a time."""
        self._events = self._events[bisect_left(self._events, before, key=_time) :]


class EachEventRun(WindowRun):
    """A window for each event, which is its last.

    `_time` is the time of the last event, and `_count` the number of events before it at that time.
    """

    def __init__(self, extent: EachEventExtent) -> None:
        super().__init__()
        self._extent = extent

    def add(self, event: ContentEvent) -> Iterator[Closed]:
        self._count = self._count + 1 if event.time == self._time else 0
        self._time = event.time
        self._events.append(event)
        if self._extent.events is not None:
            del self._events[: -self._extent.events]
        else:
            self._forget(event.time)
        yield Closed(event.time, self._count, self._events[0].time, tuple(self._events))

    def _forget(self, last: int) -> None:
        assert self._extent.range_ms is not None
        first = bisect_left(self._events, last - self._extent.range_ms, key=_time)
        del self._events[:first]

    def due(self, until: int) -> Iterator[Closed]:
        if self._extent.range_ms is not None and self._events:
            self._forget(until + 1)
        return iter(())


class SessionRun(WindowRun):
    """Events that are less than the gap apart; only they are state."""

    def __init__(self, extent: SessionExtent) -> None:
        super().__init__()
        self._gap = extent.gap_ms

    @property
    def next_due(self) -> int | None:
        return self._events[-1].time + self._gap if self._events else None

    def add(self, event: ContentEvent) -> Iterator[Closed]:
        yield from self.due(event.time)
        self._events.append(event)

    def due(self, until: int) -> Iterator[Closed]:
        close = self.next_due
        if close is not None and close <= until:
            yield Closed(close, -1, self._events[0].time, tuple(self._events))
            self._events = []


def _time(event: ContentEvent) -> int:
    return event.time
