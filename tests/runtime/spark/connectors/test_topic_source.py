"""The data source over topics: what a batch reads, and what Spark gets to see of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import dumps, loads
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from spaseq.connectors.kafka import TopicRanges
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.spark.connectors.followed_source import FollowedSource
from spaseq.runtime.spark.connectors.topic_source import FollowedTopics
from spaseq.sources.broker_stream import BrokerStream
from tests.runtime.spark.stages.driven_topics import MemoryTopic

URL = "kafka://me:hidden1@broker:9092/road?ssl.key.password=hidden2"


def source_over(place: Path, topic: MemoryTopic) -> FollowedSource:
    TopicRanges.known[URL] = topic  # type: ignore[assignment]
    stream = BrokerStream(StreamOptions("http://example/s", ()), URL)
    followed = FollowedTopics((stream,), 0, place / "topics", FileSourceSettings())
    kind: Any = loads(dumps(FollowedSource.of(followed)))  # as Spark brings it to its processes
    source: FollowedSource = kind({})
    return source


def ends(offset: dict[str, Any]) -> list[int]:
    """How far each partition of the topic is read."""
    return [end for _, _, end, *_ in offset["topics"][0][0]]


def test_offsets_have_the_places_and_no_secrets(tmp_path: Path) -> None:
    source = source_over(tmp_path, MemoryTopic([[b"x"] * 5, [b"x"] * 2]))
    reader = source.streamReader(None)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ends(end) == [5, 2]
    parts = reader.partitions(start, end)
    assert len(parts) == 2  # a task for each partition
    seen = [json.dumps(end), str(source.options), repr(source), str(parts), type(source).__name__]
    assert not [text for text in seen if "hidden" in text or "9092" in text]


def test_a_batch_is_bounded_by_its_bytes(tmp_path: Path) -> None:
    reader = source_over(tmp_path, MemoryTopic([[b"x"] * 6000, [b"x"] * 2000, []])).streamReader(
        None
    )
    end = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(4_000_000))
    assert ends(end) == [3000, 1000, 0]  # messages are supposed to have 1,000 bytes


def test_a_run_to_the_ends_reads_what_was_there_at_its_start(tmp_path: Path) -> None:
    topic = MemoryTopic([[b"x"] * 6])
    reader = source_over(tmp_path, topic).streamReader(None)
    reader.prepareForTriggerAvailableNow()
    topic.partitions[0] += [b"y"]
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert ends(end) == [6]
