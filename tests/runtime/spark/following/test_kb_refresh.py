"""A followed run loads a changed knowledge base between its batches."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spaseq.compile import compile_query
from spaseq.errors import UsageError
from spaseq.kb.load import NO_CACHE, load_kb
from spaseq.kb.watched_graphs import KbWatch
from spaseq.options import FollowOptions, ServiceOptions
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.runtime.spark.following.follow import follow
from spaseq.sources.base import Source
from spaseq.sources.broker_stream import BrokerStream
from spaseq.sources.files import FileSource
from spaseq.spark import answers
from tests.connectors.kafka_mock import PARTITIONS, KafkaMock
from tests.runtime.machines import Row, nquads, put

pytestmark = pytest.mark.spark

KB = "http://m.example/kb"
QUERY = f"""PREFIX : <http://m.example/>
SELECT ?name ?old WITHIN 1 HOURS FROM STREAM N <http://m.example/north> FROM NAMED <{KB}>
WHERE {{ SEQ(A)
  DEFINE GPM A ON N {{ ?machine :starts ?load GRAPH <{KB}> {{ ?machine :name ?name }} }} }}"""
CORRELATED = QUERY.replace("SEQ(A)", "SEQ(B : A)").replace(
    "DEFINE", "DEFINE GPM B ON N { ?o :stops ?old } DEFINE", 1
).replace(":name ?name }", ":name ?name } OPTIONAL { ?machine :stops ?old }")  # fmt: skip
MAKER = """PREFIX : <http://m.example/> REGISTER STREAM :begun AS
CONSTRUCT { ?machine :begins ?load } WITHIN 1 HOURS FROM STREAM N <http://m.example/north>
WHERE { SEQ(A) DEFINE GPM A ON N { ?machine :starts ?load } }"""
READER = QUERY.replace("STREAM N <http://m.example/north>", "STREAM N :begun").replace(
    ":starts", ":begins"
)


@pytest.fixture
def kafka() -> Iterator[KafkaMock]:
    mock = KafkaMock()
    yield mock
    mock.close()


class Followed:
    """A stream's directory, a KB file, and a run that follows both."""

    def __init__(self, spark: Any, place: Path, *queries: str) -> None:
        self.spark, self.place, self.queries = spark, place, queries
        self.directory, self.kb, self.written = place / "north", place / "kb.nt", 0
        self.directory.mkdir()
        self.name("Ann")
        self.notes: list[str] = []
        self.bad: list[BadInput] = []
        self.restart()

    def restart(self) -> None:
        """Start the run, or resume it from the checkpoint."""
        sources = [(KB, self.kb)]
        self.job = Job(
            reading_order([compile_query(query) for query in self.queries]),
            (self.source(),),
            load_kb(sources),
            watch=KbWatch(sources, ServiceOptions(), NO_CACHE, every_s=0.1),
            on_note=self.note,
            on_bad=self.on_bad,
        )
        options = FollowOptions(self.place / "checkpoint", trigger_ms=100)
        self.answers = follow(self.job, options, spark=self.spark)

    def source(self) -> Source:
        return FileSource(StreamOptions("http://m.example/north", (str(self.directory),)))

    def write(self, rows: list[Row]) -> None:
        put(self.directory / f"{self.written}.nq", nquads(rows, f"n{self.written}"))

    def name(self, name: str) -> None:
        self.kb.write_text(f'<http://m.example/m1> <http://m.example/name> "{name}" .\n')
        os.utime(self.kb, ns=(len(name), len(name)))

    def start_machine(self) -> None:
        """Add an event of the machine, and an event that advances time."""
        at = 20_000 * self.written
        rows: list[Row] = [
            (at, "m2", "stops", self.written),
            (at + 1000, "m1", "starts", 1),
            (at + 2000, "m9", "starts", 1),
        ]
        self.written += 1
        self.write(rows)

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.start_machine()

    def on_bad(self, bad: BadInput) -> None:
        self.bad.append(bad)
        self.start_machine()

    def next_names(self, answers: int) -> set[str]:
        found = (dict(answer.bindings) for _, answer in self.answers)
        named = (bindings["name"] for bindings in found if "name" in bindings)
        return {next(named) for _ in range(answers)}

    def names_until(self, name: str) -> set[str]:
        """The names of the answers up to the first with this one, as machines start."""
        found = set[str]()
        while name not in found:
            self.start_machine()
            found |= self.next_names(1)
        return found


@pytest.mark.thorough
def test_the_next_batch_is_read_with_the_new_one_and_a_broken_one_is_not_used(
    spark: Any, tmp_path: Path
) -> None:
    run = Followed(spark, tmp_path, QUERY)
    run.start_machine()
    assert run.next_names(1) == {'"Ann"'}
    run.name("Barbara")
    assert run.next_names(1) == {'"Barbara"'}
    run.kb.write_text("no triple\n")
    assert run.next_names(1) == {'"Barbara"'}
    run.answers.close()
    assert run.notes == ["the knowledge base has changed: 1 triples from the next batch"]
    assert [b.file for b in run.bad] == ["--kb"]
    assert f"does not load; the last one stays: {run.kb}:1: " in run.bad[0].reason
    assert (run.job.stats.refreshed, run.job.stats.bad) == (1, 1)
    kept = [path for path in (tmp_path / "checkpoint").iterdir() if "kb" in path.name]
    assert 1 <= len(kept) <= 2


