"""Topics at Kafka for `FollowedSource`.

An offset of the source is a `TopicBatch`: the offsets of each partition, in Spark's checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from spaseq.connectors.kafka import Extent, TopicRanges
from spaseq.options import FileSourceSettings
from spaseq.records import record
from spaseq.runtime.arrivals.arrived_batch import StreamProgress
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.topics.topic_batch import RangeEnds, TopicBatch
from spaseq.runtime.arrivals.topics.topic_planner import TopicPlanner
from spaseq.runtime.spark.connectors.followed_source import PlannedReader, in_tasks
from spaseq.sources.broker_stream import BrokerStream


@record
class FollowedTopics:
    """The followed topics of a run.

    Attributes:
        streams: the streams at Kafka.
        first: the number of the first of them in the run.
        directory: for the results of tasks; part of the checkpoint.
        settings: limits of a batch, and the rules of time.
        knowledge: the name of the knowledge base at the start of the run.
        arrivals: the directory of the log that names the current one; None if it never changes.
    """

    streams: tuple[BrokerStream, ...]
    first: int
    directory: Path
    settings: FileSourceSettings
    knowledge: str = ""
    arrivals: Path | None = None

    kind: ClassVar[str] = "spaseq_topics"

    def current_knowledge(self) -> str:
        """The name of the knowledge base for new batches; "" if it never changes."""
        return "" if self.arrivals is None else FileSourceLog(self.arrivals, ()).current_knowledge()

    def reader(self) -> TopicStreamReader:
        """The reader of the topics."""
        return TopicStreamReader(self)


class TopicStreamReader(PlannedReader):
    """Plans batches with a `TopicPlanner`."""

    def __init__(self, followed: FollowedTopics) -> None:
        super().__init__(followed)
        self._upto: list[list[Extent] | None] | None = None  # how far topics are read, if fixed

    @cached_property
    def _planner(self) -> TopicPlanner:
        followed = self._followed
        return TopicPlanner(
            [TopicRanges.at(stream.url) for stream in followed.streams],
            [stream.describe() for stream in followed.streams],
            RangeEnds(followed.directory),
            followed.settings,
            followed.current_knowledge,
        )

    def initialOffset(self) -> dict[str, Any]:
        return self._planner.start().as_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._upto = self._planner.extents()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        most = self._most(limit)
        extents = self._planner.extents() if self._upto is None else self._upto
        batch = self._planner.plan(TopicBatch.of_json(start), extents, most)
        self._sizer.begin(most if self._planner.has_backlog else None)
        return batch.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A task for each partition with new messages; one task also has the watermarks."""
        if start == end:
            return []
        batch, followed = TopicBatch.of_json(end), self._followed
        splits = self._planner.splits(
            TopicBatch.of_json(start), batch, followed.first, followed.knowledge
        )
        marks = tuple(
            StreamProgress(number, topic.mark, batch.knowledge or followed.knowledge, topic.ties)
            for number, topic in enumerate(batch.topics, followed.first)
            if not topic.tells_time
        )
        return in_tasks(splits, marks, together=False)

    def commit(self, end: dict[str, Any]) -> None:
        self._planner.forget(TopicBatch.of_json(end))
