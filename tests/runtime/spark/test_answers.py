"""`spaseq.spark.answers`: answers as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from spaseq.errors import UsageError
from spaseq.runtime.spark.connectors.answer_sink import AnswerDataSink
from spaseq.runtime.spark.connectors.rdf_source import RdfDataSource
from spaseq.spark import answers
from tests.runtime.machines import KEYED, NORTH, SOUTH, nquads

pytestmark = pytest.mark.spark

LONG_AFTER = ((900_000, "m9", "starts", 0),)


@pytest.fixture
def streams(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, rows in (("N", NORTH), ("S", SOUTH)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.nq").write_text(nquads([*rows, *LONG_AFTER], name))
        found[name] = tmp_path / name
    return found


def codes(frame: Any) -> list[str]:
    return sorted(row.bindings["code"] for row in frame.collect())


def test_a_batch_frame_has_a_row_per_answer(spark: Any, streams: dict[str, Path]) -> None:
    frame = answers(spark, KEYED, streams)
    assert frame.columns == ["query", "start", "end", "bindings", "trace", "event", "graph"]
    assert codes(frame) == ['"1"', '"3"', '"3"', '"4"', '"5"']
    first = frame.orderBy("end").first()
    assert first.query == "query"
    assert first.bindings["machine"] == "<http://m.example/m1>"
    assert [(t.gpm, t.stream, t.event, t.k) for t in first.trace] == [
        ("A", "http://m.example/north", "http://m.example/N/0", 0),
        ("B", "http://m.example/north", "http://m.example/N/2", 1),
    ]
    assert (first.end - first.start).total_seconds() == 1.0
    assert isinstance(first.trace[0].time, datetime)


def test_answers_beyond_the_limit_of_one_instant_are_left_out(
    spark: Any, streams: dict[str, Path]
) -> None:
    query = KEYED.replace("WITHIN 1 MINUTES", "WITHIN 1 MINUTES PARTITION BY (?machine)")
    assert codes(answers(spark, query, streams)).count('"3"') == 2  # both end at one instant
    found = codes(answers(spark, query, streams, limit_per_event=1))
    assert found == ['"1"', '"3"', '"4"', '"5"']
    with pytest.raises(UsageError, match="at least 1"):
        answers(spark, query, streams, limit_per_event=0)


def test_a_streaming_frame_gives_the_same_answers(
    spark: Any, streams: dict[str, Path], tmp_path: Path
) -> None:
    frame = answers(spark, KEYED, streams, checkpoint=tmp_path / "state")
    assert frame.isStreaming
    query = (
        frame.writeStream.format("memory")
        .queryName("streamed")
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert codes(spark.table("streamed")) == codes(answers(spark, KEYED, streams))


@pytest.fixture
def frame(spark: Any, streams: dict[str, Path]) -> Any:
    """The events of both streams as a DataFrame, without k."""
    spark.dataSource.register(RdfDataSource)
    frames = [
        spark.read.format("rdf").option("stream", name).load(str(path))
        for name, path in streams.items()
    ]
    return frames[0].unionAll(frames[1]).select("stream", "time", "event", "graph")


def test_a_frame_of_events_answers_as_the_files_do(
    spark: Any, streams: dict[str, Path], frame: Any
) -> None:
    assert codes(answers(spark, KEYED, frame)) == codes(answers(spark, KEYED, streams))


def test_rows_that_are_no_events_are_left_out(spark: Any, frame: Any) -> None:
    broken = frame.limit(1).selectExpr("stream", "time", "event", "'no triple' AS graph")
    other = frame.limit(1).selectExpr("'http://other' AS stream", "time", "event", "graph")
    found = answers(spark, KEYED, frame.unionAll(broken).unionAll(other))
    assert codes(found) == codes(answers(spark, KEYED, frame))
    with pytest.raises(UsageError, match="a column graph"):
        answers(spark, KEYED, frame.drop("graph"))


EVENT_COLUMNS = "stream string, time bigint, event string, graph string"


def event(machine: str, what: str, value: int) -> str:
    return f'<http://m.example/{machine}> <http://m.example/{what}> "{value}" .'


class Arriving:
    """Events that arrive as files, one per batch, and the rows of the running query."""

    def __init__(self, spark: Any, directory: Path, **options: Any) -> None:
        self._spark, self._directory = spark, directory
        self._options = options

    def put(self, *rows: tuple[str, int, str, str]) -> None:
        part = self._spark.createDataFrame(rows, EVENT_COLUMNS).coalesce(1)
        part.write.mode("append").parquet(str(self._directory / "events"))

    def query(self, **trigger: Any) -> Any:
        """Start the query."""
        events = self._spark.readStream.schema(EVENT_COLUMNS).option("maxFilesPerTrigger", 1)
        found = answers(
            self._spark,
            KEYED,
            events.parquet(str(self._directory / "events")),
            checkpoint=self._directory / "state",
            sides=True,
            **self._options,
        )
        return (
            found.writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self._directory / "spark"))
            .trigger(**trigger)
            .start()
        )

    def found(self) -> Any:
        """The rows so far."""
        return self._spark.read.parquet(str(self._directory / "found"))

    def _keep(self, frame: Any, _: int) -> None:
        frame.coalesce(1).write.mode("append").parquet(str(self._directory / "found"))

    @staticmethod
    def late(rows: Any) -> list[tuple[str, int, int]]:
        """(event, time in ms, lateness in ms) of the late events."""
        late = rows.where("late IS NOT NULL")
        late = late.selectExpr("late.event", "unix_millis(late.time)", "late.late_ms")
        return [tuple(row) for row in late.collect()]


@pytest.mark.thorough
def test_late_and_bad_rows_come_beside_the_answers(spark: Any, tmp_path: Path) -> None:
    arriving = Arriving(spark, tmp_path, watermark_ms=3000)
    arriving.put(
        ("N", 5000, "a", event("m1", "starts", 1)), ("N", 9000, "b", event("m2", "starts", 2))
    )
    arriving.put(
        ("N", 6000, "c", event("m1", "stops", 3)), ("N", 5999, "d", event("m1", "stops", 4))
    )
    arriving.put(("N", 900_000, "e", ""), ("S", 900_000, "f", ""), ("S", 900_001, "g", "no triple"))
    arriving.query(availableNow=True).awaitTermination()
    rows = arriving.found()
    assert codes(rows.where("query IS NOT NULL")) == ['"3"']
    assert arriving.late(rows) == [("d", 5999, 1)]
    (bad,) = rows.where("bad IS NOT NULL").select("bad.*").collect()
    assert (bad.file, bad.text) == ("<http://m.example/south>", "no triple")
    assert bad.reason


@pytest.mark.thorough
def test_an_idle_stream_of_a_frame_is_not_waited_for(spark: Any, tmp_path: Path) -> None:
    arriving = Arriving(spark, tmp_path, idle_ms=1000)
    arriving.put(
        ("N", 5000, "a", event("m1", "starts", 1)),
        ("N", 6000, "b", event("m1", "stops", 2)),
        ("N", 60_000, "c", ""),
        ("S", 1000, "d", ""),
    )
    query = arriving.query(processingTime="200 milliseconds")
    try:
        wait_for(query, lambda: codes(arriving.found().where("query IS NOT NULL")))
        arriving.put(("S", 2000, "e", event("m1", "stops", 3)))
        wait_for(query, lambda: arriving.late(arriving.found()))
    finally:
        query.stop()
    assert codes(arriving.found().where("query IS NOT NULL")) == ['"2"']
    assert arriving.late(arriving.found()) == [("e", 2000, 58_000)]


def wait_for(query: Any, found: Callable[[], Sequence[Any]], patience: float = 300) -> None:
    """Wait until a running query has found rows."""
    end = monotonic() + patience
    while not (query.recentProgress and found()):
        assert query.isActive, query.exception()
        assert monotonic() < end
        sleep(0.2)


@pytest.mark.thorough
def test_a_streaming_frame_of_events_gives_the_same_answers(
    spark: Any, frame: Any, tmp_path: Path
) -> None:
    rows = sorted(frame.collect(), key=lambda row: row.time)
    for number in range(0, len(rows), 4):
        part = spark.createDataFrame(rows[number : number + 4], frame.schema)
        part.coalesce(1).write.mode("append").parquet(str(tmp_path / "events"))
    events = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1)
    found = answers(
        spark, KEYED, events.parquet(str(tmp_path / "events")), checkpoint=tmp_path / "state"
    )
    query = (
        found.writeStream.format("memory")
        .queryName("from_frame")
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert codes(spark.table("from_frame")) == codes(answers(spark, KEYED, frame))


def test_answers_are_written_as_a_frame_is(
    spark: Any, streams: dict[str, Path], tmp_path: Path
) -> None:
    spark.dataSource.register(AnswerDataSink)
    found = answers(spark, KEYED, streams)
    for mode in ("append", "overwrite"):
        found.write.format("spaseq").mode(mode).save(str(tmp_path / "out"))
        lines = [
            line
            for path in (tmp_path / "out").glob("[!_]*")
            for line in path.open(encoding="utf-8")
        ]
        assert sorted(json.loads(line)["bindings"]["code"]["value"] for line in lines) == [
            "1", "3", "3", "4", "5"
        ]  # fmt: skip


@pytest.mark.thorough
def test_a_streaming_frame_is_written_in_batches(
    spark: Any, streams: dict[str, Path], tmp_path: Path
) -> None:
    spark.dataSource.register(AnswerDataSink)
    for _ in range(2):
        frame = answers(spark, KEYED, streams, checkpoint=tmp_path / "state")
        query = (
            frame.writeStream.format("spaseq")
            .option("checkpointLocation", str(tmp_path / "spark"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        lines = [line for path in (tmp_path / "out").glob("[!_]*") for line in path.open()]
        assert len(lines) == 5


def test_partial_matches_are_rows_with_three_more_columns(
    spark: Any, streams: dict[str, Path]
) -> None:
    frame = answers(spark, KEYED, streams, partial=True)
    assert frame.columns[-3:] == ["reached", "waiting", "closed"]
    assert codes(frame.where("reached IS NULL")) == ['"1"', '"3"', '"3"', '"4"', '"5"']
    rows = frame.where("reached IS NOT NULL").orderBy("end").collect()
    assert [r.bindings["machine"][-3:-1] for r in rows] == ["m9", "m9"]  # one on each stream
    for row in rows:
        assert (row.reached, row.waiting) == ("A", ["B"])
        assert (row.closed - row.end).total_seconds() == 60.0
