"""The bounds of a partition's window, as instants.

Searches look for solutions between instants. So this module turns the measure of the window (times,
or numbers of events) into instants, once per instant. It keeps the instants of one window only if
the query counts events or instants: WITHIN n EVENTS and SELECT STRICT.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.window import Counted, Window

NEVER: Instant = (-(2**63), 0)
_LAST_K = 2**62


class WindowClock:
    """The instants of one partition, up to `now`.

    The first event of a match that ends now lies after `floor`. An event at or before `expired`
    belongs to no match that ends now or later, or that waits for the close of its window.
    """

    __slots__ = (
        "_instants",
        "_keeps",
        "_position",
        "_starts",
        "_window",
        "expired",
        "floor",
        "now",
    )

    def __init__(self, window: Window, keep_instants: bool) -> None:
        self._window = window
        self._keeps = keep_instants or isinstance(window, Counted)
        self._instants: list[Instant] = []
        self._starts: list[int] = []  # how many events come before each instant
        self._position = 0  # events so far
        self.now = self.floor = self.expired = NEVER

    def advance(self, instant: Instant, events: int) -> None:
        """Advance to an instant, which `events` events have."""
        self.now = instant
        if self._keeps:
            self._instants.append(instant)
            self._starts.append(self._position)
            self._position += events
        window = self._window
        if isinstance(window, Counted):
            first = bisect_left(self._starts, window.earliest(self._position))
            time, k = self._instants[first] if first < len(self._instants) else instant
            self.floor = self.expired = (time, k - 1)
            if first == len(self._instants):  # more events at this instant than the window holds
                self.floor = instant
        else:
            self.floor = (window.earliest(instant[0]) - 1, _LAST_K)
            self.expired = self.expired_at(instant)
        if self._keeps and len(self._instants) % 256 == 255:
            dead = bisect_left(self._instants, self.expired)
            del self._instants[:dead], self._starts[:dead]

    def expired_at(self, now: Instant) -> Instant:
        """What `expired` is if no event follows up to an instant."""
        if isinstance(self._window, Counted):
            return self.expired
        return now[0] - self._window.horizon - 1, _LAST_K

    def measure(self, instant: Instant) -> int:
        """The measure of an instant."""
        if isinstance(self._window, Counted):
            return self._starts[bisect_left(self._instants, instant)]
        return instant[0]

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """Whether instants follow each other without a gap in the partition."""
        mine = sorted(set(instants))
        start = bisect_left(self._instants, mine[0])
        return self._instants[start : start + len(mine)] == mine
