"""The events of the messages that one task reads of a partition at Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spaseq.compiled.arrays import Int64s
from spaseq.connectors.kafka_ranges import TopicRanges
from spaseq.logs.messages import arrived_at
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.runtime.arrivals.arrived_splits import before_horizon
from spaseq.runtime.arrivals.horizon import Horizon
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.arrivals.time_counts import TimeCounts
from spaseq.runtime.arrivals.topics.range_ends import RangeEnd, RangeEnds
from spaseq.runtime.arrivals.topics.topic_batch import TopicSplit
from spaseq.runtime.live.stream_events import StreamEvents
from spaseq.sources.broker_stream import BrokerStream


class TopicEvents:
    """Reads a split. Events of equal time are numbered within their partition.

    Attributes:
        clock: where the partition's time stands after what was read.
    """

    def __init__(self, split: TopicSplit, source: BrokerStream) -> None:
        self._split, self._source = split, source
        self.clock = StreamClock.of_json(split.clock.as_json())
        self._times: list[Int64s] = []
        self._size = 0

    def judged(self, on_bad: OnBad) -> Iterator[tuple[EventBatch, Int64s]]:
        """The events, each with how late it is (ms, int64[n], 0 if it is not late)."""
        split, name = self._split, self._source.describe()
        if split.dropped is not None:
            first, end = split.dropped
            reason = (
                f"the server has dropped the messages at offsets {first} to {end - 1} of partition "
                f"{split.partition}, which had not been read"
            )
            on_bad(BadInput(name, None, reason))
        topic, events = (
            TopicRanges.at(self._source.url),
            StreamEvents(self._source.options.messages),
        )
        for some in topic.messages(split.partition, split.begin, split.end):
            self._size += int(some.payload.sizes.sum())
            for batch in events.read(self._source, arrived_at(some, split.at), on_bad):
                admitted = before_horizon(batch, self._horizon(batch), self.clock, name, on_bad)
                judged, lateness = self.clock.judge(admitted)
                self._times.append(admitted.time[lateness == 0])
                yield judged, lateness

    def _horizon(self, batch: EventBatch) -> Horizon:
        """The horizon of messages; the first event of a partition starts its clock."""
        latest = self.clock.latest
        if latest is None and len(batch):
            latest = int(batch.time[0])
        start = self._split.at if latest is None else max(self._split.at, latest)
        return Horizon(start, self._split.max_ahead_ms)

    def store(self) -> None:
        """Keep what is known now for the next batch; RunError if it cannot be written."""
        split = self._split
        known = RangeEnd(self.clock, TimeCounts.of_times(self._times), self._size)
        RangeEnds(Path(split.directory)).store(split.topic, split.partition, split.end, known)
