#!/usr/bin/env python3
"""Runs over lifted tables, JSON lines, DataFrames and dicts, against the same events as N-Quads.

    python benchmarks/lift.py [--events 200000] [--runs 3] [--formats parquet csv]
    python benchmarks/lift.py --others [--flink PYTHON]

The queries are `queries/synthetic/sequence.rq` (few events match), `matching.rq` (each event has
solutions, few answers), and a V-shape: a value, a lower one, and one above the first. Each
variant runs in this process, `spark` in a local session with one core. The table shows million
events per second of CPU time of all processes, the best of the runs after a warm-up run. All
formats must give equally many answers.

`--others` compares Parquet with DuckDB, one thread, joining the same file in SQL (extra
`benchmarks`), and with a conversion by `spaseq lift` to N-Quads and a run over these. `--flink`
adds FlinkCEP (`flink_cep.py`); its rate leaves out what a thousand events take, which is Java's
start. All must find equally many answers.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from end_to_end import cpu_seconds
from flink_cep import FORMS

import spaseq

QUERIES = Path(__file__).parent / "queries" / "synthetic"
_NS = "http://s.example/ns#"
_START = datetime(2026, 1, 1, tzinfo=UTC)

V_SHAPE = f"""PREFIX : <{_NS}>
SELECT ?key ?v1 ?v2 ?v3
WITHIN 1 SECONDS
PARTITION BY (?key)
FROM STREAM S1 <http://s.example/stream/s1>
SEQ (A; B; C) {{
  DEFINE GPM A ON S1 {{ ?a :key ?key ; :value ?v1 . FILTER (?v1 < 100) }}
  DEFINE GPM B ON S1 {{ ?b :key ?key ; :value ?v2 . FILTER (?v2 < ?v1) }}
  DEFINE GPM C ON S1 {{ ?c :key ?key ; :value ?v3 . FILTER (?v3 > ?v1) }}
}}
"""


def lift(cast: bool) -> str:
    """The lift; fields of CSV and JSON lines need casts."""
    casts = "BIND (xsd:dateTime(?time) AS ?when) BIND (xsd:integer(?value) AS ?number)"
    when, number = ("?when", "?number") if cast else ("?time", "?value")
    return f"""PREFIX : <{_NS}>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT {{
  GRAPH ?e {{ ?e a ?kind ; :key ?k ; :value {number} }}
  ?e prov:generatedAtTime {when}
}}
WHERE {{
  BIND (IRI(CONCAT("http://s.example/e/", STR(?id))) AS ?e)
  BIND (IRI(CONCAT("{_NS}", ?type)) AS ?kind)
  BIND (IRI(CONCAT("http://s.example/key/", STR(?key))) AS ?k)
  {casts if cast else ""}
}}"""


def rows(events: int) -> list[dict[str, object]]:
    """Events, a millisecond apart, with four types, 100 keys and 1000 values."""
    dice = Random(1)
    types = ("T0", "T1", "T2", "T3")
    return [
        {
            "id": n,
            "type": dice.choice(types),
            "key": dice.randrange(100),
            "value": dice.randrange(1000),
            "time": _START + timedelta(milliseconds=n),
        }
        for n in range(events)
    ]


def write(directory: Path, events: int) -> dict[str, Path]:
    """A file of each format with the same events."""
    given = rows(events)
    table = pa.Table.from_pylist(given)
    files = {f: directory / f"events.{f}" for f in ("nq", "parquet", "arrow", "csv", "jsonl")}
    pq.write_table(table, files["parquet"])
    feather.write_feather(table, files["arrow"], compression="uncompressed")
    texts = [{**row, "time": _text(row["time"])} for row in given]
    with files["csv"].open("w", newline="") as out:
        sheet = csv.DictWriter(out, list(texts[0]), lineterminator="\n")
        sheet.writeheader()
        sheet.writerows(texts)
    with files["jsonl"].open("w") as out:
        out.writelines(json.dumps(row) + "\n" for row in texts)
    with files["nq"].open("w") as out:
        out.writelines(map(_quads, texts))
    return files


def _text(time: object) -> str:
    assert isinstance(time, datetime)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quads(row: dict[str, object]) -> str:
    event, xsd = f"<http://s.example/e/{row['id']}>", "http://www.w3.org/2001/XMLSchema#"
    a, time = (
        "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
        "<http://www.w3.org/ns/prov#generatedAtTime>",
    )
    return (
        f'{event} {time} "{row["time"]}"^^<{xsd}dateTime> .\n'
        f"{event} {a} <{_NS}{row['type']}> {event} .\n"
        f"{event} <{_NS}key> <http://s.example/key/{row['key']}> {event} .\n"
        f'{event} <{_NS}value> "{row["value"]}"^^<{xsd}integer> {event} .\n'
    )


def inputs(files: dict[str, Path], forms: list[str]) -> dict[str, object]:
    """The inputs of local runs, by form."""
    given: dict[str, object] = {"nq": str(files["nq"])}
    table = pq.read_table(files["parquet"])
    for form in forms:
        data: object = files.get(form)
        if form == "pandas":
            data = table.to_pandas()
        elif form == "dicts":
            data = table.to_pylist()
        elif form == "polars":
            import polars  # only here, so that the other forms need it not

            data = polars.from_arrow(table)
        if form not in ("nq", "spark"):
            given[form] = spaseq.Lifted(data, lift(form in ("csv", "jsonl")))
    return given


def answers_on_spark(query: str, path: str) -> int:
    """Number of answers of a run over a Spark DataFrame, in a session with one core."""
    spark = spaseq.spark.session("local[1]", config={"spark.ui.enabled": False})
    frame = spark.read.parquet(path)
    return spaseq.spark.answers(spark, query, {"S1": frame}, lifts={"S1": lift(False)}).count()


def measured(run: Callable[[], int], runs: int) -> tuple[float, int]:
    """(least CPU seconds, answers) of some runs after a warm-up run."""
    answers, best = run(), float("inf")
    for _ in range(runs):
        started = cpu_seconds()
        again = run()
        best = min(best, cpu_seconds() - started)
        assert again == answers, "two runs gave different numbers of answers"
    return best, answers


SQL = """WITH events AS (SELECT * FROM read_parquet('{path}')),
ab AS (
  SELECT a.id, any_value(a.key) AS key, any_value(a.value) AS v1, any_value(a.time) AS first,
    min(b.time) AS second, arg_min(b.value, b.time) AS v2
  FROM events a JOIN events b
    ON a.key = b.key AND b.time > a.time AND b.time <= a.time + INTERVAL '{seconds} seconds'
  WHERE {a} AND {b} GROUP BY a.id)
