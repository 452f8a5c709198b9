"""Graphs that change with every event, and large ones of which a little changes.

`python benchmarks/last_positions.py` prints events per second of `spaseq run` in the local runtime,
from N-Quads to JSON lines. Each event gives an answer. Beside it stands a graph that does not
change. The times are those of whole processes: they include the start, and the loading of the
knowledge base. An event is a millisecond of the stream, so every tenth one is 100 changes a second.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from subprocess import run

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


def seconds(queries: list[Path], stream: Path, known: Path) -> tuple[float, float]:
    """The time and the CPU time of a run."""
    out = stream.with_suffix(".jsonl")
    given = [f"--stream={E}S={stream}", f"--kb={GRAPH}={known}", f"--out={out}"]
    spent, began = used(), time.perf_counter()
    command = [sys.executable, "-m", "spaseq", "run", *map(str, queries), *given]
    run([*command, "--runtime=local"], check=True, capture_output=True)
    taken = time.perf_counter() - began, used() - spent
    assert out.stat().st_size
    out.unlink()
    return taken


def used() -> float:
    """CPU seconds of all processes that this one has waited for."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def compared(events: int, keys: int, changes: int, runs: int) -> list[tuple[float, float]]:
    """Seconds and CPU seconds over a graph of `keys` triples: without a change, and with every
    `changes`th event changing it. Medians of runs that take turns, after one that is not
    counted."""
    with tempfile.TemporaryDirectory() as directory:
        known = Path(directory, "known.nt")
        known.write_text("".join(f"<{E}v{n}> <{E}at> <{E}p> .\n" for n in range(keys)))
        texts = {Path(directory, "reader.rq"): READER, Path(directory, "keeper.rq"): KEEPER}
        for path, text in texts.items():
            path.write_text(text)
        cases = []
        for every, queries in ((0, [*texts][:1]), (changes, [*texts])):
            stream = Path(directory, f"events{every}.nq")
            stream.write_text("".join(lines(events, keys, every)))
            cases.append((queries, stream))
        taken = [[seconds(*case, known) for case in cases] for _ in range(runs + 1)][1:]
    by_case = [zip(*own, strict=True) for own in zip(*taken, strict=True)]
    return [(median(whole), median(cpu)) for whole, cpu in by_case]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    for name, keys, changes in (
        ("100,000 triples, each event changes one", 100_000, 1),
        ("1,000,000 triples, 100 changes a second", 1_000_000, 10),
    ):
        found = compared(given.events, keys, changes, given.runs)
        for unit, (static, changing) in zip(
            ("", " of CPU time"), zip(*found, strict=True), strict=True
        ):
            print(
                f"{name}: {given.events / changing:,.0f} events/s{unit}; without changes "
                f"{given.events / static:,.0f}, {changing / static:.2f} times the cost"
            )


if __name__ == "__main__":
    main()
