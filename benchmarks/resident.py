#!/usr/bin/env python3
"""How much memory a run holds, by the length of a stream that is piped into it and stored nowhere.

    python benchmarks/resident.py [--events 1000000,2000000,5000000,20000000] [--json FILE]

`generate.py synthetic | spaseq run sequence.rq --stream S1=- --runtime local`: most
of the events have graph IRIs and subjects that no other has. *Peak* is the most that the run's
process held, *growth* that against the shortest stream's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
QUERY = HERE / "queries" / "synthetic" / "sequence.rq"


@dataclass(frozen=True)
class Line:
    """One length."""

    events: int
    answers: int
    seconds: float
    cpu: float
    peak_mb: float


def measure(events: int, threads: int) -> Line:
    """Runs the generator and, behind a pipe, the query."""
    generate = [sys.executable, str(HERE / "generate.py"), "synthetic", "--seed", "1"]
    with TemporaryDirectory() as directory:
        out = Path(directory, "answers.jsonl")
        query = [sys.executable, "-m", "spaseq", "run", str(QUERY), "--stream", "S1=-"]
        query += ["--runtime", "local", "--threads", str(threads), "--out", str(out)]
        started = time.perf_counter()
        source = subprocess.Popen([*generate, "--events", str(events)], stdout=subprocess.PIPE)
        run = subprocess.Popen(query, stdin=source.stdout, stderr=subprocess.DEVNULL)
        assert source.stdout is not None
        source.stdout.close()
        _, status, usage = os.wait4(run.pid, 0)
        source.wait()
        seconds = time.perf_counter() - started
        if status or source.returncode:
            sys.exit(f"failed with {events} events")
        answers = out.read_bytes().count(b"\n")
    cpu = usage.ru_utime + usage.ru_stime
    return Line(events, answers, seconds, cpu, usage.ru_maxrss / 1024)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", default="1000000,2000000,5000000,20000000")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    options = parser.parse_args()
    print(f"{'events':>11} {'answers':>8} {'seconds':>8} {'CPU':>7} {'peak':>9} {'growth':>7}")
    lines: list[Line] = []
    for events in map(int, options.events.split(",")):
        lines.append(line := measure(events, options.threads))
        growth = line.peak_mb / lines[0].peak_mb - 1
        print(
            f"{line.events:11,} {line.answers:8,} {line.seconds:8.1f} {line.cpu:7.1f} "
            f"{line.peak_mb:6.0f} MB {growth:7.1%}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
