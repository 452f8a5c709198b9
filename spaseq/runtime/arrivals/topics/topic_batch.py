"""The range of each partition that a micro-batch reads, the streams' clocks, and the result of a
range.

A `TopicBatch` is an offset of Spark's source, so Spark writes it into the checkpoint before a task
reads anything. A batch that is run again reads the same messages, at the same time of arrival. The
task that reads a range stores the clock behind it and the times of its events (`RangeEnd`), from
which the next batch continues. These depend on the messages and the offsets alone, so a task that
is run again stores the same.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from spaseq.errors import RunError
from spaseq.rdf.events.instants import TimeCounts
from spaseq.records import record
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.storage.checksums import damaged, write_durably
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain

_NAME = re.compile(r"(\d+)-(\d+)-(\d+)\.range")


@record
class PartitionRange:
    """The part of a partition that a batch reads.

    Attributes:
        origin: the first offset of the partition that the run has read.
        begin, end: offsets; the batch reads from `begin` to before `end`.
        since: time of the last new messages of the partition, ms since the epoch.
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
    """The part of a topic that a batch reads.

    Attributes:
        partitions: by their numbers.
        mark: the watermark (ms) of the stream before the batch; None if it has none yet.
        ties: the name of the file that numbers events of equal time before the watermark; "" if
            there is none.
    """

    partitions: tuple[PartitionRange, ...] = ()
    mark: int | None = None
    ties: str = ""

    @property
    def tells_time(self) -> bool:
        """Whether the task that reads the only partition knows the watermark behind it."""
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
        at: time of planning, ms since the epoch.
        topics: the arrivals of each topic of the run.
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
        at: time of planning, which is the arrival of the messages (ms since the epoch).
        begin, end: offsets.
        clock: the partition's clock before the messages.
        is_only: whether the task tells the stream's watermark; see `tells_time`.
        dropped: offsets of messages before `begin` that the server has dropped unread, if any.
        max_ahead_ms: maximum lead of an event.
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


@record
class RangeEnd:
    """The result of reading a range of a partition.

    Attributes:
        clock: the clock of the partition after the range.
        events: the times of the range's events that are in time.
        size: the bytes of its messages.
    """

    clock: StreamClock
    events: TimeCounts
    size: int

    def data(self) -> bytes:
        """The result as bytes, with a checksum."""
        arrays = self.events.times.tobytes(), self.events.counts.tobytes()
        return dump_plain((self.clock.as_json(), *arrays, self.size))

    @classmethod
    def of(cls, data: bytes) -> RangeEnd:
        """The inverse of `data`."""
        clock, times, counts, size = load_plain(data)
        events = TimeCounts(np.frombuffer(times, np.int64), np.frombuffer(counts, np.int64))
        return cls(StreamClock.of_json(clock), events, size)


@record
class RangeEnds:
    """The files of `RangeEnd`s, and the files that number ties, in a directory.

    `directory` must be accessible to all tasks.
    """

    directory: Path

    def store(self, topic: int, partition: int, end: int, known: RangeEnd) -> None:
        """Store the `RangeEnd` of the messages before the offset `end`.

        Raises:
            RunError: the file cannot be written.
        """
        self._write(f"{topic}-{partition}-{end}.range", known.data())

    def load(self, topic: int, partition: int, end: int) -> RangeEnd:
        """Load a stored `RangeEnd`.

        Raises:
            RunError: the file is missing or damaged.
        """
        path = self.directory / f"{topic}-{partition}-{end}.range"
        try:
            return RangeEnd.of(path.read_bytes())
        except BROKEN as error:
            raise damaged(path, error) from error

    def ends(self) -> dict[tuple[int, int], list[int]]:
        """The offsets of all files, ascending, by topic and partition."""
        by_partition: dict[tuple[int, int], list[int]] = {}
        for path in self.directory.glob("*.range"):
            match = _NAME.fullmatch(path.name)
            if match:
                topic, partition, end = map(int, match.groups())
                by_partition.setdefault((topic, partition), []).append(end)
        return {partition_key: sorted(ends) for partition_key, ends in by_partition.items()}

    def store_ties(self, topic: int, batch: int, earlier: Mapping[int, TimeCounts]) -> str:
        """Store the number of events of earlier partitions at each time of a partition's events.

        Returns:
            The name for `load_ties`.
        """
        name = f"{topic}-{batch}.ties"
        value = [(p, each.times.tobytes(), each.counts.tobytes()) for p, each in earlier.items()]
        self._write(name, dump_plain(value))
        return name

    def load_ties(self, name: str) -> dict[int, TimeCounts]:
        """Load stored ties; RunError if the file is missing or damaged."""
        path = self.directory / name
        try:
            return {
                partition: TimeCounts(np.frombuffer(t, np.int64), np.frombuffer(c, np.int64))
                for partition, t, c in load_plain(path.read_bytes())
            }
        except BROKEN as error:
            raise damaged(path, error) from error

    def note_knowledge(self, batch: int, name: str) -> None:
        """Record the name of the knowledge base that a batch may be run with again."""
        self._write(f"knowledge-{batch}.name", name.encode())

    def knowledge_in_use(self) -> set[str]:
        """The knowledge bases of all batches that may be run again."""
        names = set()
        for path in self.directory.glob("*.name"):
            with suppress(FileNotFoundError):  # the source's process has just dropped it
                names.add(path.read_text())
        return names

    def forget_batches(self, before: int) -> None:
        """Remove the ties, and the names of knowledge bases, of the batches before a number."""
        for path in (*self.directory.glob("*.ties"), *self.directory.glob("*.name")):
            if int(path.stem.split("-")[1]) < before:
                path.unlink(missing_ok=True)

    def forget(self, topic: int, partition: int, end: int) -> None:
        """Remove the `RangeEnd` of a range."""
        (self.directory / f"{topic}-{partition}-{end}.range").unlink(missing_ok=True)

    def _write(self, name: str, data: bytes) -> None:
        # Two attempts at a task may write the same file at the same time.
        fresh = self.directory / f".{name}.{uuid.uuid4().hex}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_durably(fresh, data)
            fresh.replace(self.directory / name)
        except OSError as error:
            raise RunError(f"cannot write {self.directory / name}: {error.strerror}") from error


def earlier_ties(partitions: Sequence[TimeCounts]) -> dict[int, TimeCounts]:
    """For each partition: the number of events of earlier partitions at each time of its events.

    >>> two = [TimeCounts.of_pairs([(5, 2), (7, 1)]), TimeCounts.of_pairs([(5, 1)])]
    >>> earlier_ties(two)[1].pairs
    [(5, 2)]
    """
    by_partition: dict[int, TimeCounts] = {}
    before = TimeCounts()
    for number, partition in enumerate(partitions):
        counts = before.of(partition.times)
        tied = np.flatnonzero(counts)
        if len(tied):
            by_partition[number] = TimeCounts(partition.times[tied], counts[tied])
        before = before.with_more(partition.times, partition.counts)
    return by_partition
