"""Graphs that change with every event, and large ones of which a little changes.

`python benchmarks/last_positions.py` prints events per second: medians of three runs of the local
runtime, each in this process, after one that is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import spaseq

E = "http://example/"
GRAPH = f"{E}positions"
PROLOGUE = f"PREFIX : <{E}>\n"
KEEPER = (
    f"{PROLOGUE}MAINTAIN GRAPH <{GRAPH}> AS DELETE {{ ?v :at ?any }} INSERT {{ ?v :at ?p }}\n"
    "FROM STREAM S :S WHERE { SEQ(A) DEFINE GPM A ON S { ?v :reports ?p } }"
)
READER = (
    f"{PROLOGUE}SELECT ?v ?p FROM STREAM S :S FROM NAMED <{GRAPH}>\n"
    f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?v :asks ?x GRAPH <{GRAPH}> {{ ?v :at ?p }} }} }}"
)


TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
DATETIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"


def lines(events: int, keys: int, changes: int) -> Iterator[str]:
    """Events that ask for a vehicle's position; every `changes`th reports one, too."""
    for number in range(events):
        vehicle, graph = f"<{E}v{number * 7919 % keys}>", f"<{E}g{number}>"
        yield f'{vehicle} <{E}asks> "x" {graph} .\n'
        if changes and number % changes == 0:
            yield f"{vehicle} <{E}reports> <{E}p{number % 1000}> {graph} .\n"
        seconds, ms = divmod(number, 1000)
        minutes, second = divmod(seconds, 60)
        at = f"2026-01-01T00:{minutes:02}:{second:02}.{ms:03}Z"
        yield f'{graph} {TIME} "{at}"^^{DATETIME} {graph} .\n'


def seconds(queries: list[str], stream: Path, known: Path) -> float:
    """How long a run takes."""
    began = time.perf_counter()
    found = spaseq.run(queries, {f"{E}S": stream}, {GRAPH: known}, runtime="local")
    assert sum(1 for _ in found)
    return time.perf_counter() - began


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        known, stream = Path(directory, "known.nt"), Path(directory, "events.nq")
        triples = (f"<{E}v{number}> <{E}at> <{E}p> .\n" for number in range(given.keys))
        known.write_text("".join(triples))
        for name, queries, changes in (
            ("no change", [READER], 0),
            ("every 100th event changes the graph", [READER, KEEPER], 100),
            ("every event changes the graph", [READER, KEEPER], 1),
        ):
            stream.write_text("".join(lines(given.events, given.keys, changes)))
            taken = [seconds(queries, stream, known) for _ in range(given.runs + 1)][1:]
            rate = given.events / statistics.median(taken)
            print(f"{name}: {rate:,.0f} events/s")


if __name__ == "__main__":
    main()
