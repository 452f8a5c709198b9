#!/usr/bin/env python3
"""Whole commands, from the call to the end of the process, beside the bare parse of their input.

    python benchmarks/commands.py [--runs 3] [--only TEXT ...]

Seconds on the clock, the median of the runs; all that a user waits for is in them: Python, Java,
the imports, the query, the output. *Parse* is pyoxigraph's parse of the same text in a process that
runs already. *Times* is the second divided by the first.

traffic    the README's example, in both runtimes
matching   the workload of `end_to_end.py`, nearly all numbers differ, to JSON lines
answers    an answer for each event, as a row and as a graph
knowledge  a knowledge base in Turtle: its first load, and when it has been compiled before

Kernels are compiled before the first run, and the first run of each command does not count.
Python may keep byte code, as an installation does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from end_to_end import Work
from kb import query as knowledge_query
from kb import write_events, write_kb

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
PARSE = """import sys, time, pyoxigraph
began = time.perf_counter()
for _ in pyoxigraph.parse(path=sys.argv[1]): pass
print(time.perf_counter() - began)"""

EACH_EVENT = """PREFIX : <http://s.example/ns#>
{head}
WITHIN 1 SECONDS
FROM STREAM S1 <http://s.example/stream/s1>
SEQ (A) {{ DEFINE GPM A ON S1 {{ ?a :key ?key ; :value ?value }} }}
"""
HEADS = {
    "SELECT": "SELECT ?a ?key ?value",
    "CONSTRUCT": "CONSTRUCT { ?key :had ?value ; :by ?a }",
}


@dataclass(frozen=True)
class Command:
    """What a user types, and the text that it reads most of."""

    name: str
    arguments: tuple[str | Path, ...]
    text: Path | None = None

    def seconds(self, folder: Path) -> float:
        """Of one run in a folder."""
        command = [sys.executable, "-m", "spaseq", "run", *map(str, self.arguments)]
        began = time.perf_counter()
        subprocess.run(command, check=True, cwd=folder, env=ENVIRONMENT, capture_output=True)
        return time.perf_counter() - began


def traffic() -> Iterator[Command]:
    """The README's example."""
    place = ROOT / "streams" / "traffic"
    given: list[str | Path] = [place / "query.rq", "--kb", place / "kb.ttl"]
    for n in range(1, 5):
        given += ["--stream", f"S{n}={place / f'sensor-{n}.nq'}"]
    for runtime in ("local", "spark"):
        yield Command(f"traffic, {runtime}", (*given, "--runtime", runtime))


def matching(data: Path) -> Iterator[Command]:
    """Few answers from many solutions."""
    work = Work("matching", "high", "nq")
    for size, events in (("middle", 400_000), ("large", 1_600_000)):
        work.generate(data, size, events)
        text = work.stream(data, size)
        given = (work.query, "--stream", f"S1={text}", "--out", f"{size}.jsonl")
        ways: dict[str, tuple[str, ...]] = {
            "one thread": ("--runtime", "local", "--threads", "1"),
            "two threads": ("--runtime", "local", "--threads", "2"),
        }
        if size == "large":
            ways["Spark local[2]"] = ("--master", "local[2]")
        for way, options in ways.items():
            yield Command(f"matching, {events:,} events, {way}", (*given, *options), text)


def answers(data: Path) -> Iterator[Command]:
    """An answer for each event."""
    work = Work("matching", "high", "nq")
    work.generate(data, "small", 100_000)
    text = work.stream(data, "small")
    for head, select in HEADS.items():
        query = data / f"{head}.rq"
        query.write_text(EACH_EVENT.format(head=select))
        given = (query, "--stream", f"S1={text}", "--out", "out.jsonl", "--runtime", "local")
        yield Command(f"answers, 100,000 of {head}", given, text)


def knowledge(data: Path) -> Iterator[Command]:
    """A million triples of knowledge, a thousand events."""
    lines, events, query = data / "kb.nt", data / "events.nq", data / "kb.rq"
    text = lines.with_suffix(".ttl")
    write_kb(lines, 1_000_000)
    lines.rename(text)  # N-Triples are Turtle, too
    write_events(events, 1_000, 1_000_000)
    query.write_text(knowledge_query(joined=True))
    given = (query, "--stream", f"S={events}", "--kb", text, "--runtime", "local")
    yield Command("knowledge, 1,000,000 triples, first", (*given, "--kb-cache", "none"), text)
    yield Command("knowledge, again", (*given, "--kb-cache", data / "cache"), text)


def commands(data: Path) -> Iterator[Command]:
    """All of them; their data is written when they are asked for."""
    yield from traffic()
    yield from answers(data)
    yield from knowledge(data)
    yield from matching(data)


def parse_seconds(text: Path) -> float:
    """How long pyoxigraph takes to parse a file, in another process."""
    done = subprocess.run(
        [sys.executable, "-c", PARSE, text], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT")
    options = parser.parse_args()
    subprocess.run([sys.executable, "-m", "spaseq", "warm"], check=True, capture_output=True)
    print(f"{'command':42} {'seconds':>8} {'parse':>7} {'times':>6}")
    with TemporaryDirectory(prefix="spaseq-commands-") as folder:
        data = Path(folder)
        for command in commands(data):
            if not any(text in command.name for text in options.only):
                continue
            command.seconds(data)
            pairs = [
                (command.seconds(data), parse_seconds(command.text) if command.text else None)
                for _ in range(options.runs)
            ]
            seconds = median(run for run, _ in pairs)
            parses = [parse for _, parse in pairs if parse is not None]
            beside = f"{median(parses):7.2f} {median(parses) / seconds:6.2f}" if parses else ""
            print(f"{command.name:42} {seconds:8.2f} {beside}", flush=True)


if __name__ == "__main__":
    main()
