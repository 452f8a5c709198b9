"""The wall clock of a live run. Arrivals in a stream never go back, even if the clock does."""

from __future__ import annotations

import time
from collections.abc import Callable


class RunClock:
    """Tells times of arrival, in ms since the epoch.

    Args:
        wall: seconds since the epoch.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._greatest: dict[str, int] = {}  # by stream

    def saw(self, iri: str, time_ms: int | None) -> None:
        """Take note of a time that the clock showed when a stream's log was written."""
        if time_ms is not None:
            self._greatest[iri] = max(time_ms, self._greatest.get(iri, time_ms))

    def wall(self) -> int:
        """What the clock shows."""
        return int(self._wall() * 1000)

    def arrival(self, iri: str) -> int:
        """The time of what arrives in a stream now: it stands still until the clock catches up."""
        now = max(self.wall(), self._greatest.get(iri, 0))
        self._greatest[iri] = now
        return now

    def problem(self) -> str:
        """That the clock has gone back; "" if it has not."""
        behind = max([*self._greatest.values()], default=0) - self.wall()
        if behind <= 0:
            return ""
        return (
            f"the clock has gone back by {behind / 1000:.1f} s: arrivals and heartbeats stand "
            "still until it has caught up"
        )
