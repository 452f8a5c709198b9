"""Heartbeats: how time passes in streams that bring nothing.

A heartbeat of a partition says that none of its events below a time follows. It depends on the wall
clock, so each goes into the log of its stream before it counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from spaseq.options import FileSourceSettings
from spaseq.runtime.arrivals.passing_time import PlaceTime, Watched, passed
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.live.live_stream import LiveStream
from spaseq.runtime.live.run_clock import RunClock

Place = tuple[str, int]
"""A stream's IRI and the number of one of its partitions."""


@dataclass(slots=True)
class _Beat:
    """The heartbeats of a stream: whether it takes its times from the clock, and the last slot."""

    settings: FileSourceSettings
    of_clock: bool
    slot: int = -1


class Heartbeats:
    """Notes when partitions were heard, and decides which heartbeats are due.

    Args:
        streams: all streams of the run.
        clock: of the run.
        now: seconds, of a clock that never goes back.
    """

    def __init__(
        self,
        streams: Sequence[LiveStream],
        clock: RunClock,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._now, self._started = clock, now, now()
        self._beats = {
            s.iri: _Beat(s.settings, s.takes_clock)
            for s in streams
            if s.settings.idle_ms is not None or s.takes_clock
        }
        self._heard: dict[Place, float] = {}
        self._moved = True

    def hear(self, places: Iterable[Place]) -> None:
        """Take note that these partitions have brought messages."""
        self._heard.update(dict.fromkeys(places, self._now()))

    def moved(self) -> None:
        """Take note that watermarks may have moved."""
        self._moved = True

    @property
    def may_be_due(self) -> bool:
        """Whether a heartbeat may be due; no time is needed to ask."""
        if self._moved and any(not beat.of_clock for beat in self._beats.values()):
            return True
        return any(self._slot(beat) > beat.slot for beat in self._beats.values())

    def seconds_left(self, most: float) -> float:
        """How long it takes until a heartbeat may be due, at most so long."""
        now = self._now()
        for beat in self._beats.values():
            length = beat.settings.heartbeat_ms / 1000
            most = min(most, (self._slot(beat) + 1) * length - now)
        return max(most, 0.001)

    def _slot(self, beat: _Beat) -> int:
        """Streams with equal intervals beat together."""
        return int(self._now() * 1000 // beat.settings.heartbeat_ms)

    def due(
        self,
        clocks: Mapping[Place, StreamClock],
        watched: Watched,
        is_caught_up: Callable[[str], bool],
    ) -> dict[Place, int]:
        """The heartbeats (ms) that are due; the clocks stay as they are."""
        self._moved = False
        ticking = set[str]()
        for iri, beat in self._beats.items():
            slot = self._slot(beat)
            if slot > beat.slot:
                beat.slot = slot
                ticking.add(iri)
        given = {
            p: self._place_time(p, clock, is_caught_up, ticking) for p, clock in clocks.items()
        }
        return passed(given, watched)

    def _place_time(
        self,
        place: Place,
        clock: StreamClock,
        is_caught_up: Callable[[str], bool],
        ticking: Set[str],
    ) -> PlaceTime:
        iri, beat = place[0], self._beats.get(place[0])
        if beat is None:
            return PlaceTime(clock.watermark)
        delay = beat.settings.delay_ms
        if beat.of_clock:
            reached = self._clock.arrival(iri) - delay if iri in ticking else None
            return PlaceTime(clock.watermark, reached)
        if not self._is_idle(place, beat) or not is_caught_up(iri):
            return PlaceTime(clock.watermark)
        reached = clock.after_silence(self._clock.wall()) if iri in ticking else None
        return PlaceTime(clock.watermark, reached, is_idle=True)

    def _is_idle(self, place: Place, beat: _Beat) -> bool:
        limit = beat.settings.idle_ms
        heard = self._heard.get(place, self._started)
        return limit is not None and (self._now() - heard) * 1000 >= limit
