"""The clock of a stream with partitions: each has its clock, and the stream waits for all of them.

An event is late if it is behind its own partition's watermark. The stream's watermark is the least
one of its partitions. Events of equal time are numbered in the order of the log.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.runtime.arrivals.stream_clock import StreamClock, late_events
from spaseq.runtime.job.job import LateEvent

_NO_EVENT_IS_LATE = 2**61
"""A delay (ms) for a clock that only numbers events."""


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
        """Take note that there are `count` partitions. The watermark never goes back."""
        if len(self._clocks) == 1 < count:
            only = self._clocks[0]
            self._numbers.latest, self._numbers.counts = only.latest, only.counts
        mark = self.watermark
        while len(self._clocks) < count:
            self._clocks.append(StreamClock(self._delay_ms))
            if mark is not None:
                self._clocks[-1].raise_to(mark)

    def use_delay(self, delay_ms: int) -> None:
        """Judge by another delay from now on. The watermark does not go back."""
        if delay_ms == self._delay_ms:
            return
        self._delay_ms = delay_ms
        for clock in self._clocks:
            mark = clock.watermark
            clock.delay_ms = delay_ms
            if mark is not None:
                clock.raise_to(mark)

    def admit(
        self, partition: int, batch: EventBatch, arrival: int | None = None
    ) -> tuple[EventBatch, list[LateEvent]]:
        """The events of a partition that are in time, numbered, and the late ones.

        They came at `arrival` (ms).
        """
        own = self.of_partition(partition)
        if len(self._clocks) == 1:
            return own.admit(batch, arrival)
        lateness = own.judge(batch, arrival)[1]
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
        found = cls(delay_ms)
        found._numbers = StreamClock.of_json(numbers)
        found._clocks = [StreamClock.of_json(clock) for clock in clocks]
        return found