@pytest.mark.thorough
def test_a_pattern_that_waits_for_earlier_bindings_reads_the_new_one(
    spark: Any, tmp_path: Path
) -> None:
    """Stage 2 evaluates each A once for every B before it."""
    run = Followed(spark, tmp_path, CORRELATED)
    assert run.job.plans[0].patterns.gpms[1].correlation is not None
    run.start_machine()
    assert run.next_names(1) == {'"Ann"'}
    run.name("Barbara")
    assert run.next_names(2) == {'"Barbara"'}
    run.kb.write_text("no triple\n")
    assert run.next_names(3) == {'"Barbara"'}
    run.answers.close()
    assert [b.file for b in run.bad] == ["--kb"]


class FollowedTopic(Followed):
    """The same over a topic at Kafka."""

    def __init__(self, spark: Any, place: Path, kafka: KafkaMock, *queries: str) -> None:
        self.kafka = kafka
        super().__init__(spark, place, *queries)

    def source(self) -> Source:
        options = StreamOptions("http://m.example/north", ())
        return BrokerStream(options, f"kafka://{self.kafka.host}/north")

    def write(self, rows: list[Row]) -> None:
        for partition in range(PARTITIONS):  # the watermark is the least of all
            own = rows if partition == 0 else rows[-1:]
            text = nquads(own, f"n{self.written}p{partition}")
            self.kafka.publish("north", [text.encode()], partition)


@pytest.mark.thorough
@pytest.mark.parametrize("query", [QUERY, CORRELATED], ids=["alone", "correlated"])
def test_a_topic_is_read_with_the_new_one(
    spark: Any, tmp_path: Path, kafka: KafkaMock, query: str
) -> None:
    """As a directory is: also after a broken file, and when the run starts again."""
    run = FollowedTopic(spark, tmp_path, kafka, query)
    run.start_machine()
    run.start_machine()  # answers come one batch later than over files
    assert run.next_names(1) == {'"Ann"'}
    run.name("Barbara")
    assert '"Barbara"' in run.names_until('"Barbara"')
    run.kb.write_text("no triple\n")
    while not run.bad:
        run.start_machine()
        assert run.next_names(1) == {'"Barbara"'}
    run.answers.close()
    assert f"does not load; the last one stays: {run.kb}:1: " in run.bad[0].reason
    run.name("Cleopatra")
    run.restart()
    run.start_machine()
    assert run.names_until('"Cleopatra"') <= {'"Barbara"', '"Cleopatra"'}
    run.answers.close()
    kept = [path for path in (tmp_path / "checkpoint").iterdir() if "kb" in path.name]
    assert 1 <= len(kept) <= 3


@pytest.mark.thorough
def test_a_run_goes_on_with_the_knowledge_base_that_is_there_when_it_starts_again(
    spark: Any, tmp_path: Path
) -> None:
    run = Followed(spark, tmp_path, CORRELATED)
    run.start_machine()
    run.next_names(1)
    run.name("Barbara")
    run.next_names(2)
    run.answers.close()
    run.name("Cleopatra")
    run.restart()
    assert run.next_names(2) == {'"Barbara"'}  # from the unfinished batch
    run.start_machine()
    assert run.next_names(3) == {'"Cleopatra"'}
    run.answers.close()


@pytest.mark.thorough
def test_a_query_that_reads_a_registered_stream_reads_the_new_one(
    spark: Any, tmp_path: Path
) -> None:
    run = Followed(spark, tmp_path, READER, MAKER)
    run.start_machine()
    assert run.next_names(1) == {'"Ann"'}
    run.name("Barbara")
    assert run.next_names(1) == {'"Barbara"'}
    run.kb.write_text("no triple\n")
    assert run.next_names(1) == {'"Barbara"'}
    run.answers.close()


@pytest.mark.thorough
def test_a_streaming_data_frame_of_answers_takes_up_changes(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Followed(spark, tmp_path, QUERY)
    found = answers(
        spark, CORRELATED, {"N": run.directory}, {KB: run.kb}, checkpoint=tmp_path / "c",
        kb_refresh=True,
    )  # fmt: skip
    names: queue.SimpleQueue[str] = queue.SimpleQueue()

    def take(frame: Any, _: int) -> None:
        for row in frame.collect():
            names.put(row.bindings["name"])

    writer = found.writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(tmp_path / "s")).start()
    try:
        run.start_machine()
        assert names.get(timeout=120) == '"Ann"'
        run.name("Barbara")
        until(lambda: "the knowledge base has changed: 1 triples" in caplog.text)
        run.start_machine()
        assert [names.get(timeout=120) for _ in range(2)] == ['"Barbara"'] * 2
        run.kb.write_text("no triple\n")
        until(lambda: "does not load; the last one stays" in caplog.text)
        run.start_machine()
        assert [names.get(timeout=120) for _ in range(3)] == ['"Barbara"'] * 3
    finally:
        query.stop()


def test_what_cannot_be_refreshed_is_said(spark: Any, tmp_path: Path) -> None:
    run = Followed(spark, tmp_path, QUERY)
    with pytest.raises(UsageError, match="kb_refresh needs checkpoint"):
        answers(spark, QUERY, {"N": run.directory}, {KB: run.kb}, kb_refresh=True)
    frame = spark.readStream.format("rate").load().selectExpr(
        "'N' stream", "timestamp time", "'' graph"
    )  # fmt: skip
    with pytest.raises(UsageError, match="kb_refresh needs streams that are given as paths"):
        answers(spark, QUERY, frame, {KB: run.kb}, checkpoint=tmp_path / "c", kb_refresh=True)


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
