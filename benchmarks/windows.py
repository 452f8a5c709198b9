#!/usr/bin/env python3
"""Windows over a Parquet file: averages by key, beside DuckDB and Polars in the same run.

    python benchmarks/windows.py [--events 3000000] [--keys 1000 100000] [--runs 3]

`sliding` is the average of each key over 10 minutes, each minute; `each event` the same at each
event. Both give keys whose average becomes high (`ON NEW`), which 1 % of the averages are. `levels`
are 100 thresholds on one average, in one run; `join` are two readings of a key from two streams
within 3 s. `cost` has the sliding average over ranges from a second to a day, and with 1 to 1,000
windows at a time.

A rate is million events per second of CPU time of all processes, up to an Arrow table (Polars: a
column), with one thread for each of the others. The median and the best of the runs after a warm-up
run are shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from end_to_end import cpu_seconds

import spaseq

HOURS = 10
START_MS = 1_767_225_600_000

LIFT = """PREFIX : <http://w.example/>
PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { GRAPH ?e { ?k :value ?value } ?e prov:generatedAtTime ?time }
WHERE {
  BIND (IRI(CONCAT("http://w.example/e/", STR(?id))) AS ?e)
  BIND (IRI(CONCAT("http://w.example/key/", STR(?key))) AS ?k)
}"""

QUERY = """PREFIX : <http://w.example/>
SELECT ?k ?mean
FROM STREAM S <http://w.example/s>
FROM WINDOW W ON S {extent}
WHERE {{
  SEQ(A)
  DEFINE GPM A ON NEW W {{
    {{ SELECT ?k (AVG(?v) AS ?mean) {{ EVENT {{ ?k :value ?v }} }} GROUP BY ?k
       HAVING (AVG(?v) > {limit}) }}
  }}
}}"""

JOIN = """PREFIX : <http://w.example/>
SELECT ?k ?x ?y
FROM STREAM S <http://w.example/s>
FROM STREAM T <http://w.example/t>
FROM WINDOW W ON S, T RANGE 3 SECONDS SLIDE 1 SECONDS
WHERE {
  SEQ(A)
  DEFINE GPM A ON NEW W { { SELECT ?k ?x ?y {
    EVENT ON S { ?k :value ?x FILTER (?x > 65) } EVENT ON T { ?k :value ?y FILTER (?y > 65) } } } }
}"""

SLIDING = "RANGE 10 MINUTES SLIDE 1 MINUTES"
EACH = "RANGE 10 MINUTES EACH EVENT"


def write(path: Path, events: int, keys: int, seed: int = 1) -> None:
    """Events at random times of ten hours, with values around 50."""
    draw = np.random.default_rng(seed)
    times = np.sort(draw.integers(0, HOURS * 3_600_000, events)) + START_MS
    table = {
        "id": np.arange(events),
        "time": pa.array(times).cast(pa.timestamp("ms", "UTC")),
        "key": draw.integers(0, keys, events),
        "value": np.round(draw.normal(50, 10, events), 2),
    }
    pq.write_table(pa.table(table), path)


def limit_of(path: Path) -> float:
    """The average that 1 % of the sliding averages are above."""
    averages = in_polars(path, None)
    return round(float(np.quantile(averages, 0.99)), 2)


# --- the same by others ---------------------------------------------------------------------------


def in_polars(path: Path, limit: float | None) -> np.ndarray:
    """The sliding averages above a limit, or all of them."""
    import polars as pl

    frame = pl.read_parquet(path).sort("time")
    windows = frame.group_by_dynamic(
        "time", every="1m", period="10m", offset="-9m", group_by="key", label="right"
    )
    found = windows.agg(pl.col("value").mean().alias("mean"))
    if limit is not None:
        found = found.filter(pl.col("mean") > limit)
    return found["mean"].to_numpy()


def each_in_polars(path: Path, limit: float) -> np.ndarray:
    """The averages at each event of the key's last ten minutes."""
    import polars as pl

    frame = pl.read_parquet(path).sort("time")
    mean = pl.col("value").rolling_mean_by("time", window_size="10m", closed="both").over("key")
    return frame.with_columns(mean.alias("mean")).filter(pl.col("mean") > limit)["mean"].to_numpy()


SQL = """SELECT close, key, avg(value) AS mean FROM (
    SELECT key, value, time_bucket(INTERVAL 1 MINUTE, time) + to_minutes(n) AS close
    FROM read_parquet('{path}'), range(1, 11) AS part(n))
GROUP BY close, key HAVING avg(value) > {limit}"""

