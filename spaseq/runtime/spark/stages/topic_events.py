"""The events of the messages that one task reads of a partition at Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spaseq.compiled.arrays import Int64s
from spaseq.connectors.heartbeat_messages import by_kind, is_heartbeat
from spaseq.connectors.kafka_ranges import TopicRanges
from spaseq.logs.messages import MessageColumns, arrived_at
from spaseq.options import FileSourceSettings
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.runtime.arrivals.arrived_splits import before_horizon
from spaseq.runtime.arrivals.horizon import Horizon, event_horizon
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.arrivals.time_counts import TimeCounts
from spaseq.runtime.arrivals.topics.range_ends import RangeEnd, RangeEnds
from spaseq.runtime.arrivals.topics.topic_batch import TopicSplit
from spaseq.runtime.live.arrival_times import arrival_times
from spaseq.runtime.live.given_heartbeats import take_heartbeats
from spaseq.runtime.live.live_stream import LiveStream
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
            for part in by_kind(arrived_at(some, split.at)):
                if is_heartbeat(part.media_type[0]):
                    self._take_heartbeats(part, on_bad)
                    continue
                for batch in events.read(self._source, part, on_bad):
                    yield self._judged_batch(batch, on_bad)

    def _judged_batch(self, batch: EventBatch, on_bad: OnBad) -> tuple[EventBatch, Int64s]:
        """The events of a batch that are not too far ahead, each with how late it is (ms)."""
        at, horizon, clock = self._split.at, self._horizon(batch), self.clock
        times = arrival_times(batch.time, at, clock.least, horizon, clock.latest)
        name = self._source.describe()
        admitted = before_horizon(batch.with_time(times), horizon, clock, name, on_bad)
        judged, lateness = clock.judge(admitted, at)
        self._times.append(admitted.time[lateness == 0])
        return judged, lateness

    def _take_heartbeats(self, messages: MessageColumns, on_bad: OnBad) -> None:
        """Take messages that are heartbeats."""
        source, split = self._source, self._split
        settings = FileSourceSettings(max_ahead_ms=split.max_ahead_ms)
        stream = LiveStream(source.iri, source, settings)
        take_heartbeats(stream, messages, self.clock, on_bad)

    def _horizon(self, batch: EventBatch) -> Horizon:
        """The horizon of messages."""
        split = self._split
        return event_horizon(self.clock.latest, split.at, batch.time, split.max_ahead_ms)

    def store(self) -> None:
        """Keep what is known now for the next batch; RunError if it cannot be written."""
        split = self._split
        known = RangeEnd(self.clock, TimeCounts.of_times(self._times), self._size)
        RangeEnds(Path(split.directory)).store(split.topic, split.partition, split.end, known)
