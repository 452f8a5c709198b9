"""Lifts of many rows, from every kind of table into every format, against plain loops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from click.testing import CliRunner
from pyarrow import feather

from spaseq.cli.main import cli
from tests.sizes import SLOW, THOROUGH

LIFT = """PREFIX ex: <http://e/>
PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { GRAPH ?e { ?c ex:value ?value } ?e prov:generatedAtTime ?at }
WHERE { BIND (IRI(CONCAT("http://e/event/", STR(?id))) AS ?e)
        BIND (IRI(CONCAT("http://e/sensor/", ?sensor)) AS ?c)
        FILTER (?value > 1) }"""
BODY = """WITHIN 5 SECONDS FROM STREAM S <http://e/s> WHERE { SEQ(A : B)
  DEFINE GPM A ON S { ?c ex:value ?low }
  DEFINE GPM B ON S { ?c ex:value ?high FILTER (?high > ?low) } }"""
SELECT = f"PREFIX ex: <http://e/> SELECT ?c ?low ?high {BODY}"
CONSTRUCT = f"PREFIX ex: <http://e/> CONSTRUCT {{ ?c ex:rose ?high ; ex:from ?low }} {BODY}"
STEP_MS, WINDOW_MS = 70, 5000  # no two rows are exactly a window apart

Pair = tuple[str, int, int]
"""(sensor, lower value, higher value) of an answer."""
Traced = tuple[Pair, tuple[str, str]]
"""The same with the names of both events."""


@dataclass(frozen=True)
class Row:
    """A measurement."""

    id: int
    sensor: str
    value: int
    at: int  # ms


@cache
def rows_of(size: int) -> list[Row]:
    """Measurements of 40 sensors."""
    random = Random(size)
    return [
        Row(10_000 + i, f"s{random.randrange(40)}", random.randrange(100), i * STEP_MS)
        for i in range(size)
    ]


@cache
def expected(size: int) -> list[Traced]:
    """The pairs of rising values, as a loop over the rows finds them."""
    found: list[Traced] = []
    rows = [row for row in rows_of(size) if row.value > 1]
    for place, high in enumerate(rows):
        for low in reversed(rows[:place]):
            if high.at - low.at > WINDOW_MS:
                break
            if low.sensor == high.sensor and low.value < high.value:
                names = f"http://e/event/{low.id}", f"http://e/event/{high.id}"
                pair = f"http://e/sensor/{high.sensor}", low.value, high.value
                found.append((pair, names))
    return sorted(found)


def _records(size: int) -> list[dict[str, Any]]:
    return [vars(row) for row in rows_of(size)]


def _csv(path: Path, size: int) -> None:
    pd.DataFrame(_records(size)).to_csv(path, index=False)


def _tsv(path: Path, size: int) -> None:
    pd.DataFrame(_records(size)).to_csv(path, index=False, sep="\t")


def _jsonl(path: Path, size: int) -> None:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in _records(size)))


def _parquet(path: Path, size: int) -> None:
    pq.write_table(pa.Table.from_pylist(_records(size)), path, row_group_size=7_000)


def _arrow(path: Path, size: int) -> None:
    feather.write_feather(pa.Table.from_pylist(_records(size)), str(path))


TABLES: dict[str, Callable[[Path, int], None]] = {
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "arrow": _arrow,
}


def _plain(rows: Iterable[dict[str, Any]]) -> list[Pair]:
    """Answers whose columns have plain values."""
    return sorted((row["c"], int(row["low"]), int(row["high"])) for row in rows)


def _of_csv(path: Path) -> list[Pair]:
    return _plain(pd.read_csv(path).to_dict("records"))


def _of_tsv(path: Path) -> list[Pair]:
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    assert lines[0] == ["?c", "?low", "?high"]
    rows = [[c[1:-1], *(text.split('"')[1] for text in numbers)] for c, *numbers in lines[1:]]
    return _plain(dict(zip(("c", "low", "high"), row, strict=True)) for row in rows)


def _of_json(path: Path) -> list[Pair]:
    solutions = json.loads(path.read_text())["results"]["bindings"]
    return _plain({v: term["value"] for v, term in row.items()} for row in solutions)


def _of_jsonl(path: Path) -> list[Traced]:
    answers = [json.loads(line) for line in path.read_text().splitlines()]
    pairs = [{v: t["value"] for v, t in a["bindings"].items()} for a in answers]
    return _traced(pairs, [[item["event"] for item in a["trace"]] for a in answers])


def _of_table(table: pa.Table) -> list[Traced]:
    answers = table.to_pylist()
    return _traced(answers, [[item["event"] for item in a["trace"]] for a in answers])


def _traced(pairs: Iterable[dict[str, Any]], names: Iterable[list[str]]) -> list[Traced]:
    rows = zip(pairs, names, strict=True)
    return sorted(((r["c"], int(r["low"]), int(r["high"])), (a, b)) for r, (a, b) in rows)


def _of_graphs(syntax: ox.RdfFormat) -> Callable[[Path], list[Pair]]:
    def read(path: Path) -> list[Pair]:
        graphs: dict[str, dict[str, str]] = {}
        lines = path.read_text().splitlines(keepends=True)
        text = "".join(line for line in lines if not line.startswith(("VERSION", "MESSAGE")))
        for quad in ox.parse(text, format=syntax):
            if not isinstance(quad.graph_name, ox.DefaultGraph):
                own = graphs.setdefault(str(quad.graph_name), {})
                name = {"http://e/rose": "high", "http://e/from": "low"}[quad.predicate.value]
                own |= {"c": quad.subject.value, name: quad.object.value}
        return _plain(graphs.values())

    return read


READERS: dict[str, Callable[[Path], list[Pair] | list[Traced]]] = {
    "jsonl": _of_jsonl,
    "json": _of_json,
    "csv": _of_csv,
    "tsv": _of_tsv,
    "parquet": lambda path: _of_table(pq.read_table(path)),
    "arrow": lambda path: _of_table(feather.read_table(path)),
    "nquads": _of_graphs(ox.RdfFormat.N_QUADS),
    "trig": _of_graphs(ox.RdfFormat.TRIG),
    "rdfm": _of_graphs(ox.RdfFormat.N_QUADS),
}
GRAPHS = {"nquads", "trig", "rdfm"}
TRACES = {"jsonl", "parquet", "arrow"}


def run(table: str, form: str, size: int, runtime: str, path: Path) -> list[Any]:
    """What the command line writes in a format, as sorted pairs."""
    query, lift, data, out = path / "q.rq", path / "lift.rq", path / f"rows.{table}", path / "out"
    query.write_text(CONSTRUCT if form in GRAPHS else SELECT)
    lift.write_text(LIFT)
    TABLES[table](data, size)
    command = ["run", str(query), "--stream", f"S={data}", "--lift", f"S={lift}", "--format", form]
    command += ["--runtime", runtime, "--out", str(out)]
    if table in ("csv", "tsv"):
        command += ["--types", "S=value=integer,at=integer"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    return [*READERS[form](out)]


def check(table: str, form: str, size: int, runtime: str, path: Path) -> None:
    traced = expected(size)
    assert len(traced) > size // 2
    found = run(table, form, size, runtime, path)
    assert found == (traced if form in TRACES else sorted(pair for pair, _ in traced))


FEW = [*zip([*TABLES, *TABLES], READERS, strict=False)]
ALL = [*product(TABLES, READERS)]


@pytest.mark.parametrize(
    ("table", "form", "size"),
    [
        *((*pair, 2_000) for pair in FEW),
        *(pytest.param(*pair, 30_000, marks=THOROUGH if pair in FEW else SLOW) for pair in ALL),
    ],
)
def test_lifted_rows(table: str, form: str, size: int, tmp_path: Path) -> None:
    check(table, form, size, "local", tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("table", "form", "size"),
    [
        ("csv", "jsonl", 2_000),
        *(pytest.param(*pair, 30_000, marks=THOROUGH if pair in FEW else SLOW) for pair in ALL),
    ],
)
def test_lifted_rows_on_spark(table: str, form: str, size: int, tmp_path: Path) -> None:
    check(table, form, size, "spark", tmp_path)