EACH_SQL = """SELECT * FROM (SELECT key, time, avg(value) OVER (PARTITION BY key ORDER BY time
    RANGE BETWEEN INTERVAL 10 MINUTES PRECEDING AND CURRENT ROW) AS mean
    FROM read_parquet('{path}')) WHERE mean > {limit}"""


def in_duckdb(sql: str, path: Path, limit: float) -> int:
    """The number of rows of a query, by one thread."""
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        found = connection.execute(sql.format(path=path, limit=limit)).to_arrow_table()
        return int(found.num_rows)


# --- runs -----------------------------------------------------------------------------------------


def answers(queries: str | list[str], paths: dict[str, Path]) -> int:
    """The number of answers of a run over lifted Parquet."""
    given = {name: spaseq.Lifted(str(path), LIFT) for name, path in paths.items()}
    return int(spaseq.run(queries, given, runtime="local").to_arrow().num_rows)


def show(name: str, events: int, run: Callable[[], object], runs: int) -> float:
    """Print the rate of a run; its median."""
    found = run()
    seconds = []
    for _ in range(runs):
        before = cpu_seconds()
        found = run()
        seconds.append(cpu_seconds() - before)
    rates = [events / second / 1e6 for second in seconds]
    size = found if isinstance(found, int) else len(found)  # type: ignore[arg-type]
    print(f"{name:44} {median(rates):7.3f} {max(rates):7.3f} M events/s  {size:,} rows", flush=True)
    return median(rates)


def averages(path: Path, events: int, keys: int, runs: int) -> None:
    """The average of each key, by all ways."""
    limit = limit_of(path)
    ways: dict[str, Callable[[], object]] = {
        "sliding, spaseq": partial(answers, QUERY.format(extent=SLIDING, limit=limit), {"S": path}),
        "sliding, DuckDB": partial(in_duckdb, SQL, path, limit),
        "sliding, Polars group_by_dynamic": partial(in_polars, path, limit),
        "each event, spaseq": partial(answers, QUERY.format(extent=EACH, limit=limit), {"S": path}),
        "each event, DuckDB window function": partial(in_duckdb, EACH_SQL, path, limit),
        "each event, Polars rolling": partial(each_in_polars, path, limit),
    }
    for name, run in ways.items():
        show(f"{keys:,} keys, {name}", events, run, runs)


def levels(path: Path, events: int, runs: int) -> None:
    """One threshold, and a hundred on the same average."""
    limit = limit_of(path)
    one = QUERY.format(extent=SLIDING, limit=limit)
    many = [QUERY.format(extent=SLIDING, limit=round(limit + n / 10, 2)) for n in range(100)]
    alone = show("one threshold", events, partial(answers, one, {"S": path}), runs)
    together = show("100 thresholds", events, partial(answers, many, {"S": path}), runs)
    print(f"{'100 thresholds take':44} {alone / together:7.2f} times the time of one")


def cost(path: Path, events: int, runs: int) -> None:
    """The sliding average over longer ranges, and with more windows at a time."""
    for length in ("1 SECONDS", "1 MINUTES", "10 MINUTES", "1 HOURS", "10 HOURS", "1 DAYS"):
        query = QUERY.format(extent=f"RANGE {length} SLIDE 1 MINUTES", limit=80)
        show(f"range {length.lower()}, each minute", events, partial(answers, query, {"S": path}),
             runs)  # fmt: skip
    for windows in (1, 10, 100, 1000):
        extent = f"RANGE 1000 SECONDS SLIDE {1_000_000 // windows} MILLISECONDS"
        query = QUERY.format(extent=extent, limit=80)
        show(f"range / slide {windows}", events, partial(answers, query, {"S": path}), runs)


def main() -> None:
    """Measure and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--runs", type=int, default=3)
    kinds = ["averages", "levels", "join", "cost"]
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds)
    options = parser.parse_args()
    with TemporaryDirectory() as place:
        directory = Path(place)
        print(f"{'':44} {'median':>7} {'best':>7}")
        for keys in options.keys:
            path = directory / f"{keys}.parquet"
            write(path, options.events, keys)
            if "averages" in options.kinds:
                averages(path, options.events, keys, options.runs)
        first = directory / f"{options.keys[0]}.parquet"
        if "levels" in options.kinds:
            levels(first, options.events, options.runs)
        if "join" in options.kinds:
            size = options.events // 10
            paths = {name: directory / f"{name}.parquet" for name in "ST"}
            for seed, path in enumerate(paths.values()):
                write(path, size, options.keys[0], seed)
            show("join of two streams within 3 s", 2 * size, partial(answers, JOIN, paths),
                 options.runs)  # fmt: skip
        if "cost" in options.kinds:
            cost(first, options.events, options.runs)


if __name__ == "__main__":
    main()
