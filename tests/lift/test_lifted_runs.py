"""A lifted stream gives the answers of the stream of its graphs, whatever the rows come in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import spaseq
from spaseq.cli.main import cli
from spaseq.rdf.inputs.stream_options import BadInput

LIFT = """PREFIX ex: <http://e/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { GRAPH ?e { ?c ex:price ?price } ?e prov:generatedAtTime ?at }
WHERE { BIND (IRI(CONCAT("http://e/trade/", STR(?id))) AS ?e)
        BIND (IRI(CONCAT("http://e/", ?name)) AS ?c)
        FILTER (?price > 0) }"""

QUERY = """PREFIX ex: <http://e/>
SELECT ?c ?low ?high WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE { SEQ(A ; B)
  DEFINE GPM A ON S { ?c ex:price ?low }
  DEFINE GPM B ON S { ?c ex:price ?high FILTER (?high > ?low) } }"""

ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "a", "price": 5, "at": 1000},
    {"id": 2, "name": "a", "price": 0, "at": 1500},
    {"id": 3, "name": "b", "price": 9, "at": 2000},
    {"id": 4, "name": "a", "price": 7, "at": 3000},
    {"id": 5, "name": "a b", "price": 8, "at": 4000},
    {"id": 6, "name": "b", "price": 10, "at": 5000},
]
ANSWERS = [("<http://e/a>", 5, 7), ("<http://e/b>", 9, 10)]


def answers(data: Any, lift: str | Path = LIFT, runtime: str = "local", **more: Any) -> list[Any]:
    bad: list[BadInput] = []
    types = {"id": "integer", "price": "integer", "at": "integer"}
    streams = {"S": spaseq.Lifted(data, lift, types if str(data).endswith(".csv") else None)}
    found = list(spaseq.run(QUERY, streams, runtime=runtime, on_bad=bad.append, **more))
    reason = 'the event has no triple besides its time: ?c has no value, field name is "a b"'
    assert [b.reason for b in bad] == [reason]
    return sorted(
        (m.bindings["c"].n3(), m.bindings["low"].to_python(), m.bindings["high"].to_python())
        for m in found
    )


def parquet(path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), path / "t.parquet", row_group_size=2)
    return path / "t.parquet"


def csv(path: Path) -> str:
    pd.DataFrame(ROWS).to_csv(path / "t.csv", index=False)
    return str(path / "t.csv")


def json_lines(path: Path) -> list[Path]:
    for number, row in enumerate(ROWS):
        pd.DataFrame([row]).to_json(path / f"{number}.jsonl", orient="records", lines=True)
    return [path / f"{number}.jsonl" for number in range(len(ROWS))]


INPUTS: list[Callable[[Path], Any]] = [
    parquet,
    csv,
    json_lines,
    lambda _: ROWS,
    lambda _: iter(ROWS),
    lambda _: pd.DataFrame(ROWS),
    lambda _: pl.DataFrame(ROWS),
    lambda _: pa.Table.from_pylist(ROWS),
    lambda _: pa.Table.from_pylist(ROWS).to_reader(2),
]


@pytest.mark.parametrize("make", INPUTS)
def test_input(make: Callable[[Path], Any], tmp_path: Path) -> None:
    assert answers(make(tmp_path)) == ANSWERS


def test_the_lift_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.lift.rq").write_text(LIFT)
    assert answers(ROWS, tmp_path / "a.lift.rq") == ANSWERS


def test_equal_answers_over_the_graphs_themselves(tmp_path: Path) -> None:
    (tmp_path / "a.lift.rq").write_text(LIFT)
    for form, name in (("nquads", "t.nq"), ("trig", "t.trig"), ("rdfm", "t.rdfm")):
        words = ["lift", str(tmp_path / "a.lift.rq"), str(parquet(tmp_path)), "--format", form]
        (tmp_path / name).write_text(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
        found = spaseq.run(QUERY, {"S": tmp_path / name}, runtime="local")
        assert (
            sorted(
                (
                    m.bindings["c"].n3(),
                    m.bindings["low"].to_python(),
                    m.bindings["high"].to_python(),
                )
                for m in found
            )
            == ANSWERS
        )


def test_events_without_names_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.lift.rq").write_text(
        LIFT.replace("GRAPH ?e {", "").replace("} ?e prov", ". ?c prov")
    )
    words = ["lift", str(tmp_path / "a.lift.rq"), str(parquet(tmp_path))]
    (tmp_path / "t.nq").write_text(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
    found = list(spaseq.run(QUERY, {"S": tmp_path / "t.nq"}, runtime="local"))
    assert len(found) == 2


def test_null_of_pandas(tmp_path: Path) -> None:
    rows = [{**row, "price": None if row["id"] == 3 else row["price"]} for row in ROWS]
    assert answers(pd.DataFrame(rows)) == [("<http://e/a>", 5, 7)]


def test_several_streams_lifted_and_not(tmp_path: Path) -> None:
    query = QUERY.replace(
        "FROM STREAM S <http://e/s>", "FROM STREAM S <http://e/s> FROM STREAM T <http://e/t>"
    )
    query = query.replace("GPM B ON S", "GPM B ON T")
    graph = '<http://e/a> <http://e/price> "6"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    streams = {"S": spaseq.Lifted(ROWS, LIFT), "T": [spaseq.Event(graph, 2000)]}
    found = list(spaseq.run(query, streams, runtime="local", on_bad=lambda _: None))
    assert [m.bindings["low"].to_python() for m in found] == [5]


@pytest.mark.parametrize(
    ("data", "lift", "error"),
    [
        (5, LIFT, spaseq.errors.UsageError),
        ([5], LIFT, spaseq.errors.UsageError),
        ("nowhere.csv", LIFT, spaseq.errors.InputError),
        (ROWS, LIFT.replace("FILTER", "FILTR"), spaseq.errors.QueryError),
        (ROWS, Path("nowhere.rq"), spaseq.errors.InputError),
        (pa.table({"x": [1]}), LIFT, spaseq.errors.InputError),
    ],
)
def test_refusals(data: Any, lift: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        list(spaseq.run(QUERY, {"S": spaseq.Lifted(data, lift)}, runtime="local"))


@pytest.mark.parametrize("more", [(), ("--types", "S=id=integer,price=integer,at=integer")])
def test_command(more: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "a.lift.rq").write_text(LIFT)
    data = csv(tmp_path) if more else str(parquet(tmp_path))
    words = ["run", str(tmp_path / "q.rq"), "--runtime", "local", "--format", "csv", *more]
    for lift in (f"S={tmp_path / 'a.lift.rq'}", str(tmp_path / "a.lift.rq")):
        done = CliRunner().invoke(
            cli, [*words, "--stream", f"S={data}", "--lift", lift], standalone_mode=False
        )
        assert done.exception is None
        assert done.stdout.splitlines() == ["c,low,high", "http://e/a,5,7", "http://e/b,9,10"]


def test_rows_without_a_lift_are_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(spaseq.errors.InputError, match="rows need a lift"):
        list(spaseq.run(QUERY, {"S": csv(tmp_path)}, runtime="local"))


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("make", [parquet, csv, lambda _: iter(ROWS), lambda _: pl.DataFrame(ROWS)])
def test_on_spark(make: Callable[[Path], Any], tmp_path: Path, spark: Any) -> None:
    assert answers(make(tmp_path), runtime="spark") == ANSWERS


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("prices", [(5, 0, 7, 0), (0, 0, 0)])
def test_rows_that_are_no_events_are_counted(
    runtime: Any, prices: tuple[int, ...], tmp_path: Path
) -> None:
    lift = LIFT
    row = ROWS[0]
    rows = [{**row, "id": n, "price": price} for n, price in enumerate(prices)]
    stats = spaseq.Stats()
    given = [spaseq.Lifted(rows, lift), spaseq.Lifted(pa.table(pd.DataFrame(rows)), lift)]
    for data in given:
        stats = spaseq.Stats()
        list(spaseq.run(QUERY, {"S": data}, runtime=runtime, stats=stats))
        assert (stats.filtered, stats.events) == (prices.count(0), len(prices) - prices.count(0))


def test_why_nothing_is_left_of_rows() -> None:
    rows = [{**row, "price": 0} for row in ROWS]
    report = spaseq.why(QUERY, {"S": spaseq.Lifted(rows, LIFT)})
    assert [cause.kind for cause in report.causes] == ["no-events"]


def test_a_literal_beyond_the_limit_makes_its_row_bad() -> None:
    lift = """PREFIX ex: <http://e/> PREFIX prov: <http://www.w3.org/ns/prov#>
    CONSTRUCT { ex:s ex:p ?text ; ex:q ?twice ; prov:generatedAtTime ?at }
    WHERE { BIND (CONCAT(?text, ?text) AS ?twice) }"""
    query = """SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s>
    WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?v } }"""
    rows = [{"at": n, "text": "ä" * n} for n in (3, 20, 30, 4)]
    bad: list[Any] = []
    limits = spaseq.Limits(literal_bytes=50)
    found = spaseq.run(
        query, {"S": spaseq.Lifted(rows, lift)}, runtime="local", limits=limits, on_bad=bad.append
    )
    assert [match.bindings["v"].to_python() for match in found] == ["äää", "ääää"]
    assert [one.reason for one in bad] == [
        f"a literal of {size} bytes; the limit is 50 (--max-literal)" for size in (80, 60)
    ]
    with spaseq.Engine(query, lifts={"S": lift}, limits=limits) as engine:
        with pytest.raises(spaseq.errors.InputError, match="max-literal"):
            engine.push("S", rows[1])
        engine.close()


def test_streams_share_no_blank_node() -> None:
    lift = """PREFIX ex: <http://e/> PREFIX prov: <http://www.w3.org/ns/prov#>
    CONSTRUCT { [] ex:v ?v ; prov:generatedAtTime ?at } WHERE { }"""
    query = """SELECT ?v ?w WITHIN 1 HOURS FROM STREAM S <http://e/s> FROM STREAM T <http://e/t>
    WHERE { SEQ(A: B) DEFINE GPM A ON S { ?x <http://e/v> ?v }
            DEFINE GPM B ON T { %s <http://e/v> ?w } }"""
    streams = {
        name: spaseq.Lifted([{"v": n, "at": 1000 * n + (name == "T")} for n in range(3)], lift)
        for name in "ST"
    }
    assert len(list(spaseq.run(query % "?y", streams, runtime="local"))) == 6
    assert list(spaseq.run(query % "?x", streams, runtime="local")) == []
