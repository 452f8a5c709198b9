"""Which streams are idle: they no longer hold the others back.

That depends on the wall clock, so each decision goes into the log of its stream before it counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from spaseq.runtime.arrivals.stream_clock import StreamClock, raise_idle

Place = tuple[str, int]
"""A stream's IRI and the number of one of its partitions."""


class IdleStreams:
    """Notes when partitions were heard, and decides which watermarks rise.

    Args:
        idle_ms: a partition without a message for so long is idle; None if none ever is.
        now: seconds, of a clock that never goes back.
    """

    def __init__(self, idle_ms: int | None, now: Callable[[], float] = time.monotonic) -> None:
        self._idle_s = None if idle_ms is None else idle_ms / 1000
        self._now, self._started = now, now()
        self._heard: dict[Place, float] = {}

    def hear(self, places: Iterable[Place]) -> None:
        """Take note that these partitions have brought messages."""
        if self._idle_s is not None:
            self._heard.update(dict.fromkeys(places, self._now()))

    def risen(self, clocks: Mapping[Place, StreamClock]) -> dict[Place, int]:
        """The watermarks (ms) that must rise now; the clocks stay as they are."""
        if self._idle_s is None:
            return {}
        before = self._now() - self._idle_s
        idle = {place: self._heard.get(place, self._started) <= before for place in clocks}
        if not any(idle.values()):
            return {}
        copies = {place: replace(clock) for place, clock in clocks.items()}
        raise_idle((copies[place], idle[place]) for place in clocks)
        return {
            place: copy.floor
            for place, copy in copies.items()
            if copy.floor is not None and copy.floor != clocks[place].floor
        }
