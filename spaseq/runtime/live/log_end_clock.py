"""Counts the late events of a request before they are in the log.

The engine judges events when it reads them from the log. A request is answered before that, so a
copy of its stream's clock stands at the end of the log and judges by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.runtime.arrivals.horizon import event_horizon
from spaseq.runtime.arrivals.time_counts import TimeCounts
from spaseq.runtime.live.arrival_times import arrival_times
from spaseq.runtime.live.live_stream import LiveStream
from spaseq.runtime.live.partition_clocks import PartitionClocks
from spaseq.runtime.live.seen_graphs import SeenGraphs

Marks = tuple[tuple[str, str], ...]


def _no_times() -> Int64s:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class GivenEvents:
    """The events of messages that somebody hands in.

    Attributes:
        times: as they were read (ms, int64[n]), `UNTIMED` for events without one.
        names: of their graphs, for a stream that drops duplicates; else empty.
        marks: the marks that go into the log with them, by how many are late.
    """

    times: Int64s = field(default_factory=_no_times)
    names: Sequence[str | None] = ()
    marks: Callable[[int], Marks] = lambda late: ()


class LogEndClock:
    """The clock of a stream without a source, and the graphs it has seen, at the end of its log.

    Args:
        stream: the stream. What is handed in goes to its partition 0.
        clocks: what `PartitionClocks.as_json` gives when all that is logged is read.
        events: what `StreamEvents.as_json` gives then.
    """

    def __init__(self, stream: LiveStream, clocks: list[Any], events: list[Any]) -> None:
        own, *others = PartitionClocks.of_json(clocks).partitions
        self._clock = self._pending = replace(own, counts=TimeCounts())
        self._others = max((c.latest for c in others if c.latest is not None), default=None)
        self._ahead_ms = stream.settings.max_ahead_ms
        self._seen: SeenGraphs | None = None
        self._new: set[str] = set()  # graphs of events that no commit has taken
        window_ms = stream.source.options.messages.dedup_ms
        if window_ms is not None:
            self._seen = SeenGraphs(window_ms)
            if events[1] is not None:
                self._seen.restore(events[1])

    def late(self, given: Sequence[GivenEvents], arrival: int) -> list[int]:
        """How many events of each request are late, if all are logged at `arrival` (ms).

        They count for later calls once `committed` was called.
        """
        self._pending, self._new = replace(self._clock), set()
        if self._seen is not None:
            self._seen.advance(arrival)
        return [self._late(self._times(some), arrival) for some in given]

    def committed(self) -> None:
        """Take note that the events of the last call of `late` are in the log."""
        self._clock = self._pending
        if self._seen is not None:
            self._seen.see(self._new)

    def raise_to(self, time: int) -> None:
        """Take note of a heartbeat (ms) in the log."""
        self._clock.raise_to(time)

    def _times(self, given: GivenEvents) -> Int64s:
        """The times of the events that are no duplicates."""
        if self._seen is None:
            return given.times
        kept = list[int]()
        for at, name in enumerate(given.names):
            if name is None or not (name in self._new or self._seen.has(name)):
                kept.append(at)
                self._new.update(() if name is None else (name,))
        return given.times[kept]

    def _late(self, times: Int64s, arrival: int) -> int:
        if not len(times):
            return 0
        clock = self._pending
        latest = _greatest(clock.latest, self._others)
        horizon = event_horizon(latest, arrival, times, self._ahead_ms)
        least = _greatest(latest, clock.floor)
        times = arrival_times(times, arrival, least, horizon, clock.latest)
        return clock.count_late(times[horizon.admits(clock.latest, times)], arrival)


def _greatest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)


def clock_at_end(
    streams: Sequence[LiveStream], engine_streams: list[Any]
) -> dict[str, LogEndClock]:
    """The clocks of the streams without a source, by IRI, when all that is logged is read.

    `engine_streams` is what `LiveEngine.streams_as_json` gives then.
    """
    clocks, events = map(dict, engine_streams)
    return {
        stream.iri: LogEndClock(stream, clocks[stream.iri], events[stream.iri])
        for stream in streams
        if stream.source.connector() is None
    }
