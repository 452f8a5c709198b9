"""Integer times are milliseconds or seconds, as `time_unit` says, whatever reads them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spaseq
from spaseq.errors import UsageError
from spaseq.rdf.inputs import stream_options
from spaseq.rdf.inputs.stream_options import StreamOptions

TIME = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"
SECOND = 1_700_000_000  # 2023-11-14T22:13:20Z
MEANT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
AS_MS = datetime(1970, 1, 20, 16, 13, 20, tzinfo=UTC)
Unit: TypeAlias = Literal["s", "ms"]
UNITS: list[tuple[Unit, datetime]] = [("s", MEANT), ("ms", AS_MS)]
QUERY = """PREFIX : <http://e/> SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?o :p ?v } }"""
LIFT = f"CONSTRUCT {{ <http://e/o> <http://e/p> ?v ; <{TIME}> ?t }} WHERE {{ BIND(%s AS ?t) }}"
CAST = LIFT % f"<{XSD}integer>(?at)"
AS_IT_IS = LIFT % "?at"

Stream = Callable[[Path, str], Any]


def write(text: str) -> str:
    """The text with an integer as every format has it."""
    return text.replace(" 7 ", f' "7"^^<{XSD}integer> ')


def _file(name: str, text: str) -> Stream:
    def made(directory: Path, time: str) -> Any:
        (directory / name).write_text(write(text).replace("TIME", time))
        return directory / name

    return made


def _table(make: Callable[[Path, dict[str, list[Any]]], Any], lift: str) -> Stream:
    def made(directory: Path, time: str) -> Any:
        at = datetime.fromisoformat(time[1:21]) if "dateTime" in time else SECOND
        return spaseq.Lifted(make(directory, {"v": [7, 8], "at": [at, at]}), lift)

    return made


def _parquet(directory: Path, rows: dict[str, list[Any]]) -> Path:
    pq.write_table(pa.table(rows), directory / "rows.parquet")
    return directory / "rows.parquet"


def _json(directory: Path, rows: dict[str, list[Any]]) -> Path:
    lines = [json.dumps({"v": 7, "at": rows["at"][0]}, default=str)] * 2
    (directory / "rows.jsonl").write_text("\n".join(lines))
    return directory / "rows.jsonl"


def _csv(directory: Path, rows: dict[str, list[Any]]) -> Path:
    (directory / "rows.csv").write_text(f"v,at\n7,{rows['at'][0]}\n8,{rows['at'][0]}\n")
    return directory / "rows.csv"


STREAMS: dict[str, Stream] = {
    "N-Quads": _file("s.nq", f"<e:o> <http://e/p> 7 <e:g> .\n<e:g> <{TIME}> TIME .\n"),
    "N-Quads, before": _file("s.nq", f"<e:g> <{TIME}> TIME .\n<e:o> <http://e/p> 7 <e:g> .\n"),
    "N-Quads, inside": _file(
        "s.nq", f"<e:o> <http://e/p> 7 <e:g> .\n<e:g> <{TIME}> TIME <e:g> .\n"
    ),
    "N-Triples": _file("s.nt", f"<e:o> <http://e/p> 7 .\n<e:o> <{TIME}> TIME .\n"),
    "TriG": _file("s.trig", f"<e:g> {{ <e:o> <http://e/p> 7 }} <e:g> <{TIME}> TIME ."),
    "Turtle": _file("s.ttl", f"<e:o> <http://e/p> 7 ; <{TIME}> TIME ."),
    "messages": _file(
        "s.ttl", f'VERSION "1.2-messages"\n<e:o> <http://e/p> 7 ; <{TIME}> TIME .\nMESSAGE\n'
    ),
    "Parquet, columns": _table(_parquet, AS_IT_IS),
    "Parquet, cast": _table(_parquet, CAST),
    "Arrow": _table(lambda _, rows: pa.table(rows), AS_IT_IS),
    "JSON": _table(_json, AS_IT_IS),
    "CSV": _table(_csv, CAST),
    "rows": _table(lambda _, rows: [{"v": 7, "at": rows["at"][0]}], AS_IT_IS),
}
INTEGER = f'"{SECOND}"^^<{XSD}integer>'
EARLY = f'"1970-01-20T16:13:20Z"^^<{XSD}dateTime>'


@pytest.fixture(autouse=True)
def nothing_was_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_options, "_WARNED", set())