SELECT ab.id, any_value(ab.key), any_value(v1), any_value(v2), arg_min(c.value, c.time)
FROM ab JOIN events c
  ON ab.key = c.key AND c.time > ab.second AND c.time <= ab.first + INTERVAL '{seconds} seconds'
WHERE {c} GROUP BY ab.id"""
"""Each step takes the next event that matches, as `;` does; the times of events differ."""

CONDITIONS: dict[str, dict[str, object]] = {
    "selective": {
        "seconds": 1,
        "a": "a.type = 'T1' AND a.value < 100",
        "b": "b.type = 'T2' AND b.value > a.value",
        "c": "c.type = 'T3' AND c.value > v1",
    },
    "matching": {
        "seconds": 2,
        "a": "a.value >= 0",
        "b": "b.value >= 0 AND b.value > a.value",
        "c": "c.value >= 999 AND c.value > v2",
    },
    "V-shape": {
        "seconds": 1,
        "a": "a.value < 100",
        "b": "b.value < a.value",
        "c": "c.value > v1",
    },
}


def in_duckdb(path: Path, name: str) -> int:
    """Number of answers of a query as SQL over a Parquet file."""
    import duckdb  # only here, so that the other tables need it not

    with duckdb.connect(config={"threads": 1}) as connection:
        return len(connection.execute(SQL.format(path=path, **CONDITIONS[name])).fetchall())


def converted(files: dict[str, Path], query: str) -> int:
    """Number of answers over the N-Quads that `spaseq lift` makes of Parquet."""
    text = files["parquet"].with_name("converted.nq")
    lifts = text.with_suffix(".rq")
    lifts.write_text(lift(cast=False))
    command = [sys.executable, "-m", "spaseq", "lift", lifts, files["parquet"]]
    with text.open("wb") as out:
        subprocess.run(command, check=True, stdout=out, stderr=subprocess.DEVNULL)
    return answers_of(query, str(text))


def in_flink(python: str, files: dict[str, Path], name: str, events: int) -> tuple[float, int]:
    """(CPU seconds, answers) of FlinkCEP, over the first events of the CSV file."""
    text, out = files["csv"].with_name("flink.csv"), files["csv"].with_name("flink")
    with files["csv"].open() as given, text.open("w") as rows:
        lines = islice(given, 1, events + 1)
        for line in lines:
            row, _, time = line.rpartition(",")
            rows.write(f"{row},{time.replace('T', ' ').replace('Z', '')}")
    shutil.rmtree(out, ignore_errors=True)
    command = [python, Path(__file__).with_name("flink_cep.py"), text, out, name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answers, seconds = done.stdout.split()
    return float(seconds), int(answers)


def answers_of(query: str, data: object) -> int:
    """Number of answers of a run."""
    return sum(1 for _ in spaseq.run(query, {"S1": data}, runtime="local"))


def compare(
    files: dict[str, Path], queries: dict[str, str], events: int, runs: int, flink: str | None
) -> None:
    """Print the rates of spaseq, DuckDB, a conversion with a run, and FlinkCEP if it is there."""
    for name, query in queries.items():
        given = spaseq.Lifted(str(files["parquet"]), lift(cast=False))
        ways: dict[str, Callable[[], int]] = {
            "spaseq": partial(answers_of, query, given),
            "DuckDB": partial(in_duckdb, files["parquet"], name),
            "converted": partial(converted, files, query),
        }
        counts = set()
        for way, run in ways.items():
            seconds, answers = measured(run, runs)
            counts.add(answers)
            rate = events / seconds / 1e6
            print(f"{name:10} {way:10} {rate:6.2f} M events/s  {answers:,} answers", flush=True)
        if flink is not None and name in FORMS:
            start, _ = in_flink(flink, files, name, 1_000)
            seconds, answers = in_flink(flink, files, name, events)
            counts.add(answers)
            rate = (events - 1_000) / (seconds - start) / 1e6
            print(
                f"{name:10} {'FlinkCEP':10} {rate:8.4f} M events/s  {answers:,} answers, "
                f"start {start:.1f} s",
                flush=True,
            )
        assert len(counts) == 1, f"answers differ: {counts}"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    formats = ["nq", "parquet", "arrow", "csv", "jsonl", "pandas", "polars", "dicts", "spark"]
    parser.add_argument("--formats", nargs="+", choices=formats, default=formats)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--flink", metavar="PYTHON", help="one with apache-flink installed")
    options = parser.parse_args()
    queries = {
        "selective": (QUERIES / "sequence.rq").read_text(),
        "matching": (QUERIES / "matching.rq").read_text(),
        "V-shape": V_SHAPE,
    }
    with TemporaryDirectory() as place:
        files = write(Path(place), options.events)
        if options.others:
            compare(files, queries, options.events, options.runs, options.flink)
            return
        given = inputs(files, options.formats)
        for name, query in queries.items():
            counts = set()
            for form in options.formats:
                run = (
                    partial(answers_on_spark, query, str(files["parquet"]))
                    if form == "spark"
                    else partial(answers_of, query, given[form])
                )
                seconds, answers = measured(run, options.runs)
                counts.add(answers)
                rate = options.events / seconds / 1e6
                print(f"{name:10} {form:8} {rate:6.2f} M events/s  {answers:,} answers", flush=True)
            assert len(counts) == 1, f"formats differ: {counts}"


if __name__ == "__main__":
    main()
