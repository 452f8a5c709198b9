"""A followed run over a topic, driven batch by batch without Spark; the topic is in memory."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from spaseq.compile import compile_query
from spaseq.connectors.kafka import Extent, TopicAway, TopicRanges
from spaseq.errors import SpaseqError
from spaseq.kb.load import load_kb
from spaseq.logs.messages import Message, MessageColumns
from spaseq.options import FileSourceSettings
from spaseq.plan.families import QueryUnits
from spaseq.rdf.inputs.stream_options import MessageOptions, StreamOptions
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.connectors.topic_source import FollowedTopics, TopicStreamReader
from spaseq.runtime.spark.rows.stage_rows import SIDE, items_of
from spaseq.runtime.spark.stages.bucket_state import TOPICS, Buckets
from spaseq.runtime.spark.stages.followed_patterns import FollowSolve
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.broker_stream import BrokerStream
from tests.runtime.live.live_jobs import IRI, QUERY
from tests.runtime.spark.stages.test_bucket_state import FakeMap, FakeValue

KB = "http://example/kb"
"""The graph of the knowledge base."""

FAR = FileSourceSettings(max_ahead_ms=10**15)


@dataclass
class MemoryTopic:
    """The messages of each partition; `low` are the offsets before which they were dropped."""

    partitions: list[list[bytes]]
    low: dict[int, int] = field(default_factory=dict)
    starts_late: bool = False
    is_away: bool = False

    def extents(self) -> list[Extent]:
        if self.is_away:
            raise TopicAway("away")
        return [Extent(self.low.get(n, 0), len(own)) for n, own in enumerate(self.partitions)]

    def messages(self, partition: int, begin: int, end: int) -> Any:
        assert begin >= self.low.get(partition, 0)
        for offset in range(begin, end):
            found = Message(self.partitions[partition][offset], partition, offset, time=777)
            yield MessageColumns.of([found])


class DrivenTopic:
    """Runs batches. `restart` forgets everything but what a checkpoint has."""

    def __init__(
        self,
        place: Path,
        topic: MemoryTopic,
        settings: FileSourceSettings = FAR,
        messages: MessageOptions | None = None,
        query: str = QUERY,
        refreshes: bool = False,
    ) -> None:
        url = f"kafka://memory{place.name}/road"
        TopicRanges.known[url] = topic  # type: ignore[assignment]
        options = StreamOptions(IRI, (), messages=messages or MessageOptions())
        stream = BrokerStream(options, url)
        load_kb([]).save(place / "kb-none")
        self.now_ms, self._place = 1000, place
        arrivals = place / "arrivals" if refreshes else None
        given = (stream,), 0, place / TOPICS, settings, "kb-none", arrivals
        self._followed = FollowedTopics(*given)
        groups = QueryGroups.of(QueryUnits.of([compile_query(query, "q")]))
        knowledge = StoredKnowledge(str(place / "kb-none"), "kb-none")
        self._solve = FollowSolve(groups, (stream,), knowledge, 2)
        self._buckets = Buckets(groups, place.name, str(place), knowledge, has_topics=True)
        self._state: dict[tuple[int, int], tuple[FakeValue, FakeMap]] = {}
        self.found: list[str] = []
        self.sides: list[Any] = []
        self.restart()
        self.offset = self._reader.initialOffset()

    def use(self, name: str, text: str) -> None:
        """Set the knowledge base of the next batches: the triples of a graph, as Turtle."""
        file = self._place / "kb.ttl"
        file.write_text(text)
        load_kb([(KB, file)]).save(self._place / name)
        FileSourceLog(self._place / "arrivals", ()).use_knowledge(name)

    def restart(self) -> None:
        self._reader = TopicStreamReader(self._followed)
        self._reader._planner._wall = lambda: self.now_ms / 1000
        Buckets.warm.clear()

    def batch(self, *, killed: bool = False) -> bool:
        """Run a batch, perhaps to its end and then again; whether there was one."""
        self.now_ms += 1
        reader = self._reader
        end = reader.latestOffset(self.offset, reader.getDefaultReadLimit())
        if end == self.offset:
            return False
        end = json.loads(json.dumps(end))  # as Spark keeps it
        if killed:
            before = pickle.dumps(self._state)
            self._run(end)
            self._state = pickle.loads(before)
            self.restart()
        answers, sides = self._run(end)
        self.found += answers
        self.sides += sides
        self.offset = end
        self._reader.commit(end)
        return True

    def all(self) -> list[str]:
        """All answers, once there is nothing more to run."""
        while self.batch():
            pass
        return self.found

    def _run(self, end: Any) -> tuple[list[str], list[Any]]:
        parts = self._reader.partitions(self.offset, end)
        rows = [
            row
            for part in parts
            for row in self._solve.run(self._reader.read(pickle.loads(pickle.dumps(part))))
        ]
        whole = pa.Table.from_batches(rows).to_pandas()
        found = []
        for (query, bucket), own in whole.groupby(["query", "bucket"]):
            place = (int(query), int(bucket))
            meta, chunks = self._state.setdefault(place, (FakeValue(), FakeMap()))
            for frame in self._buckets.batch(*place, iter([own]), meta, chunks):
                found += frame.to_dict("records")
        found.sort(key=lambda row: (row["query"], row["order"]))
        answers, sides = list[str](), list[Any]()
        triples = ((r["query"], r["order"], r["payload"]) for r in found)
        for query, items in groupby(items_of(triples), key=lambda pair: pair[0]):
            for _, item in items:
                if query == SIDE:
                    if isinstance(item, SpaseqError):
                        raise item
                    sides.append(item)
                else:
                    assert isinstance(item, Sequence)
                    answers += [answer_json("q", answer) for answer in item]
        return answers, sides
