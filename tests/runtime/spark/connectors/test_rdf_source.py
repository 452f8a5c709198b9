"""The data source `rdf`: events as rows, bounded and as they arrive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.ranges import read_stream
from spaseq.runtime.spark.connectors.rdf_source import RdfDataSource
from tests.runtime.machines import NORTH, SOUTH, nquads, put

pytestmark = pytest.mark.spark

STREAM = "http://m.example/north"
XSD = "http://www.w3.org/2001/XMLSchema#"

SAME_TIMES = [(1000 * (n // 7), f"m{n}", "starts", n) for n in range(200)]
"""Seven events at each time."""

Event = tuple[int, int | None, str | None, str, int | None]
"""ms, k, graph IRI, N-Triples text, ms late."""


@pytest.fixture
def rdf(spark: Any) -> Any:
    spark.dataSource.register(RdfDataSource)
    return spark


def events_of(rows: Sequence[Any]) -> list[Event]:
    assert {row.stream for row in rows} <= {STREAM}
    found = [
        (round(row.time.timestamp() * 1000), row.k, row.event, row.graph, row.late_ms)
        for row in rows
    ]
    return sorted(found, key=str)


def in_process(path: Path) -> list[Event]:
    """The events from reading the stream in this process, from beginning to end."""
    events: list[Event] = []
    for b in read_stream(StreamOptions(STREAM, (str(path),)), print):
        for i in range(len(b)):
            triples = range(b.start[i], b.start[i + 1])
            text = "".join(
                f"{b.terms[b.s[r]]} {b.terms[b.p[r]]} {b.terms[b.o[r]]} .\n" for r in triples
            )
            events.append((int(b.time[i]), int(b.k[i]), b.graph[i], text, None))
    return sorted(events, key=str)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [2000, 10**6])
def test_a_file_is_the_same_events_however_it_is_divided(
    rdf: Any, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "1.nq"
    path.write_text(nquads(SAME_TIMES, "n"))
    reader = rdf.read.format("rdf").option("stream", STREAM).option("maxPartitionBytes", size)
    frame = reader.load(str(path))
    assert (frame.rdd.getNumPartitions() > 5) == (size == 2000)
    assert events_of(frame.collect()) == in_process(path)


TIME = "http://www.w3.org/ns/prov#generatedAtTime"
TRIG = """@prefix e: <http://m.example/> . @prefix prov: <http://www.w3.org/ns/prov#> .
e:a prov:generatedAtTime "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
e:a { e:x e:p e:o }
"""
JSONLD = json.dumps(
    {
        "@id": "http://m.example/a",
        TIME: [{"@value": "2026-01-01T00:00:00Z", "@type": f"{XSD}dateTime"}],
        "@graph": [{"@id": "http://m.example/x", "http://m.example/p": 1}],
    }
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "text"), [("1.trig", TRIG), ("1.jsonld", JSONLD)], ids=["trig", "jsonld"]
)
def test_documents_that_arrive(rdf: Any, tmp_path: Path, name: str, text: str) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    (incoming / name).write_text(text)
    reader = rdf.readStream.format("rdf").option("stream", STREAM)
    frame = reader.option("log", str(tmp_path / "log")).load(str(incoming))
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(tmp_path / "rows"))
        .option("checkpointLocation", str(tmp_path / "state"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = {(e[0], e[3]) for e in events_of(rdf.read.parquet(str(tmp_path / "rows")).collect())}
    assert found == {(e[0], e[3]) for e in in_process(incoming / name)}
    assert len(found) == 1


def test_malformed_input_is_left_out_or_stops_the_run(rdf: Any, tmp_path: Path) -> None:
    path = tmp_path / "1.nq"
    path.write_text(nquads(NORTH) + "no quad\n")
    reader = rdf.read.format("rdf").option("stream", STREAM)
    assert reader.load(str(path)).count() == len(NORTH) - 1  # the event beside the line is bad
    with pytest.raises(PySparkException, match=f"{path.name}:{2 * len(NORTH) + 1}: "):
        reader.option("mode", "FAILFAST").load(str(path)).collect()


def test_an_option_that_does_not_exist_is_refused(rdf: Any, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no option timepredicat"):
        rdf.read.format("rdf").option("timePredicat", "x").load(str(tmp_path)).count()


def streamed(rdf: Any, directory: Path, state: Path, **options: object) -> list[Event]:
    """All rows that a run adds to a table until it has processed all files."""
    batches: list[Any] = []
    frame = (
        rdf.readStream.format("rdf")
        .options(stream=STREAM, log=str(state / "log"), **options)
        .load(str(directory))
    )
    query = (
        frame.writeStream.foreachBatch(lambda rows, _: batches.append(rows.collect()))
        .option("checkpointLocation", str(state / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    streamed.batches = len(batches)  # type: ignore[attr-defined]
    return events_of([row for rows in batches for row in rows])


@pytest.mark.thorough
def test_files_that_arrive_are_read_once_and_numbered_on(rdf: Any, tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    whole = tmp_path / "whole.nq"
    got: list[Event] = []
    for number, rows in enumerate((SAME_TIMES[:50], SAME_TIMES[50:])):
        text = nquads(rows, f"n{number}")
        put(directory / f"{number}.nq", text)
        with whole.open("a") as file:
            file.write(text)
        got += streamed(rdf, directory, tmp_path)
    assert streamed(rdf, directory, tmp_path) == []
    assert sorted(got, key=str) == in_process(whole)


@pytest.mark.thorough
def test_a_batch_takes_no_more_bytes_than_it_may(rdf: Any, tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    put(directory / "1.nq", nquads(SAME_TIMES, "n"))
    size = (directory / "1.nq").stat().st_size
    got = streamed(rdf, directory, tmp_path, maxBytesPerBatch=size // 4)
    assert 4 <= streamed.batches <= 6  # type: ignore[attr-defined]
    assert got == in_process(directory)


@pytest.mark.thorough
def test_files_that_grow_are_read_on(rdf: Any, tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    text = nquads(SAME_TIMES, "n")
    got: list[Event] = []
    for end in (len(text) // 3, len(text) // 2, len(text)):
        (directory / "1.nq").write_text(text[:end])
        got += streamed(rdf, directory, tmp_path, growing="true", settle="1 HOURS")
        assert 0 < len(got) < len(SAME_TIMES)
    got += streamed(rdf, directory, tmp_path, growing="true", settle="0 SECONDS")
    assert sorted(got, key=str) == in_process(directory)


@pytest.mark.thorough
def test_late_events_say_by_how_much(rdf: Any, tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    put(directory / "1.nq", nquads([*SOUTH, (4000, "m1", "stops", 1)], "s"))
    got = streamed(rdf, directory, tmp_path, watermark="5 SECONDS")
    assert [e[4] for e in got if e[4] is not None] == [500]
