"""Graphs that change with every event, and large ones of which a little changes.

`python benchmarks/last_positions.py` prints events per second of CPU time in the local runtime, and
what they cost in comparison with a graph that does not change. An event is a millisecond of the
stream, so every tenth one is 100 changes a second.
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
    """CPU time of a run."""
    began = time.process_time()
    found = spaseq.run(queries, {f"{E}S": stream}, {GRAPH: known}, runtime="local")
    assert sum(1 for _ in found)
    return time.process_time() - began


def compared(events: int, keys: int, changes: int, runs: int) -> tuple[float, float]:
    """CPU seconds over a graph of `keys` triples: without a change, and with every `changes`th
    event changing it. Medians of runs that take turns, after one that is not counted."""
    with tempfile.TemporaryDirectory() as directory:
        known = Path(directory, "known.nt")
        known.write_text("".join(f"<{E}v{n}> <{E}at> <{E}p> .\n" for n in range(keys)))
        cases = []
        for every, queries in ((0, [READER]), (changes, [READER, KEEPER])):
            stream = Path(directory, f"events{every}.nq")
            stream.write_text("".join(lines(events, keys, every)))
            cases.append((queries, stream))
        taken = [[seconds(*case, known) for case in cases] for _ in range(runs + 1)][1:]
    static, changing = (statistics.median(own) for own in zip(*taken, strict=True))
    return static, changing


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    for name, keys, changes in (
        ("100,000 triples, each event changes one", 100_000, 1),
        ("1,000,000 triples, 100 changes a second", 1_000_000, 10),
    ):
        static, changing = compared(given.events, keys, changes, given.runs)
        print(
            f"{name}: {given.events / changing:,.0f} events/s; without changes "
            f"{given.events / static:,.0f}, {changing / static:.2f} times the cost"
        )


if __name__ == "__main__":
    main()
