"""The clock of a followed stream: its watermark, its late events, its instants.

An event is late if its time is behind the greatest earlier time of its stream by more than the
delay. That depends only on the order of the events, not on the borders of batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import TimeCounts, rank
from spaseq.rdf.terms.times import UNTIMED
from spaseq.records import record
from spaseq.runtime.job.job import LateEvent

_MOST = 2**63 - 1


@record
class Horizon:
    """The horizon of a stream in a batch.

    An event is beyond it if it is later than `start` and than every earlier event of its stream, by
    more than `ahead_ms`.

    Attributes:
        start: the greatest of the time of arrival and the times of the other streams, in ms.
        ahead_ms: maximum lead of an event over `start`.
    """

    start: int
    ahead_ms: int

    def admits(self, latest: int | None, times: Int64s) -> Bools:
        """Whether each event is before the horizon (bool[n]).

        Args:
            latest: the greatest time of the stream before these events, in ms.
            times: the events' times, in order of arrival (ms, int64[n]).
        """
        reached = self.start if latest is None else max(self.start, latest)
        earlier = np.maximum.accumulate(np.concatenate([[reached], times]))[:-1]
        most = min(self.ahead_ms, _MOST)
        admitted: Bools = times - earlier <= most
        if admitted.all():  # the usual case
            return admitted
        first = int(np.argmin(admitted))
        reached = int(earlier[first])
        for i, time in enumerate(times[first:].tolist(), first):
            admitted[i] = time - reached <= most
            if admitted[i]:
                reached = max(reached, time)
        return admitted

    def reached(self, latest: int | None, times: Int64s) -> int | None:
        """The greatest time of the stream after these events; arguments as for `admits`."""
        admitted = times[self.admits(latest, times)]
        greatest = int(admitted.max()) if len(admitted) else None
        return max((t for t in (latest, greatest) if t is not None), default=None)

    def as_json(self) -> list[int]:
        """The horizon as JSON values; `of_json` is the inverse."""
        return [self.start, self.ahead_ms]

    @classmethod
    def of_json(cls, value: Sequence[int]) -> Horizon:
        """The inverse of `as_json`."""
        start, ahead_ms = value
        return cls(start, ahead_ms)


def event_horizon(latest: int | None, arrival: int, times: Int64s, ahead_ms: int) -> Horizon:
    """The horizon of events that came together; the first event of a stream starts its clock.

    Args:
        latest: the greatest time of the stream before, ms; None before its first event.
        arrival: time of arrival, ms.
        times: times in the input (ms, int64[n]), `UNTIMED` for events without one.
        ahead_ms: maximum lead of an event.
    """
    if latest is None and len(times) and times[0] != UNTIMED:
        latest = int(times[0])
    return Horizon(arrival if latest is None else max(arrival, latest), ahead_ms)


def horizons(
    at: int, clocks: Sequence[int | None], times: Sequence[Int64s], ahead_ms: int
) -> list[Horizon]:
    """The horizon of each stream in a batch that arrives at `at` (ms).

    Before the first event of all streams no clock runs, so the earliest first event of a stream
    starts it: simulated streams may lie in the future.

    Args:
        at: the time of arrival.
        clocks: the greatest time of each stream before the batch; None before its first event.
        times: the times of each stream's events in the batch, in order (ms, int64[n]).
        ahead_ms: maximum lead of an event.
    """
    first = [int(some[0]) for some in times if len(some)]
    if first and all(latest is None for latest in clocks):
        at = max(at, min(first))
    reached = list(clocks)
    current = _of_streams(at, reached, ahead_ms)
    for _ in times:  # an active stream takes the others along
        pairs = zip(clocks, times, strict=True)
        reached = [h.reached(*pair) for h, pair in zip(current, pairs, strict=True)]
        further = _of_streams(at, reached, ahead_ms)
        if further == current:
            break
        current = further
    return current


def _of_streams(at: int, reached: Sequence[int | None], ahead_ms: int) -> list[Horizon]:
    """The horizon of each stream, given how far all have come."""
    others = [
        [t for t in (*reached[:i], *reached[i + 1 :]) if t is not None] for i in range(len(reached))
    ]
    return [Horizon(max([at, *some]), ahead_ms) for some in others]


FAR = Horizon(_MOST // 2, _MOST)
"""A horizon after all events; the logs of earlier versions have no other."""


_BEFORE_ALL = -(2**62)  # before every time, and far enough from the least int64 to subtract from


@dataclass(slots=True)
class StreamClock:
    """The time of a stream.

    Attributes:
        delay_ms: maximum delay of an event.
        latest: the greatest time so far, ms.
        counts: number of events of each time that the watermark has not passed.
        floor: the time (ms) to which heartbeats have raised the watermark.
        reached_at: arrival of the event with the greatest time, ms; None if unknown.
    """

    delay_ms: int
    latest: int | None = None
    counts: TimeCounts = field(default_factory=TimeCounts)
    floor: int | None = None
    reached_at: int | None = None

    @property
    def least(self) -> int | None:
        """The greatest known time (ms): of an event, or of a heartbeat."""
        return max((t for t in (self.latest, self.floor) if t is not None), default=None)

    @property
    def watermark(self) -> int | None:
        """The time (ms) before which every further event is late; None before the first event."""
        by_latest = None if self.latest is None else self.latest - self.delay_ms
        return max((t for t in (by_latest, self.floor) if t is not None), default=None)

    def after_silence(self, now: int) -> int | None:
        """The watermark (ms) if the stream's time has advanced with the clock, which shows `now`.

        None if the arrival of the greatest time is unknown.
        """
        if self.latest is None or self.reached_at is None:
            return None
        return self.latest + (now - self.reached_at) - self.delay_ms

    def raise_to(self, time: int) -> None:
        """Raise the watermark to a time (ms)."""
        self.floor = time if self.floor is None else max(self.floor, time)
        self._forget()

    def before(self, times: Int64s) -> StreamClock:
        """This clock, with the counts of these times (ms) only: enough to judge them."""
        return replace(self, counts=self.counts.among(np.unique(times)))

    def pass_over(self, times: Int64s, arrival: int | None = None) -> int:
        """Advance the clock as if it had judged events with these times (ms).

        Returns:
            The number of them in time.
        """
        if not len(times):
            return 0
        in_time = times[times >= self._limits(times, arrival)]
        self._add(*np.unique(in_time, return_counts=True))
        return len(in_time)

    def judge(self, batch: EventBatch, arrival: int | None = None) -> tuple[EventBatch, Int64s]:
        """Number the events of a batch that came at `arrival` (ms), and find the late ones.

        Returns:
            The batch, k = -1 for late events, and the lateness of each event (ms, int64[n], 0 if it
            is not late).
        """
        if not len(batch):
            return batch, np.empty(0, np.int64)
        limit = self._limits(batch.time, arrival)
        lateness = np.maximum(limit - batch.time, 0)
        k = np.full(len(batch), -1, np.int32)
        k[lateness == 0] = self._count(batch.time[lateness == 0])
        return batch.with_k(k), lateness

    def count_late(self, times: Int64s, arrival: int | None = None) -> int:
        """Advance the clock by events with these times (ms), uncounted; return the number of late
        ones.
        """
        return int(np.count_nonzero(times < self._limits(times, arrival)))

    def admit(
        self, batch: EventBatch, arrival: int | None = None
    ) -> tuple[EventBatch, list[LateEvent]]:
        """The events in time, numbered, and the late ones."""
        judged, lateness = self.judge(batch, arrival)
        late = late_events(batch, lateness)
        return (judged.take(np.flatnonzero(lateness == 0)) if late else judged), late

    def _limits(self, times: Int64s, arrival: int | None) -> Int64s:
        """The least time (ms, int64[n]) at which an event at each position is not late.

        The clock's greatest time is updated by all of them.
        """
        latest = _BEFORE_ALL if self.latest is None else self.latest
        greatest = np.maximum.accumulate(np.concatenate([[latest], times]))
        limit = greatest[:-1] - self.delay_ms
        if self.floor is not None:
            limit = np.maximum(limit, self.floor)
        if greatest[-1] > latest:
            self.reached_at = arrival
        self.latest = int(greatest[-1])
        return limit

    def _count(self, times: Int64s) -> Int32s:
        """k of each event; the events are counted."""
        if (times[1:] > times[:-1]).all():  # the usual case
            k = self.counts.of(times)
            self._add(times, np.ones(len(times), np.int64))
            return k.astype(np.int32)
        distinct, inverse, sizes = np.unique(times, return_inverse=True, return_counts=True)
        k = self.counts.of(distinct)[inverse] + rank(times, inverse, sizes)
        self._add(distinct, sizes)
        return k.astype(np.int32)

    def _add(self, distinct: Int64s, sizes: Int64s) -> None:
        """Count events at these times; forget times that the watermark has passed."""
        kept = distinct >= self._forget()
        self.counts = self.counts.with_more(distinct[kept], sizes[kept])

    def _forget(self) -> int:
        """Drop the counts of times behind the watermark; return the watermark."""
        watermark = self.watermark
        assert watermark is not None
        self.counts = self.counts.since(watermark)
        return watermark

    def as_json(self) -> list[Any]:
        """The clock as JSON values; `of_json` is the inverse."""
        known = [self.delay_ms, self.latest, self.floor, self.counts.pairs]
        return known if self.reached_at is None else [*known, self.reached_at]

    @classmethod
    def of_json(cls, value: list[Any]) -> StreamClock:
        """The inverse of `as_json`."""
        delay_ms, latest, floor, counts, *reached = value  # earlier versions end there
        return cls(delay_ms, latest, TimeCounts.of_pairs(counts), floor, *reached)


def late_events(batch: EventBatch, lateness: Int64s) -> list[LateEvent]:
    """The late events of a batch; `lateness` (ms, int64[n]) is 0 for the others."""
    behind = np.flatnonzero(lateness)
    names, times = batch.names(behind).texts(), batch.time[behind].tolist()
    return [
        LateEvent(batch.stream, name, time, by)
        for name, time, by in zip(names, times, lateness[behind].tolist(), strict=True)
    ]
