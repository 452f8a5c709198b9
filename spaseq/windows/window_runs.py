"""The closes of the windows of one partition, and their events (docs/windows.md).

A run takes events in order of (time, k, stream IRI), and returns window events in order of
instants.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from spaseq.plan.query_plan import EachEventExtent, Extent, PanesExtent, SessionExtent, WindowPlan
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


class WindowRun(Protocol):
    """The windows of one partition."""

    @property
    def next_due(self) -> int | None:
        """The time (ms) of the next window event, if no further event comes; None: never."""

    @property
    def is_idle(self) -> bool:
        """Whether it is as good as a new one."""

    def add(self, event: ContentEvent) -> Iterator[Closed]:
        """Take the next event; the window events up to its instant."""

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


class PanesRun(Stateful):
    """Windows that close at regular times; an empty one counts only after one that was not."""

    STATE = ("_events", "_close", "_was_empty")

    def __init__(self, extent: PanesExtent) -> None:
        self._extent = extent
        self._events: list[ContentEvent] = []
        self._close: int | None = None
        self._was_empty = True

    @property
    def next_due(self) -> int | None:
        return self._close

    @property
    def is_idle(self) -> bool:
        return self._close is None

    def add(self, event: ContentEvent) -> Iterator[Closed]:
        yield from self.due(event.time)
        self._events.append(event)
        if self._close is None:
            self._close = self._first_after(event.time)

    def _first_after(self, time: int) -> int:
        """The first close after a time."""
        extent = self._extent
        number = (time - extent.origin_ms) // extent.slide_ms + 1
        return extent.origin_ms + number * extent.slide_ms

    def due(self, until: int) -> Iterator[Closed]:
        extent = self._extent
        while self._close is not None and self._close <= until:
            close = self._close
            self._drop(close - extent.range_ms)
            if self._events or not self._was_empty:
                yield Closed(close, -1, close - extent.range_ms, tuple(self._events))
            self._was_empty = not self._events
            self._close = None if self._was_empty else close + extent.slide_ms

    def _drop(self, before: int) -> None:
        """Forget the events before a time."""
        self._events = self._events[bisect_left(self._events, before, key=_time) :]


class EachEventRun(Stateful):
    """A window for each event, which is its last."""

    STATE = ("_events", "_last", "_count")

    def __init__(self, extent: EachEventExtent) -> None:
        self._extent = extent
        self._events: list[ContentEvent] = []
        self._last, self._count = -EVER, 0  # the time of the last event, and how many have it

    @property
    def next_due(self) -> int | None:
        return None

    @property
    def is_idle(self) -> bool:
        return not self._events

    def add(self, event: ContentEvent) -> Iterator[Closed]:
        self._count = self._count + 1 if event.time == self._last else 0
        self._last = event.time
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


class SessionRun(Stateful):
    """Events that are less than the gap apart."""

    STATE = ("_events",)

    def __init__(self, extent: SessionExtent) -> None:
        self._gap = extent.gap_ms
        self._events: list[ContentEvent] = []

    @property
    def next_due(self) -> int | None:
        return self._events[-1].time + self._gap if self._events else None

    @property
    def is_idle(self) -> bool:
        return not self._events

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
