"""A Spark data source over topics at Kafka: rows are splits, which the tasks of a run read.

An offset of the source is a `TopicBatch`: the offsets of each partition, in Spark's checkpoint. The
data source has no options, because Spark shows options in plans and logs, and a URL may have a
password. So each run makes a class, which Spark pickles with its attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from spaseq.connectors.kafka import Extent, TopicRanges
from spaseq.options import FileSourceSettings
from spaseq.records import record
from spaseq.runtime.arrivals.arrived_batch import StreamProgress
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.input_splits import BatchSizer
from spaseq.runtime.arrivals.topics.topic_batch import RangeEnds, TopicBatch, TopicSplit
from spaseq.runtime.arrivals.topics.topic_planner import TopicPlanner
from spaseq.runtime.spark.connectors.rdf_source import SPLIT_DDL, split_row
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

    def current_knowledge(self) -> str:
        """The name of the knowledge base for new batches; "" if it never changes."""
        return "" if self.arrivals is None else FileSourceLog(self.arrivals, ()).current_knowledge()


class TopicDataSource(DataSource):  # type: ignore[misc]
    """Rows of `SPLIT_DDL`; `of` makes the class for a run."""

    followed: ClassVar[FollowedTopics]

    @classmethod
    def of(cls, followed: FollowedTopics) -> type[TopicDataSource]:
        """The data source of a run."""
        return type("RunTopics", (cls,), {"followed": followed})

    @classmethod
    def name(cls) -> str:
        return "spaseq_topics"

    def schema(self) -> str:
        return SPLIT_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return TopicStreamReader(self.followed)


@dataclass(frozen=True)
class _TopicPart(InputPartition):  # type: ignore[misc]
    splits: tuple[TopicSplit | StreamProgress, ...]


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches with a `TopicPlanner`, in a separate process."""

    def __init__(self, followed: FollowedTopics) -> None:
        self._followed = followed
        self._upto: list[list[Extent] | None] | None = None  # how far topics are read, if fixed
        self._sizer = BatchSizer(followed.settings.max_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        """The copy for a task, which plans nothing."""
        return TopicStreamReader, (self._followed,)

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

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self._followed.settings.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self._upto = self._planner.extents()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        most = float(self._sizer.bytes)
        if isinstance(limit, ReadAllAvailable):
            most = float("inf")
        elif isinstance(limit, ReadMaxBytes):
            most = min(most, limit.max_bytes)
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
        if not splits:
            return [_TopicPart(marks)]
        return [_TopicPart((splits[0], *marks)), *(_TopicPart((split,)) for split in splits[1:])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The splits as rows."""
        assert isinstance(partition, _TopicPart)
        yield from map(split_row, partition.splits)

    def commit(self, end: dict[str, Any]) -> None:
        self._planner.forget(TopicBatch.of_json(end))
