"""The range of each partition that one micro-batch reads, and where the streams' time stands.

A `TopicBatch` is an offset of Spark's source, so Spark writes it into the checkpoint before a task
reads anything. A batch that is run again reads the same messages, at the same time of arrival.
"""

from __future__ import annotations

from typing import Any

from spaseq.records import record
from spaseq.runtime.arrivals.stream_clock import StreamClock


@record
class PartitionRange:
    """What a batch reads of a partition.

    Attributes:
        origin: the offset at which the run began to read the partition.
        begin, end: offsets; the batch reads from `begin` to before `end`.
        since: when the partition last had new messages, ms since the epoch.
        floor: the time (ms) to which the watermark was raised, because the partition was idle, or
            new; None if it never was.
    """

    origin: int
    begin: int
    end: int
    since: int
    floor: int | None = None

    def as_json(self) -> list[Any]:
        """The range as JSON values."""
        return [self.origin, self.begin, self.end, self.since, self.floor]


@record
class TopicArrivals:
    """What a batch reads of a topic.

    Attributes:
        partitions: by their numbers.
        mark: the watermark (ms) of the stream before the batch reads; None if it has none yet.
        ties: the name of the file that numbers events of equal time before the watermark; "" if
            there is none.
    """

    partitions: tuple[PartitionRange, ...] = ()
    mark: int | None = None
    ties: str = ""

    @property
    def tells_time(self) -> bool:
        """Whether the task that reads the only partition tells the watermark behind it."""
        return len(self.partitions) == 1 and self.partitions[0].begin < self.partitions[0].end

    def as_json(self) -> list[Any]:
        """The arrivals as JSON values."""
        return [[p.as_json() for p in self.partitions], self.mark, self.ties]

    @classmethod
    def of_json(cls, value: list[Any]) -> TopicArrivals:
        """The inverse of `as_json`."""
        partitions, mark, ties = value
        return cls(tuple(PartitionRange(*p) for p in partitions), mark, ties)


@record
class TopicBatch:
    """The input of a batch.

    Attributes:
        number: counts the batches; 0 is before the first one.
        at: when it was planned, ms since the epoch.
        topics: one for each topic of the run.
        knowledge: the name of the knowledge base that was current then; "" if it never changes.
    """

    number: int
    at: int
    topics: tuple[TopicArrivals, ...]
    knowledge: str = ""

    def as_json(self) -> dict[str, Any]:
        """The batch as JSON values; `of_json` is the inverse."""
        topics = [topic.as_json() for topic in self.topics]
        values = {"batch": self.number, "at": self.at, "topics": topics}
        return {**values, "knowledge": self.knowledge} if self.knowledge else values

    @classmethod
    def of_json(cls, value: dict[str, Any]) -> TopicBatch:
        """The inverse of `as_json`."""
        topics = tuple(TopicArrivals.of_json(topic) for topic in value["topics"])
        return cls(value["batch"], value["at"], topics, value.get("knowledge", ""))


@record
class TopicSplit:
    """The messages that one task reads.

    Attributes:
        number: counts the splits of the batch.
        stream: the stream's number.
        topic: the topic's number.
        partition: the partition's number.
        at: when the batch was planned: the arrival of the messages (ms since the epoch).
        begin, end: offsets.
        clock: where the partition's time stands before the messages.
        is_only: whether the task tells the stream's watermark; see `tells_time`.
        dropped: offsets of messages before `begin` that the server has dropped unread; or None.
        max_ahead_ms: how far ahead an event may be.
        directory: of the clocks.
        knowledge: the name of the knowledge base that the events are matched with.
    """

    number: int
    stream: int
    topic: int
    partition: int
    at: int
    begin: int
    end: int
    clock: StreamClock
    is_only: bool
    dropped: tuple[int, int] | None
    max_ahead_ms: int
    directory: str
    knowledge: str = ""
