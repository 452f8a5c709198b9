"""The clocks of a stream of a live run: one for each partition, and one at the end of its log.

Each partition has its clock, and the stream waits for all of them: an event is late if it is behind
its own partition's watermark, and the stream's watermark is the least one. Events of equal time are
numbered in the order of the log. The engine judges events when it reads them from the log. A
request is answered before that, so a copy of its stream's clock stands at the end of the log and
judges by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from spaseq.algebra.answers import TraceItem
from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import TimeCounts
from spaseq.runtime.arrivals.stream_clock import StreamClock, event_horizon, late_events
from spaseq.runtime.job.job import LateEvent
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.stream_events import SeenGraphs, arrival_times

_NO_EVENT_IS_LATE = 2**61
"""A delay (ms) for a clock that only numbers events."""

_BEFORE_ALL = -(2**62)
"""Before all times (ms)."""


class PartitionClocks:
    """The clocks of a stream's partitions, which are numbered from 0; there is at least one."""

    def __init__(self, delay_ms: int) -> None:
        self._delay_ms = delay_ms
        self._clocks = [StreamClock(delay_ms)]
        self._numbers = StreamClock(_NO_EVENT_IS_LATE)  # used if there are several

    @property
    def watermark(self) -> int | None:
        """The time (ms) before which every further event is late; None if a partition is silent."""
        marks = [clock.watermark for clock in self._clocks]
        known = [mark for mark in marks if mark is not None]
        return min(known) if len(known) == len(marks) else None

    @property
    def latest(self) -> int | None:
        """The greatest time (ms) of all events so far."""
        return max((c.latest for c in self._clocks if c.latest is not None), default=None)

    def least(self, partition: int) -> int | None:
        """The greatest time (ms) of the stream's events, and of a partition's heartbeats."""
        known = (self.latest, self.of_partition(partition).floor)
        return max((time for time in known if time is not None), default=None)

    @property
    def partitions(self) -> list[StreamClock]:
        """The clock of each partition."""
        return list(self._clocks)

    def of_partition(self, partition: int) -> StreamClock:
        """The clock of a partition."""
        self.add(partition + 1)
        return self._clocks[partition]

    def add(self, count: int) -> None:
        """Record that there are `count` partitions. The watermark never goes back."""
        if len(self._clocks) == 1 < count:
            only = self._clocks[0]
            self._numbers.latest, self._numbers.counts = only.latest, only.counts
        mark = self.watermark
        while len(self._clocks) < count:
            self._clocks.append(StreamClock(self._delay_ms))
            if mark is not None:
                self._clocks[-1].raise_to(mark)

    def use_delay(self, delay_ms: int) -> None:
        """Use another delay from now on. The watermark does not go back."""
        if delay_ms == self._delay_ms:
            return
        self._delay_ms = delay_ms
        for clock in self._clocks:
            mark = clock.watermark
            clock.delay_ms = delay_ms
            if mark is not None:
                clock.raise_to(mark)

    def counted(self) -> tuple[int, list[tuple[int, int]]]:
        """The watermark (ms), before all times if there is none; and the number of the stream's
        events at each time from it on.
        """
        numbers = self._clocks[0] if len(self._clocks) == 1 else self._numbers
        mark = self.watermark
        return _BEFORE_ALL if mark is None else mark, numbers.counts.pairs

    def admit(
        self, partition: int, batch: EventBatch, arrival: int | None = None
    ) -> tuple[EventBatch, list[LateEvent]]:
        """The events of a partition that are in time, numbered, and the late ones.

        They came at `arrival` (ms).
        """
        clock = self.of_partition(partition)
        if len(self._clocks) == 1:
            return clock.admit(batch, arrival)
        lateness = clock.judge(batch, arrival)[1]
        late = late_events(batch, lateness)
        kept = batch.take(np.flatnonzero(lateness == 0)) if late else batch
        numbered, _ = self._numbers.judge(kept)
        mark = self.watermark
        if mark is not None:
            self._numbers.raise_to(mark)
        return numbered, late

    def as_json(self) -> list[Any]:
        """The clocks as JSON values; `of_json` is the inverse."""
        return [self._delay_ms, self._numbers.as_json(), [c.as_json() for c in self._clocks]]

    @classmethod
    def of_json(cls, value: list[Any]) -> PartitionClocks:
        """The inverse of `as_json`."""
        delay_ms, numbers, clocks = value
        clocks_read = cls(delay_ms)
        clocks_read._numbers = StreamClock.of_json(numbers)
        clocks_read._clocks = [StreamClock.of_json(clock) for clock in clocks]
        return clocks_read


Marks = tuple[tuple[str, str], ...]


