"""`--time-unit s`, whatever brings the events: the answers of the same ones in milliseconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spaseq.cli.main import cli
from spaseq.logs.messages import Message
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.live.stream_events import message_events
from spaseq.sources import files as source_files
from tests.runtime.live.live_jobs import lines
from tests.runtime.live.test_sources_without_places import Command

SECOND = 1_700_000_000
XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
QUERY = """PREFIX : <http://example/> SELECT ?x WITHIN 9 SECONDS PARTITION BY ?x
FROM STREAM S <http://example/s> WHERE { SEQ(A; B) DEFINE GPM A ON S { ?x :is "hot" }
DEFINE GPM B ON S { ?x :is "cold" } }"""


def text(count: int, factor: int) -> str:
    """Events that are a second apart; integers of a second are `factor`."""
    found = []
    for n in range(count):
        state, at = ("hot", "cold", "cold")[n % 3], (SECOND + n) * factor
        found.append(f'<http://example/x{n % 5}> <http://example/is> "{state}" <e:g{n}> .\n')
        found.append(f'<e:g{n}> <{TIME}> "{at}"^^<{XSD}integer> .\n')
    return "".join(found)


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    """The query, and files with the same events in seconds and milliseconds."""
    found = {"q": tmp_path / "q.rq", "s": tmp_path / "s.nq", "ms": tmp_path / "ms.nq"}
    found["q"].write_text(QUERY)
    for unit, factor in (("s", 1), ("ms", 1000)):
        found[unit].write_text(text(60, factor))
    return found


def said(*arguments: Any) -> str:
    result = CliRunner().invoke(cli, [*map(str, arguments)], prog_name="spaseq")
    assert result.exit_code == 0, result.output
    return result.stdout


def answers(paths: dict[str, Path]) -> list[str]:
    """Those of the events in milliseconds."""
    found = said("run", paths["q"], "--runtime", "local", "--stream", f"S={paths['ms']}")
    assert len(found.splitlines()) > 5
    return found.splitlines()


def test_why_and_check_take_the_unit(paths: dict[str, Path]) -> None:
    given = "--stream", f"S={paths['s']}"
    found = said("why", paths["q"], *given, "--time-unit", "s")
    assert "2023-11-14T22:13:20" in found
    assert "1970" in said("why", paths["q"], *given)
    said("check", paths["q"], *given, "--time-unit", "s")


def test_messages_of_brokers_have_the_unit() -> None:
    message = Message(text(3, 1).encode(), 0, 0)
    for unit, factor in (("s", 1000), ("ms", 1)):
        options = StreamOptions("http://example/s", (), time_unit=unit)
        bad = list[BadInput]()
        (batch,) = message_events([message], options, "broker", bad.append)
        assert ["--time-unit s" in one.reason for one in bad] == [True] * (unit == "ms")
        assert batch.time.tolist() == [(SECOND + n) * factor for n in range(3)]


def test_a_file_that_is_followed_has_the_unit(paths: dict[str, Path], tmp_path: Path) -> None:
    expected, seconds = answers(paths), paths["s"].read_text()
    paths["s"].write_text(seconds[:900])
    run = Command(tmp_path, str(paths["s"]), "--time-unit", "s")
    paths["q"].write_text(QUERY)
    run.start()
    with paths["s"].open("a") as file:
        # What is far ahead lets all answers be final.
        file.write(seconds[900:] + text(1, 2).replace("e:g0", "e:end"))
    run.until(lambda: len(lines(run.out)) >= len(expected))
    run.stop()
    found = [{k: v for k, v in json.loads(one).items() if k != "id"} for one in lines(run.out)]
    assert found[: len(expected)] == [json.loads(one) for one in expected]
    assert not lines(run.bad)


@pytest.mark.spark
@pytest.mark.thorough
def test_splits_of_a_file_on_spark_have_the_unit(
    spark: Any, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(paths)
    monkeypatch.setattr(source_files, "SPLIT_BYTES", 1500)
    given = "--stream", f"S={paths['s']}", "--time-unit", "s"
    assert said("run", paths["q"], "--runtime", "spark", *given).splitlines() == expected


@pytest.mark.spark
@pytest.mark.thorough
def test_a_streaming_frame_has_the_unit(spark: Any, tmp_path: Path) -> None:
    import spaseq

    (folder := tmp_path / "in").mkdir()
    rows = [
        {"time": SECOND + n, "graph": f'<http://example/x> <http://example/is> "{state}" .'}
        for n, state in enumerate(("hot", "cold", "x"))
    ]
    schema = "stream string, time bigint, graph string"
    text = "\n".join(json.dumps({"stream": "http://example/s", **row}) for row in rows)
    (folder / "rows.json").write_text(text)
    frame = spark.readStream.schema(schema).json(str(folder))
    for unit, year in (("s", 2023), ("ms", 1970)):
        found = spaseq.spark.answers(
            spark, QUERY, frame, time_unit=unit, checkpoint=str(tmp_path / unit)
        )
        query = found.writeStream.format("memory").queryName(f"unit_{unit}").start()
        query.processAllAvailable()
        query.stop()
        (row,) = spark.table(f"unit_{unit}").collect()
        assert row["start"].year == year
