#!/usr/bin/env python3
"""Events per second of positions against zones of a knowledge base, beside shapely's own index.

    python benchmarks/places.py [--events 1000000] [--zones 10000] [--runs 3]

The zones are polygons of 20 corners on a part of the sea; the events are positions as WKT, in
N-Quads, with a time. The query asks by `geof:sfWithin` in which zone a position lies. In the same
process, shapely gets the same positions as an array of points and the same polygons: one call of
`STRtree.query(points, predicate="within")`, the tree built before. So the first reads, parses and
writes; the second only tests. Seconds are wall-clock and CPU time, the best of the runs. The number
of pairs must be equal.

`--prepared` tests, for comparison, what shapely gives if the pairs of boxes are tested by prepared
polygons, as spaseq does.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import shapely

from spaseq.cli.main import cli

WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
QUERY = """PREFIX : <http://p/> PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
SELECT ?z WITHIN 1 MINUTES FROM STREAM S <http://p/s> FROM NAMED <http://p/kb>
WHERE { SEQ (A) DEFINE GPM A ON S {
  ?e :at ?p . GRAPH <http://p/kb> { ?z :area ?a } FILTER (geof:sfWithin(?p, ?a)) } }"""
WIDE, HIGH = 10.0, 8.0


def zones(count: int, rng: random.Random) -> list[shapely.Geometry]:
    """Round zones, each about a hundredth of a degree wide and long."""
    turn = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    around = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    size = 0.3 * (WIDE * HIGH / count) ** 0.5
    middles = [(rng.uniform(0, WIDE), rng.uniform(50, 50 + HIGH)) for _ in range(count)]
    return [shapely.Polygon(np.round(m + around * rng.uniform(0.5, 1) * size, 6)) for m in middles]


def write(directory: Path, areas: list[shapely.Geometry], places: np.ndarray) -> tuple[Path, Path]:
    """(the stream, the knowledge base)."""
    stream, kb = directory / "s.nq", directory / "kb.nt"
    with stream.open("w") as file:
        for i, (x, y) in enumerate(places.tolist()):
            g = f"<http://p/e{i}>"
            file.write(
                f'{g} <http://p/at> "POINT({x} {y})"^^<{WKT}> {g} .\n'
                f'{g} {TIME} "{i}"^^<http://www.w3.org/2001/XMLSchema#long> {g} .\n'
            )
    lines = (f'<http://p/z{i}> <http://p/area> "{a.wkt}"^^<{WKT}> .\n' for i, a in enumerate(areas))
    kb.write_text("".join(lines))
    return stream, kb


def best(run: Callable[[], int], runs: int) -> tuple[float, float, int]:
    """(wall-clock seconds, CPU seconds, result) of the best of some runs."""
    times = []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        found = run()
        times.append((time.perf_counter() - wall, time.process_time() - cpu, found))
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--zones", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--prepared", action="store_true")
    given = parser.parse_args()
    rng = random.Random(7)
    areas = zones(given.zones, rng)
    numbers = np.random.default_rng(7)
    places = np.round(numbers.uniform((0, 50), (WIDE, 50 + HIGH), (given.events, 2)), 5)
    with TemporaryDirectory() as directory:
        stream, kb = write(Path(directory), areas, places)

        def spaseq_run() -> int:
            query, out = Path(directory, "q.rq"), Path(directory, "answers.csv")
            query.write_text(QUERY)
            out.unlink(missing_ok=True)
            given = [str(query), "--stream", f"S={stream}", "--kb", f"http://p/kb={kb}"]
            written = ["--runtime", "local", "--format", "csv", "--out", str(out)]
            with suppress(SystemExit):
                cli.main(["run", *given, *written], standalone_mode=False)
            return out.read_bytes().count(b"\n") - 1

        points, array = shapely.points(places), np.array(areas)
        tree = shapely.STRtree(array)
        rows = {
            "spaseq": spaseq_run,
            "STRtree.query": lambda: tree.query(points, predicate="within").shape[1],
        }
        if given.prepared:
            shapely.prepare(array)

            def prepared() -> int:
                point, area = tree.query(points)
                return int(shapely.contains(array[area], points[point]).sum())

            rows["boxes, then prepared"] = prepared
        for name, run in rows.items():
            wall, cpu, found = best(run, given.runs)
            rate = given.events / wall, given.events / cpu
            print(
                f"{name:22} {wall:7.2f} s {cpu:7.2f} s CPU {rate[0]:12,.0f} events/s "
                f"({rate[1]:,.0f} by CPU) {found:,} pairs"
            )


if __name__ == "__main__":
    main()
