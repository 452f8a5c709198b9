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
        idle_ms: by stream IRI: a partition without a message for so long is idle; None if none
            ever is.
        now: seconds, of a clock that never goes back.
    """

    def __init__(
        self, idle_ms: Mapping[str, int | None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_s = {iri: ms / 1000 for iri, ms in idle_ms.items() if ms is not None}
        self._now, self._started = now, now()
        self._heard: dict[Place, float] = {}

    def hear(self, places: Iterable[Place]) -> None:
        """Take note that these partitions have brought messages."""
        if self._idle_s:
            self._heard.update(dict.fromkeys(places, self._now()))

    def risen(self, clocks: Mapping[Place, StreamClock]) -> dict[Place, int]:
        """The watermarks (ms) that must rise now; the clocks stay as they are."""
        if not self._idle_s:
            return {}
        idle = {place: self._is_idle(place) for place in clocks}
        if not any(idle.values()):
            return {}
        copies = {place: replace(clock) for place, clock in clocks.items()}
        raise_idle((copies[place], idle[place]) for place in clocks)
        return {
            place: copy.floor
            for place, copy in copies.items()
            if copy.floor is not None and copy.floor != clocks[place].floor
        }

    def _is_idle(self, place: Place) -> bool:
        limit = self._idle_s.get(place[0])
        heard = self._heard.get(place, self._started)
        return limit is not None and self._now() - heard >= limit
