#!/usr/bin/env python3
"""Fails if a local run has lost speed: three workloads, each against two other programs.

    python benchmarks/guard.py [--events 40000] [--rounds 5] [--update]

A *ratio* is the CPU time of another program over a file, divided by the CPU time of a run of the
local runtime over the same file, in one thread. There are two such programs: *parse*, pyoxigraph's
bare parse, which mostly computes, and *read*, which reads the bytes and counts the lines, and
mostly moves memory. All take turns in this process, and the least time of each counts, since other
programs on the machine only make times longer. A workload that is too slow is measured again before
it fails.

`guard.json` has the ratios of each workload when it was last measured with `--update`. The program
fails (status 1) if both ratios of a workload are more than 30 % below theirs: a machine whose
memory is slow, or whose processor is, loses one of them, and slower code loses both. Update the
file with a change that makes runs faster on purpose, or as slow as they have to be, on a quiet
machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

REFERENCES = Path(__file__).with_name("guard.json")
MOST_LOST = 0.30
ATTEMPTS = 5


Ratios = Mapping[str, float]
"""By the name of the program that a run is compared with."""


def lost(ratios: Ratios, reference: Ratios) -> float:
    """The share of the reference that the ratios lack, of the one that lacks less.

    Negative if a ratio has gained.
    """
    return min(1 - ratios[name] / of_reference for name, of_reference in reference.items())


def too_slow(ratios: Mapping[str, Ratios], references: Mapping[str, Ratios]) -> list[str]:
    """The workloads that have lost too much. All workloads must have a reference."""
    return [name for name, r in ratios.items() if lost(r, references[name]) > MOST_LOST]


def parse(stream: Path) -> None:
    """pyoxigraph's bare parse."""
    import pyoxigraph

    for _ in pyoxigraph.parse(path=str(stream)):
        pass


def read(stream: Path) -> None:
    """Read the bytes of a file into new memory, and count its lines."""
    stream.read_bytes().count(b"\n")


def answer(query: Path, stream: Path) -> None:
    """A run from text to answers as jsonl."""
    from plots.timing import jsonl_seconds

    jsonl_seconds(query, {"S1": stream})


def least(runs: tuple[Callable[[], None], ...], times: int) -> list[float]:
    """The least CPU time of each function; they take turns."""
    found = [[0.0] * times for _ in runs]
    for i in range(times):
        for run, seconds in zip(runs, found, strict=True):
            began = time.process_time()
            run()
            seconds[i] = time.process_time() - began
    return [min(seconds) for seconds in found]


class Workloads:
    """The streams of the workloads in a directory, and the least times that were measured."""

    def __init__(self, folder: Path, events: int) -> None:
        from generators.workloads import WORKLOADS

        self._runs: dict[str, tuple[Callable[[], None], ...]] = {}
        self._least: dict[str, list[float]] = {}
        for name, workload in WORKLOADS.items():
            stream, query = folder / f"{name}.nq", workload.query
            with stream.open("w", encoding="utf-8") as out:
                out.writelines(e.text for e in islice(workload.events("high"), events))
            self._runs[name] = (
                lambda stream=stream, query=query: answer(query, stream),
                lambda stream=stream: parse(stream),
                lambda stream=stream: read(stream),
            )
            self._least[name] = least(self._runs[name], 1)

    def measure(self, rounds: int, names: Iterable[str] = ()) -> dict[str, Ratios]:
        """The ratios of all workloads, after some more rounds of some of them, or of all."""
        for name in names or self._runs:
            new = least(self._runs[name], rounds)
            self._least[name] = [min(both) for both in zip(self._least[name], new, strict=True)]
        return {
            name: {"parse": parsing / ours, "read": reading / ours}
            for name, (ours, parsing, reading) in self._least.items()
        }


def table(ratios: Mapping[str, Ratios], references: Mapping[str, Ratios]) -> str:
    """The ratios as lines of text, each with its reference."""
    slow = too_slow(ratios, references)
    lines = [
        f"{'workload':12}{'parse':>8}{'reference':>11}{'read':>8}{'reference':>11}{'change':>9}"
    ]
    for name, of_workload in ratios.items():
        reference = references[name]
        both = "".join(f"{of_workload[by]:8.2f}{reference[by]:11.2f}" for by in ("parse", "read"))
        change = f"{-lost(of_workload, reference):+9.0%}"
        lines.append(f"{name:12}{both}{change}{'  too slow' if name in slow else ''}")
    return "\n".join(lines)


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--update", action="store_true", help="write the ratios to guard.json")
    given = parser.parse_args()
    from spaseq.compiled.warming import warm

    warm()
    with TemporaryDirectory(prefix="spaseq-guard-") as folder:
        workloads = Workloads(Path(folder), given.events)
        ratios = workloads.measure(given.rounds)
        if given.update:
            rounded = {
                name: {by: round(ratio, 2) for by, ratio in of_workload.items()}
                for name, of_workload in ratios.items()
            }
            REFERENCES.write_text(json.dumps(rounded, indent=1) + "\n")
        references = json.loads(REFERENCES.read_text())
        for _ in range(ATTEMPTS - 1):
            if slow := too_slow(ratios, references):
                ratios = workloads.measure(given.rounds, slow)
    print(table(ratios, references))
    return 1 if too_slow(ratios, references) else 0


if __name__ == "__main__":
    sys.exit(main())
