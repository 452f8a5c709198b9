#!/usr/bin/env python3
"""Runs over lifted tables and JSON lines, against the same events as N-Quads.

    python benchmarks/lift.py [--events 200000] [--runs 3] [--formats parquet csv]

The queries are `queries/synthetic/sequence.rq` (few events match), `matching.rq` (each event has
solutions, few answers), and a V-shape: a value, a lower one, and one above the first. Each
variant runs in this process. The table shows million events per second of CPU time of the
process, the best of the runs after a warm-up run. All formats must give equally many answers.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

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


def measured(run: Callable[[], int], runs: int) -> tuple[float, int]:
    """(least CPU seconds, answers) of some runs after a warm-up run."""
    answers, best = run(), float("inf")
    for _ in range(runs):
        started = time.process_time()
        again = run()
        best = min(best, time.process_time() - started)
        assert again == answers, "two runs gave different numbers of answers"
    return best, answers


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    formats = ["nq", "parquet", "arrow", "csv", "jsonl"]
    parser.add_argument("--formats", nargs="+", choices=formats, default=formats)
    options = parser.parse_args()
    queries = {
        "selective": (QUERIES / "sequence.rq").read_text(),
        "matching": (QUERIES / "matching.rq").read_text(),
        "V-shape": V_SHAPE,
    }
    with TemporaryDirectory() as place:
        files = write(Path(place), options.events)
        for name, query in queries.items():
            counts = set()
            for form in options.formats:
                path = str(files[form])
                cast = form in ("csv", "jsonl")
                data = path if form == "nq" else spaseq.Lifted(path, lift(cast))

                def run(query: str = query, data: object = data) -> int:
                    return sum(1 for _ in spaseq.run(query, {"S1": data}, runtime="local"))

                seconds, answers = measured(run, options.runs)
                counts.add(answers)
                rate = options.events / seconds / 1e6
                print(f"{name:10} {form:8} {rate:6.2f} M events/s  {answers:,} answers", flush=True)
            assert len(counts) == 1, f"formats differ: {counts}"


if __name__ == "__main__":
    main()
