#!/usr/bin/env python3
"""Partial matches: the time of a run that gives them, against the same run without them.

    python benchmarks/partial_matches.py [--events 100000] [--rounds 3] [--json FILE]

Streams are N-Quads files, read by the local runtime, with an event every 10 ms. *Selective*: one
event in a hundred is a step. *Matching*: every event is a step, and each first step of a key is
followed by the rest. *Comparing*: the same, and the second step's value is less than the first
one's, by a FILTER. *Answering*: every event is a step, and ends several answers. In these, one
first step in a hundred stays without the rest. *Broken off*: every second one does. *Closing*:
answers wait for the close of their windows, because of a negated step in last place. *Without* and
*with* are thousands of events per second of CPU time, in the best round. *Ratio* is how many times
as long the run takes with partial matches.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import spaseq

GPMS = "".join(f"DEFINE GPM {n} ON S {{ ?{n.lower()} :{n.lower()} ?k }}\n" for n in "ABC")
COMPARING = GPMS.replace("?a :a ?k", "?a :a ?k ; :v ?v1")
COMPARING = COMPARING.replace("?b :b ?k", "?b :b ?k ; :v ?v2 . FILTER (?v2 < ?v1)")
START = datetime(2026, 1, 1, tzinfo=UTC)
STEP_MS = 10


@dataclass(frozen=True)
class Workload:
    """A sequence over steps a, b and c with a key, and what its stream is like."""

    name: str
    sequence: str
    steps_in: int  # one of every `steps_in` events matches a step
    rest_missing_in: int  # after one of every `rest_missing_in` first steps, the rest never comes
    window: str = "10 SECONDS"

    @property
    def compares(self) -> bool:
        """Whether the events have values, which become less and less."""
        return self.name.startswith("comparing")


WORKLOADS = (
    Workload("selective", "A; B; C", 100, 100),
    Workload("matching", "A; B; C", 1, 100),
    Workload("matching", "A; B+; C", 1, 100),
    Workload("comparing", "A; B; C", 1, 100),
    Workload("answering", "A: B: C", 1, 100, "300 MILLISECONDS"),
    Workload("closing", "A; C; B!", 1, 100),
    Workload("broken off", "A; B; C", 1, 2),
    Workload("comparing, broken off", "A; B; C", 1, 2),
)


@dataclass(frozen=True)
class Line:
    """One measurement: thousands of events per second."""

    workload: str
    sequence: str
    answers: int
    partial: int
    without: float
    with_partial: float

    @property
    def ratio(self) -> float:
        """How many times as long the run takes with partial matches."""
        return self.without / self.with_partial


def query(workload: Workload) -> str:
    """The query of a workload; in the answering one the keys are not joined."""
    gpms = COMPARING if workload.compares else GPMS
    if workload.name == "answering":
        for letter in "abc":
            gpms = gpms.replace(f":{letter} ?k", f":{letter} ?k{letter}")
    return f"""PREFIX : <http://e/> SELECT * WITHIN {workload.window} FROM STREAM S <http://e/s>
    WHERE {{ SEQ({workload.sequence}) {gpms} }}"""


def steps(workload: Workload) -> Iterator[tuple[str, int]]:
    """(property, key) of each event, without end."""
    key = event = 0
    while True:
        key += 1
        missing = key % workload.rest_missing_in == 0
        for letter in "a" if missing else "abc":
            for _ in range(workload.steps_in - 1):
                event += 1
                yield "other", event
            yield letter, key


def write(workload: Workload, events: int, path: Path) -> None:
    """Write the stream of a workload."""
    with path.open("w") as file:
        for number, (name, key) in zip(range(events), steps(workload)):  # noqa: B905 - no end
            at = START + timedelta(milliseconds=STEP_MS * number)
            stamp = f'"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"'
            graph = f"<http://e/g{number}>"
            file.write(f"<http://e/n{number}> <http://e/{name}> <http://e/k{key}> {graph} .\n")
            if workload.compares:
                value = f'"{-number}"^^<http://www.w3.org/2001/XMLSchema#integer>'
                file.write(f"<http://e/n{number}> <http://e/v> {value} {graph} .\n")
            file.write(
                f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {stamp}"
                "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
            )


def run(text: str, path: Path, partial: bool) -> tuple[float, int, int]:
    """Seconds, answers and partial matches of a run."""
    found: list[spaseq.PartialMatch] = []
    began = time.process_time()
    answers = sum(
        1
        for _ in spaseq.run(
            text, {"S": path}, runtime="local", on_partial=found.append if partial else None
        )
    )
    return time.process_time() - began, answers, len(found)


def measured(workload: Workload, events: int, rounds: int, directory: Path) -> Line:
    """One line of the table."""
    path = directory / "stream.nq"
    write(workload, events, path)
    text = query(workload)
    run(text, path, True)  # loads the kernels
    run(text, path, False)
    both = [(run(text, path, False), run(text, path, True)) for _ in range(rounds)]
    best, best_with = map(min, zip(*both, strict=True))
    rate, rate_with = (events / seconds / 1000 for seconds, *_ in (best, best_with))
    return Line(workload.name, workload.sequence, best[1], best_with[2], rate, rate_with)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print("| workload | sequence | answers | partial | without | with | ratio |")
    print("|---|---|--:|--:|--:|--:|--:|")
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        for workload in WORKLOADS:
            line = measured(workload, given.events, given.rounds, Path(directory))
            lines.append(line)
            print(
                f"| {line.workload} | `{line.sequence}` | {line.answers:,} | {line.partial:,} | "
                f"{line.without:,.0f} | {line.with_partial:,.0f} | {line.ratio:.2f} |",
                flush=True,
            )
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(line) for line in lines], indent=2))


if __name__ == "__main__":
    main()
