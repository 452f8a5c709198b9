"""Plans the batches of topics: the offsets that a batch reads, and the streams' watermarks.

The tasks of a batch store the times of the events (`RangeEnds`). So the planner knows the watermark
of a stream, the least of its partitions, when it plans the next batch. It then also knows all
events before that watermark, and how many in each partition have the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

from spaseq.connectors.kafka import Extent, TopicAway
from spaseq.errors import RunError
from spaseq.options import FileSourceSettings
from spaseq.rdf.events.instants import TimeCounts
from spaseq.runtime.arrivals.passing_time import raise_silent
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.arrivals.topics.topic_batch import (
    PartitionRange,
    RangeEnds,
    TopicArrivals,
    TopicBatch,
    TopicSplit,
    earlier_ties,
)

FIRST_MESSAGE_BYTES = 1000
"""Assumed size of a message before any was read."""


class Topic(Protocol):
    """The part of a topic that the planner needs; see `TopicRanges`."""

    @property
    def starts_late(self) -> bool: ...

    def extents(self) -> list[Extent]: ...


@dataclass(slots=True)
class _ReadPartition:
    """The state of a partition after all ranges read so far.

    Attributes:
        end: the offset before which it was read.
        clock: of the partition.
        events: the times of its events that the stream's watermark has not passed.
    """

    end: int
    clock: StreamClock
    events: TimeCounts = field(default_factory=TimeCounts)

    def add(self, events: TimeCounts) -> None:
        """Count further events."""
        self.events = self.events.with_more(events.times, events.counts)


class TopicPlanner:
    """Plans the batches of all topics of a run.

    Args:
        topics: the topics, by stream number.
        names: of the topics, for messages.
        ends: the results that tasks store.
        settings: the rules of time.
        knowledge: the name of the knowledge base for new batches; "" if it never changes.
        wall: the clock, in seconds since the epoch.
    """

    def __init__(
        self,
        topics: Sequence[Topic],
        names: Sequence[str],
        ends: RangeEnds,
        settings: FileSourceSettings,
        knowledge: Callable[[], str] = str,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._topics, self._names, self._ends = topics, names, ends
        self._settings, self._knowledge, self._wall = settings, knowledge, wall
        self._started = int(wall() * 1000)
        self._away_until: dict[int, int] = {}  # when (ms) topics were away last, by number
        self._known: dict[tuple[int, int], _ReadPartition] = {}
        self._last: dict[tuple[int, int, int], float] = {}  # see `_last_time`
        self._sizes = [float(FIRST_MESSAGE_BYTES)] * len(topics)  # of messages, by topic
        self.has_backlog = False  # whether the batch planned last left messages that were there

    def start(self) -> TopicBatch:
        """Before the first batch."""
        return TopicBatch(0, self._started, tuple(TopicArrivals() for _ in self._topics))

    def extents(self) -> list[list[Extent] | None]:
        """The present end of each topic; None if its servers do not answer."""
        all_extents: list[list[Extent] | None] = []
        for topic in self._topics:
            try:
                all_extents.append(topic.extents())
            except TopicAway:
                all_extents.append(None)
        return all_extents

    def plan(
        self, before: TopicBatch, extents: Sequence[list[Extent] | None], max_bytes: float
    ) -> TopicBatch:
        """The batch after `before`, which has been run; `before` if there is nothing to do.

        Args:
            before: the last batch.
            extents: the present end of each topic.
            max_bytes: approximate maximum of the bytes of each topic in the batch.

        Raises:
            RunError: a topic has been recreated, or a file of a task is damaged.
        """
        at, self.has_backlog = int(self._wall() * 1000), False
        for number, topic in enumerate(before.topics):
            self._learn(number, topic)
        topics = [
            self._arrivals(number, before.topics[number], extents[number], (at, max_bytes))
            for number in range(len(self._topics))
        ]
        topics = self._without_idle(topics, at, before.at)
        planned = [self._marked(n, topic, before, at) for n, topic in enumerate(topics)]
        if not any(planned_one[1] for planned_one in planned):
            return before
        batch = TopicBatch(
            before.number + 1, at, tuple(topic for topic, _ in planned), self._knowledge()
        )
        if batch.knowledge:
            self._ends.note_knowledge(batch.number, batch.knowledge)
        return batch

    def splits(
        self, before: TopicBatch, batch: TopicBatch, first: int, knowledge: str
    ) -> list[TopicSplit]:
        """The splits of a batch: one for each partition with new messages.

        Args:
            before: the batch before.
            batch: the batch.
            first: the number of the first topic's stream.
            knowledge: the name of the knowledge base, unless the batch names another one.
        """
        splits: list[TopicSplit] = []
        for topic, arrivals in enumerate(batch.topics):
            earlier = before.topics[topic].partitions
            for partition, part in enumerate(arrivals.partitions):
                last = earlier[partition].end if partition < len(earlier) else part.begin
                if part.begin == part.end:
                    continue
                splits.append(
                    TopicSplit(
                        len(splits),
                        first + topic,
                        topic,
                        partition,
                        batch.at,
                        part.begin,
                        part.end,
                        self._clock(topic, partition, replace(part, end=last)),
                        arrivals.tells_time,
                        (last, part.begin) if last < part.begin else None,
                        self._settings.max_ahead_ms,
                        str(self._ends.directory),
                        batch.knowledge or knowledge,
                    )
                )
        return splits

    def forget(self, batch: TopicBatch) -> None:
        """Remove files that no batch needs once a batch is committed."""
        self._ends.forget_batches(batch.number)
        for (topic, partition), ends in self._ends.ends().items():
            arrivals = batch.topics[topic]
            if arrivals.mark is None or partition >= len(arrivals.partitions):
                continue
            begin = arrivals.partitions[partition].begin
            needed = max((end for end in ends if end <= begin), default=begin)
            for end in ends:
                if end < needed and self._last_time(topic, partition, end) < arrivals.mark:
                    self._ends.forget(topic, partition, end)
                    del self._last[topic, partition, end]

    def _last_time(self, topic: int, partition: int, end: int) -> float:
        """The last time (ms) of the events of a range."""
        range_end = topic, partition, end
        if range_end not in self._last:
            times = self._ends.load(*range_end).events.times
            self._last[range_end] = float(times[-1]) if len(times) else float("-inf")
        return self._last[range_end]

    # --- partitions -------------------------------------------------------------------------------

    def _learn(self, topic: int, arrivals: TopicArrivals) -> None:
        """Bring `_known` to the state after a batch."""
        there: dict[tuple[int, int], list[int]] | None = None
        for partition, part in enumerate(arrivals.partitions):
            known = self._known.get((topic, partition))
            if known is None:
                there = self._ends.ends() if there is None else there
                earlier = [e for e in there.get((topic, partition), ()) if e <= part.end]
                known = _ReadPartition(part.end, self._clock(topic, partition, part))
                for end in earlier:
                    known.add(self._ends.load(topic, partition, end).events)
                self._known[topic, partition] = known
            elif known.end != part.end:
                loaded = self._ends.load(topic, partition, part.end)
                self._sizes[topic] = max(loaded.size / (part.end - part.begin), 1.0)
                known.end, known.clock = part.end, loaded.clock
                known.add(loaded.events)
            if part.floor is not None:
                known.clock.raise_to(part.floor)
            if arrivals.mark is not None:
                known.events = known.events.since(arrivals.mark)

    def _clock(self, topic: int, partition: int, part: PartitionRange) -> StreamClock:
        """The clock of a partition after a range."""
        clock = StreamClock(self._settings.delay_ms)
        if part.end != part.origin:
            clock = self._ends.load(topic, partition, part.end).clock
        if part.floor is not None:
            clock.raise_to(part.floor)
        return clock

    # --- a batch ----------------------------------------------------------------------------------

    def _arrivals(
        self,
        number: int,
        before: TopicArrivals,
        extents: Sequence[Extent] | None,
        limits: tuple[int, float],
    ) -> TopicArrivals:
        """The part of a topic that a batch reads; `limits` are the time of planning and the maximum
        bytes.
        """
        at, max_bytes = limits
        parts = [replace(part, begin=part.end) for part in before.partitions]
        if extents is None:
            self._away_until[number] = at
            return replace(before, partitions=tuple(parts), ties="")
        if len(extents) < len(parts):
            raise self._anew(number)
        mark = self._watermark(number, len(parts))
        for new in extents[len(parts) :]:
            is_late = not before.partitions and self._topics[number].starts_late
            origin = new.high if is_late else new.low
            parts.append(PartitionRange(origin, origin, origin, at, mark))
        if any(part.end > extent.high for part, extent in zip(parts, extents, strict=True)):
            raise self._anew(number)
        begins = [max(part.end, extent.low) for part, extent in zip(parts, extents, strict=True)]
        waits = [extent.high - begin for begin, extent in zip(begins, extents, strict=True)]
        share = max_bytes / self._sizes[number] / max(sum(waits), 1)
        for n, (begin, wait) in enumerate(zip(begins, waits, strict=True)):
            taken = wait if share >= 1 else min(wait, max(int(wait * share), 1))
            self.has_backlog = self.has_backlog or taken < wait
            if taken:
                parts[n] = replace(parts[n], begin=begin, end=begin + taken, since=at)
        return replace(before, partitions=tuple(parts), ties="")

    def _anew(self, number: int) -> RunError:
        return RunError(
            f"{self._names[number]}: a partition ends before a message that has been read: the "
            "topic has been recreated. Begin with an empty checkpoint"
        )

    def _watermark(self, topic: int, count: int) -> int | None:
        """The watermark (ms) of a stream of which `count` partitions are known."""
        marks = [self._known[topic, partition].clock.watermark for partition in range(count)]
        known = [mark for mark in marks if mark is not None]
        return min(known) if known and len(known) == count else None

    def _without_idle(
        self, topics: Sequence[TopicArrivals], at: int, before: int
    ) -> list[TopicArrivals]:
        """The arrivals, with raised watermarks of idle partitions."""
        idle_ms = self._settings.idle_ms
        clocks = [
            [self._stands(n, p, part) for p, part in enumerate(topic.partitions)]
            for n, topic in enumerate(topics)
        ]
        if idle_ms is not None:
            since = [
                max(part.since, self._away_until.get(n, part.since))  # what was kept may come
                for n, topic in enumerate(topics)
                for part in topic.partitions
            ]
            pairs = zip(chain.from_iterable(clocks), since, strict=True)
            given = [(clock, at - heard >= idle_ms) for clock, heard in pairs]
            raise_silent(given, at, before, self._settings)
        return [
            replace(
                topic,
                partitions=tuple(
                    replace(part, floor=clock.floor)
                    for part, clock in zip(topic.partitions, own_clocks, strict=True)
                ),
            )
            for topic, own_clocks in zip(topics, clocks, strict=True)
        ]

    def _stands(self, topic: int, partition: int, part: PartitionRange) -> StreamClock:
        """A copy of the clock of a partition, which may be new."""
        known = self._known.get((topic, partition))
        if known is not None:
            return replace(known.clock)
        clock = StreamClock(self._settings.delay_ms)
        if part.floor is not None:
            clock.raise_to(part.floor)
        return clock

    def _marked(
        self, number: int, topic: TopicArrivals, before: TopicBatch, at: int
    ) -> tuple[TopicArrivals, bool]:
        """The arrivals with their watermark and ties, and whether they are worth a batch."""
        parts = topic.partitions
        clocks = [self._stands(number, p, part) for p, part in enumerate(parts)]
        for clock, part in zip(clocks, parts, strict=True):
            if part.floor is not None:
                clock.raise_to(part.floor)
        marks = [clock.watermark for clock in clocks]
        known = [mark for mark in marks if mark is not None]
        mark = min(known) if known and len(known) == len(marks) else None
        last = before.topics[number].mark
        if mark is None or (last is not None and mark < last):
            mark = last
        ties = ""
        if mark is not None and mark != last and len(parts) > 1:
            given = [self._events(number, p).before(mark) for p in range(len(parts))]
            earlier = earlier_ties(given)
            if earlier:
                ties = self._ends.store_ties(number, before.number + 1, earlier)
        has_new = any(part.begin < part.end for part in parts)
        has_new = has_new or len(parts) > len(before.topics[number].partitions)
        was_sent = len(parts) == 1 and parts[0].floor == _floor(before, number)
        return replace(topic, mark=mark, ties=ties), has_new or (mark != last and not was_sent)

    def _events(self, topic: int, partition: int) -> TimeCounts:
        known = self._known.get((topic, partition))
        return TimeCounts() if known is None else known.events


def _floor(before: TopicBatch, number: int) -> int | None:
    """The floor of the first partition of a topic in a batch."""
    parts = before.topics[number].partitions
    return parts[0].floor if parts else None