def remarks(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings about times."""
    found = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    return [text for text in found if "--time-unit s" in text]


def times(streams: dict[str, Any], **options: Any) -> Iterator[datetime]:
    """The times of a run's answers."""
    local = {"runtime": "local"} | options
    for match in spaseq.run(QUERY, streams, triples_per_event=2, **local):
        yield match.start


@pytest.mark.parametrize("kind", STREAMS)
def test_integers_count_what_the_unit_says(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = STREAMS[kind](tmp_path, INTEGER)
    assert set(times({"S": given}, time_unit="s")) == {MEANT}
    assert remarks(caplog) == []
    assert set(times({"S": given})) == {AS_MS}
    assert set(times({"S": given})) == {AS_MS}
    (warning,) = remarks(caplog)
    assert "stream <http://e/s>" in warning
    assert "1700000000" in warning
    assert "2023-11-14T22:13:20Z" in warning


@pytest.mark.parametrize(
    "kind", [k for k in STREAMS if k not in ("CSV", "JSON", "Parquet, cast", "rows")]
)
def test_a_date_time_is_what_it_says_in_all_units(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = STREAMS[kind](tmp_path, EARLY)
    assert set(times({"S": given})) == set(times({"S": given}, time_unit="s")) == {AS_MS}
    assert remarks(caplog) == []


def test_events_of_programs_have_the_unit(caplog: pytest.LogCaptureFixture) -> None:
    graph = write("<http://e/o> <http://e/p> 7 .")
    given = [spaseq.Event(graph, SECOND), spaseq.Event(graph, SECOND)]
    assert set(times({"S": given}, time_unit="s")) == {MEANT}
    assert not remarks(caplog)
    assert set(times({"S": given})) == {AS_MS}
    assert len(remarks(caplog)) == 1
    assert set(times({"S": [spaseq.Event(graph, AS_MS)]}, time_unit="s")) == {AS_MS}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("lifted", [False, True])
def test_pushed_times_have_the_unit(
    many: bool, lifted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    graph = write("<http://e/o> <http://e/p> 7 .")
    for warnings, (unit, expected) in enumerate(UNITS):
        lifts = {"S": AS_IT_IS} if lifted else None
        with spaseq.Engine(QUERY, lifts=lifts, time_unit=unit) as engine:
            event = {"v": 7, "at": SECOND} if lifted else spaseq.Event(graph, SECOND)
            if many:
                found = engine.push_many([("S", event)] * 40)
            elif lifted:
                found = engine.push("S", event)
            else:
                found = engine.push("S", graph, SECOND)
            found = [*found, *engine.advance(SECOND + 5)]
            assert {match.start for match in found} == {expected}
        assert len(remarks(caplog)) == warnings


@pytest.mark.parametrize(
    "time", [0, 86_400, 315_532_799, 4_102_444_800, 1_700_000_000_000, -SECOND]
)
def test_other_integers_are_no_seconds(
    time: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = STREAMS["N-Quads"](tmp_path, INTEGER.replace(str(SECOND), str(time)))
    assert len(list(times({"S": given}))) == 1
    assert not remarks(caplog)


def test_seconds_that_are_too_far_are_bad(tmp_path: Path) -> None:
    far = INTEGER.replace(str(SECOND), str(2**62 // 1000 + 1))
    for kind in ("N-Quads", "TriG"):
        assert not list(times({"S": STREAMS[kind](tmp_path, far)}, time_unit="s"))


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="ms or s"):
        StreamOptions("http://e/s", (), time_unit="us")


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["N-Quads", "TriG", "CSV", "Parquet, columns"])
def test_the_same_on_spark(spark: Any, kind: str, tmp_path: Path) -> None:
    given = STREAMS[kind](tmp_path, INTEGER)
    for unit, expected in UNITS:
        lifts = {"S": given.lift} if isinstance(given, spaseq.Lifted) else {}
        data = given.data if lifts else given
        found = spaseq.spark.answers(
            spark, QUERY, {"S": str(data)}, lifts=lifts, time_unit=unit
        ).collect()
        assert {row["start"].astimezone(UTC) for row in found} == {expected}


@pytest.mark.spark
@pytest.mark.thorough
def test_integers_of_a_data_frame_have_the_unit(spark: Any) -> None:
    graph = write("<http://e/o> <http://e/p> 7 .")
    frame = spark.createDataFrame(
        [("http://e/s", SECOND, graph)], "stream string, time bigint, graph string"
    )
    for unit, expected in UNITS:
        found = spaseq.spark.answers(spark, QUERY, frame, time_unit=unit).collect()
        assert {row["start"].astimezone(UTC) for row in found} == {expected}