def _no_times() -> Int64s:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class GivenEvents:
    """The events of messages in a request.

    Attributes:
        times: in the input (ms, int64[n]), `UNTIMED` for events without one.
        names: of their graphs, for a stream that drops duplicates; else empty.
        marks: the marks for the log, by the number of late events.
    """

    times: Int64s = field(default_factory=_no_times)
    names: Sequence[str | None] = ()
    marks: Callable[[int], Marks] = lambda late: ()


class LogEndClock:
    """The clock of a stream without a source, and the graphs it has seen, at the end of its log.

    Args:
        stream: the stream. Requests go to its partition 0.
        clocks: the result of `PartitionClocks.as_json` after all logged messages.
        events: the result of `StreamEvents.as_json` then.
        accepted: number of events of the stream then.

    Attributes:
        accepted: number of events that are in the log.
    """

    def __init__(
        self, stream: LiveStream, clocks: list[Any], events: list[Any], accepted: int
    ) -> None:
        self.accepted = self._pending_accepted = accepted
        first_clock, *others = PartitionClocks.of_json(clocks).partitions
        self._clock = self._pending = replace(first_clock, counts=TimeCounts())
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
        """The number of late events of each request, if all are logged at `arrival` (ms).

        They count for later calls after `committed` was called.
        """
        self._pending, self._new = replace(self._clock), set()
        self._pending_accepted = self.accepted
        if self._seen is not None:
            self._seen.advance(arrival)
        return [self._late(self._times(some), arrival) for some in given]

    def committed(self) -> None:
        """Record that the events of the last call of `late` are in the log."""
        self._clock, self.accepted = self._pending, self._pending_accepted
        if self._seen is not None:
            self._seen.see(self._new)

    def raise_to(self, time: int) -> None:
        """Record a logged heartbeat (ms)."""
        self._clock.raise_to(time)

    def _times(self, given: GivenEvents) -> Int64s:
        """The times of the events, without duplicates."""
        if self._seen is None:
            return given.times
        kept = list[int]()
        for at, name in enumerate(given.names):
            if name is None or not (name in self._new or self._seen.has(name)):
                kept.append(at)
                self._new.update(() if name is None else (name,))
        return given.times[kept]

    def _late(self, times: Int64s, arrival: int) -> int:
        self._pending_accepted += len(times)
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
    streams: Sequence[LiveStream], engine_streams: list[Any], accepted: Mapping[str, int]
) -> dict[str, LogEndClock]:
    """The clocks of the streams without a source, by IRI, after all logged messages.

    `engine_streams` is the result of `LiveEngine.streams_as_json` then, and `accepted` has the
    number of events of each stream.
    """
    clocks, events = map(dict, engine_streams)
    return {
        stream.iri: LogEndClock(
            stream, clocks[stream.iri], events[stream.iri], accepted[stream.iri]
        )
        for stream in streams
        if stream.source.connector() is None
    }


class _Before(NamedTuple):
    """The watermark (ms) of a stream, and the number of its events at each time from it on."""

    watermark: int
    counts: Mapping[int, int]


class LoggedBefore:
    """The events of the streams of a query that were logged before it was put.

    Events of one time are numbered in the order of the log, so their numbers say which came before.

    >>> clocks = PartitionClocks(0)
    >>> LoggedBefore.of({"http://e/s": clocks}).has([TraceItem(5, 0, "A", "http://e/s", None)])
    False
    """

    def __init__(self, streams: Mapping[str, _Before]) -> None:
        self._streams = streams

    @classmethod
    def of(cls, clocks: Mapping[str, PartitionClocks]) -> LoggedBefore:
        """The events before the present clocks of streams, by IRI."""
        counted = {iri: each.counted() for iri, each in clocks.items()}
        return cls({iri: _Before(mark, dict(counts)) for iri, (mark, counts) in counted.items()})

    def has(self, trace: Iterable[TraceItem]) -> bool:
        """Whether all events of a trace were logged before."""
        return all(map(self._has, trace))

    def _has(self, item: TraceItem) -> bool:
        before = self._streams.get(item.stream)
        if before is None:  # a window: it has closed if all streams have come so far
            return item.time < min(stream.watermark for stream in self._streams.values())
        return item.time < before.watermark or item.k < before.counts.get(item.time, 0)

    def as_json(self) -> list[Any]:
        """JSON values; `of_json` is the inverse."""
        streams = self._streams.items()
        return [[iri, seen.watermark, [*map(list, seen.counts.items())]] for iri, seen in streams]

    @classmethod
    def of_json(cls, value: list[Any]) -> LoggedBefore:
        """The inverse of `as_json`."""
        return cls({iri: _Before(mark, dict(counts)) for iri, mark, counts in value})
