"""The data sink `spaseq` writes each batch's answers once, despite interruptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.errors import RunError, UsageError
from spaseq.runtime.spark.connectors.answer_sink import (
    SUFFIXES,
    AnswerDataSink,
    AnswerFiles,
    AnswerStreamWriter,
)
from spaseq.runtime.spark.rows.answer_rows import answer_columns, answer_of_row
from spaseq.sinks import SINKS

SELECTED = Answer(
    (1000, 0), (3000, 0), (TraceItem(1000, 2, "A", "http://s", "http://e/1"),), (("x", '"1"'),)
)
CONSTRUCTED = Answer(
    (1000, 0),
    (2000, 0),
    (),
    (),
    graph=(("<http://s>", "<http://p>", '"o"'),),
    event="http://e/made",
)


def rows(*answers: Answer) -> Any:
    return iter([answer_columns("q", answers)])


def test_a_row_says_what_the_answer_says() -> None:
    for answer in (SELECTED, CONSTRUCTED):
        [batch] = rows(answer)
        assert answer_of_row(batch.to_pylist()[0]) == answer


def lines(directory: Path, suffix: str = "jsonl") -> list[str]:
    """The lines that a reader of the directory finds."""
    found = sorted(p for p in directory.glob(f"*.{suffix}") if p.name[0] != "_")
    return [line for path in found for line in path.read_text().splitlines()]


@pytest.fixture
def writer(tmp_path: Path) -> AnswerStreamWriter:
    return AnswerStreamWriter(AnswerFiles(tmp_path / "out", "jsonl"))


def test_nothing_is_seen_before_it_is_committed(writer: AnswerStreamWriter, tmp_path: Path) -> None:
    written = writer.write(rows(SELECTED))
    assert lines(tmp_path / "out") == []
    writer.commit([written, None, writer.write(rows())], 0)
    [line] = lines(tmp_path / "out")
    assert json.loads(line)["bindings"] == {"x": {"type": "literal", "value": "1"}}


def test_a_batch_that_was_committed_stays_as_it_is(
    writer: AnswerStreamWriter, tmp_path: Path
) -> None:
    writer.commit([writer.write(rows(SELECTED))], 0)
    before = lines(tmp_path / "out")
    writer.commit([writer.write(rows(SELECTED, SELECTED))], 0)
    assert lines(tmp_path / "out") == before
    writer.commit([writer.write(rows(SELECTED))], 1)
    assert len(lines(tmp_path / "out")) == 2


def test_what_an_interrupted_commit_left_is_replaced(
    writer: AnswerStreamWriter, tmp_path: Path
) -> None:
    writer.commit([writer.write(rows(SELECTED))], 0)
    writer.commit([writer.write(rows(SELECTED)), writer.write(rows(SELECTED))], 1)
    # Killed before the batch was marked as committed.
    (tmp_path / "out" / "_committed.json").write_text('{"batch": 0}')
    writer.commit([writer.write(rows(SELECTED))], 1)
    assert len(lines(tmp_path / "out")) == 2


def test_the_output_of_another_run_is_not_mixed_with(
    writer: AnswerStreamWriter, tmp_path: Path
) -> None:
    writer.commit([writer.write(rows(SELECTED))], 7)
    with pytest.raises(RunError, match="another checkpoint"):
        writer.commit([writer.write(rows(SELECTED))], 0)
    assert len(lines(tmp_path / "out")) == 1


def test_graphs_can_be_read_as_a_stream_again(tmp_path: Path) -> None:
    writer = AnswerStreamWriter(AnswerFiles(tmp_path, "nquads"))
    writer.commit([writer.write(rows(CONSTRUCTED))], 0)
    assert lines(tmp_path, "nq") == [
        '<http://s> <http://p> "o" <http://e/made> .',
        "<http://e/made> <http://www.w3.org/ns/prov#generatedAtTime> "
        '"1970-01-01T00:00:02Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .',
    ]


def test_a_table_has_the_columns_that_are_named(tmp_path: Path) -> None:
    writer = AnswerStreamWriter(AnswerFiles(tmp_path, "csv", ("y", "x")))
    writer.commit([writer.write(rows(SELECTED, SELECTED))], 0)
    assert lines(tmp_path, "csv") == ["y,x", ",1", ",1"]


def test_every_format_is_offered_and_tables_need_variables() -> None:
    assert {form for form, sink in SINKS.items() if not sink.binary} < set(SUFFIXES)
    options = {"path": "out", "form": "tsv"}
    with pytest.raises(UsageError, match="name its columns"):
        AnswerDataSink(options).streamWriter(StructType(), False)
    with pytest.raises(UsageError, match="forms are jsonl, json, csv"):
        AnswerDataSink({"path": "out", "form": "xml"}).streamWriter(StructType(), False)


def test_parquet_keeps_the_columns(tmp_path: Path) -> None:
    writer = AnswerStreamWriter(AnswerFiles(tmp_path, "parquet"))
    writer.commit([writer.write(rows(SELECTED, CONSTRUCTED))], 0)
    assert pq.read_table(tmp_path / "batch-000000000-00000.parquet").to_pylist() == [
        row for batch in rows(SELECTED, CONSTRUCTED) for row in batch.to_pylist()
    ]
