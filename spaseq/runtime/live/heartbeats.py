"""The wall clock of a live run, and heartbeats, which advance the time of silent streams.

A heartbeat of a partition says that none of its events below a time follows. It comes from the wall
clock, a request or a message, and is logged in its stream before it counts. Arrivals in a stream
never go back, even if the clock does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from spaseq.connectors.base import heartbeat_time
from spaseq.errors import UsageError
from spaseq.logs.messages import MessageColumns
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.terms.times import duration_text, format_time
from spaseq.runtime.arrivals.passing_time import PlaceTime, Watched, passed
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.stream_events import name_of

Place = tuple[str, int]
"""A stream's IRI and the number of a partition."""


class RunClock:
    """Gives times of arrival, in ms since the epoch.

    Args:
        wall: the clock, in seconds since the epoch.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._greatest: dict[str, int] = {}  # by stream

    def saw(self, iri: str, time_ms: int | None) -> None:
        """Record the clock's time at the last write of a stream's log."""
        if time_ms is not None:
            self._greatest[iri] = max(time_ms, self._greatest.get(iri, time_ms))

    def wall(self) -> int:
        """The time of the clock."""
        return int(self._wall() * 1000)

    def arrival(self, iri: str) -> int:
        """The time of arrival in a stream now: it stands still until the clock catches up."""
        now = max(self.wall(), self._greatest.get(iri, 0))
        self._greatest[iri] = now
        return now

    def problem(self) -> str:
        """A message if the clock has gone back; "" if it has not."""
        behind = max([*self._greatest.values()], default=0) - self.wall()
        if behind <= 0:
            return ""
        return (
            f"the clock has gone back by {behind / 1000:.1f} s: arrivals and heartbeats stand "
            "still until it has caught up"
        )


@dataclass(slots=True)
class _Beat:
    """The heartbeats of a stream: whether it takes its times from the clock, and the last slot."""

    settings: FileSourceSettings
    of_clock: bool
    slot: int = -1


class Heartbeats:
    """Records messages of partitions, and decides which heartbeats are due.

    Args:
        streams: all streams of the run.
        clock: of the run.
        now: seconds, of a monotonic clock.
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
        """Record that these partitions have brought messages."""
        self._heard.update(dict.fromkeys(places, self._now()))

    def moved(self) -> None:
        """Record that watermarks may have moved."""
        self._moved = True

    @property
    def may_be_due(self) -> bool:
        """Whether a heartbeat may be due; a cheap test."""
        if self._moved and any(not beat.of_clock for beat in self._beats.values()):
            return True
        return any(self._slot(beat) > beat.slot for beat in self._beats.values())

    def seconds_left(self, most: float) -> float:
        """Seconds until a heartbeat may be due, at most the given number."""
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
        reads_since: Callable[[str], float | None],
    ) -> dict[Place, int]:
        """The heartbeats (ms) that are due; the clocks stay as they are.

        Args:
            clocks: of all partitions.
            watched: queries that wait for time.
            reads_since: since when (s, as `now`) the source of a stream is there; None if it is
                not, or something of it is not evaluated yet.
        """
        self._moved = False
        ticking = set[str]()
        for iri, beat in self._beats.items():
            slot = self._slot(beat)
            if slot > beat.slot:
                beat.slot = slot
                ticking.add(iri)
        given = {p: self._place_time(p, clock, reads_since, ticking) for p, clock in clocks.items()}
        return passed(given, watched)

    def _place_time(
        self,
        place: Place,
        clock: StreamClock,
        reads_since: Callable[[str], float | None],
        ticking: Set[str],
    ) -> PlaceTime:
        iri, beat = place[0], self._beats.get(place[0])
        if beat is None:
            return PlaceTime(clock.watermark)
        delay = beat.settings.delay_ms
        if beat.of_clock:
            reached = self._clock.arrival(iri) - delay if iri in ticking else None
            return PlaceTime(clock.watermark, reached)
        if not self._is_idle(place, beat, reads_since(iri)):
            return PlaceTime(clock.watermark)
        reached = clock.after_silence(self._clock.wall()) if iri in ticking else None
        return PlaceTime(clock.watermark, reached, is_idle=True)

    def _is_idle(self, place: Place, beat: _Beat, since: float | None) -> bool:
        """Whether a source was there all the time and brought nothing.

        Messages that waited while it was away have as long to arrive.
        """
        limit = beat.settings.idle_ms
        if limit is None or since is None:
            return False
        silent = self._now() - max(since, self._heard.get(place, self._started))
        return silent * 1000 >= limit


class HeartbeatTooFar(UsageError):
    """A heartbeat is too far ahead of the clock."""


def check_heartbeat(stream: LiveStream, time: int, now: int, watermark: int | None) -> None:
    """Check that no event of a stream at or before a time (ms) may follow.

    Args:
        stream: the stream.
        time: of the heartbeat.
        now: the time of the clock, or of the heartbeat's arrival, ms.
        watermark: of the stream or the partition, ms.

    Raises:
        HeartbeatTooFar: it is more than `max_ahead` after the clock.
        UsageError: it is behind the watermark, or the stream's times are the clock's.
    """
    if stream.takes_clock:
        raise UsageError(
            f"stream {stream.name} takes its times from the clock, so it has heartbeats by itself"
        )
    ahead = stream.settings.max_ahead_ms
    if time - now > ahead:
        raise HeartbeatTooFar(
            f"the heartbeat {format_time(time)} is more than {duration_text(ahead)} after the "
            f"clock, which shows {format_time(now)} (max_ahead)"
        )
    if watermark is not None and time < watermark:
        raise UsageError(
            f"the heartbeat {format_time(time)} is behind the watermark {format_time(watermark)} "
            f"of stream {stream.name}: time has come further already"
        )


def take_heartbeats(
    stream: LiveStream, messages: MessageColumns, clock: StreamClock, on_bad: OnBad
) -> None:
    """Take heartbeat messages of one partition; drop those without effect."""
    for message in messages:
        time, watermark = heartbeat_time(message.media_type), clock.watermark
        if time is not None and watermark is not None and time < watermark:
            continue
        try:
            if time is None:
                raise UsageError("the time of a heartbeat is no xsd:dateTime, nor milliseconds")
            check_heartbeat(stream, time, message.arrival, watermark)
        except UsageError as error:
            on_bad(BadInput(name_of(stream.source.describe(), [message]), None, str(error)))
        else:
            clock.raise_to(time + 1)


def is_below(watermark: int | None, time: int) -> bool:
    """Whether a heartbeat at a time (ms) moves a watermark."""
    return watermark is None or watermark <= time
