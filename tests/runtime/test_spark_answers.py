"""`spaseq.spark.answers`: answers as a DataFrame."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

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
