"""Streams that are tables: the worked case `streams/trades-parquet`, and real streams as tables."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import spaseq
from spaseq.cli.main import cli

from .engine import Runtime, run
from .expected import STREAMS
from .raw import milliseconds, sorted_answers
from .real_expected import DATA, QUERIES, REAL, real_answers

CASE = STREAMS / "trades-parquet"
LIFT = CASE / "trades.lift.rq"
IRI = "http://trades.example/stream"
RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.spark)]


def falls() -> Iterator[tuple[str, str]]:
    """The events of each answer of the case's query, in order of the first."""
    rows = pq.read_table(CASE / "trades.parquet").to_pylist()
    for place, first in enumerate(rows):
        if first["sector"] != "energy" or first["volume"] < 600:
            continue
        for later in rows[place + 1 :]:
            same = later["ticker"] == first["ticker"] and later["volume"] > 0
            if same and later["price"] <= first["price"] * Decimal("0.97"):
                if later["time"] - first["time"] <= timedelta(minutes=30):
                    yield tuple(f"http://trades.example/trade/{r['id']}" for r in (first, later))  # type: ignore[misc]
                break


def traces(answers: Any) -> list[tuple[str, ...]]:
    return [tuple(item["event"] for item in answer["trace"]) for answer in answers]


def checked_in() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASE / "answers.jsonl").read_text().splitlines()]


def test_the_answers_are_those_of_a_loop_over_the_rows() -> None:
    assert 5 <= len(checked_in()) <= 30
    assert sorted(traces(checked_in())) == sorted(falls())


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_engine_gives_the_answers(runtime: Runtime) -> None:
    streams: Any = {IRI: spaseq.Lifted(CASE / "trades.parquet", LIFT)}
    assert run(CASE / "query.rq", streams, {}, runtime) == checked_in()


@pytest.mark.parametrize("form", ["nquads", "trig", "rdfm"])
def test_the_graphs_themselves_have_the_same_answers(form: str, tmp_path: Path) -> None:
    words = ["lift", str(LIFT), str(CASE / "trades.parquet"), "--format", form]
    path = tmp_path / f"trades.{ {'nquads': 'nq'}.get(form, form) }"
    path.write_text(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
    assert run(CASE / "query.rq", {IRI: path}, {}, "local") == checked_in()


def test_the_table_is_what_the_script_makes() -> None:
    made = runpy.run_path(str(CASE / "generate.py"))["trades"]()
    assert pq.read_table(CASE / "trades.parquet").equals(made)


# --- real streams -----------------------------------------------------------------------------

HEAD = "PREFIX prov: <http://www.w3.org/ns/prov#>\n"
STOCKS = HEAD + (
    """PREFIX : <http://stocks.example/>
CONSTRUCT {
  GRAPH ?event { ?event :ticker ?company ; :open ?open ; :high ?high ; :low ?low ;
    :close ?close ; :volume ?volume }
  ?event prov:generatedAtTime ?time
}
WHERE {
  BIND (IRI(CONCAT("http://stocks.example/b/", STR(?id))) AS ?event)
  BIND (IRI(CONCAT("http://stocks.example/t/", ?ticker)) AS ?company)
}"""
)
CARDS = HEAD + (
    """PREFIX : <http://example/>
CONSTRUCT {
  GRAPH ?event { ?card :id ?card_id ; :amount ?amount } ?event prov:generatedAtTime ?time
}
WHERE {
  BIND (IRI(CONCAT("http://cards.example/t/", STR(?id))) AS ?event)
  BIND (IRI(CONCAT("http://example/card#", ?card_id)) AS ?card)
}"""
)
REAL_TABLES = {"v-shape": STOCKS, "card-fraud": CARDS}


def table(path: Path, most: int) -> pa.Table:
    """The first events of a stream of N-Quads as rows: a column for each predicate."""
    rows: dict[str, dict[str, Any]] = {}
    for line in path.open():
        subject, predicate, value, *graph = line.split(" ")
        event = subject if graph == [".\n"] else graph[0]
        number = int(event[:-1].rpartition("/")[2])
        if number > most:
            break
        row = rows.setdefault(event, {"id": number})
        name = predicate[1:-1].replace("#", "/").rpartition("/")[2]
        text, _, kind = value.partition("^^")
        name = {"generatedAtTime": "time", "id": "card_id"}.get(name, name)
        row[name] = _python(text, kind)
    return pa.Table.from_pylist([*rows.values()])


def _python(text: str, kind: str) -> Any:
    if text[0] == "<":
        return text[1:-1].rpartition("/")[2]
    value = text[1:-1]
    if "dateTime" in kind:
        return datetime.fromisoformat(value)
    return float(value) if "double" in kind else int(value) if "integer" in kind else value


REALLY = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}")
ON_SPARK = [pytest.mark.spark, pytest.mark.thorough]


@REALLY
@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=ON_SPARK)])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("name", REAL_TABLES)
def test_a_real_stream_as_a_table_has_the_same_answers(
    name: str, ending: str, runtime: Runtime, tmp_path: Path
) -> None:
    case = REAL[name]
    ((iri, path),) = case.streams.items()
    rows = table(path, 10**9)
    if ending == "parquet":
        pq.write_table(rows, tmp_path / "t.parquet")
    else:
        with pa.ipc.new_file(tmp_path / "t.arrow", rows.schema) as file:
            file.write_table(rows)
    streams: Any = {iri: spaseq.Lifted(tmp_path / f"t.{ending}", REAL_TABLES[name])}
    found = run(QUERIES / f"{name}.rq", streams, case.kb, runtime, case.ontology)
    expected = sorted_answers(real_answers(name))
    for key in ("start", "end", "trace"):
        assert [answer[key] for answer in found] == [answer[key] for answer in expected]
    assert len(found) > 10


@REALLY
@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("parts", [None, 3])
@pytest.mark.parametrize("name", REAL_TABLES)
def test_a_real_stream_as_a_dataframe_has_the_same_answers(
    spark: Any, name: str, parts: int | None, tmp_path: Path
) -> None:
    case = REAL[name]
    ((iri, path),) = case.streams.items()
    pq.write_table(table(path, 10**9), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    if parts is not None:
        frame = frame.repartition(parts)  # any row may be in any partition
    ontology = {} if case.ontology is None else {"ontology": case.ontology, "entailment": "rdfs"}
    found = spaseq.spark.answers(
        spark,
        QUERIES / f"{name}.rq",
        {iri: frame},
        case.kb,
        lifts={iri: REAL_TABLES[name]},
        order={iri: "id"},
        **ontology,
    )
    got = [
        [_ms(row.start), _ms(row.end), *((t.gpm, t.event, _ms(t.time), t.k) for t in row.trace)]
        for row in found.collect()
    ]
    assert sorted(got) == sorted(
        [
            milliseconds(answer["start"]),
            milliseconds(answer["end"]),
            *((t["gpm"], t["event"], milliseconds(t["time"]), t["k"]) for t in answer["trace"]),
        ]
        for answer in real_answers(name)
    )


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
