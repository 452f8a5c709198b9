#!/usr/bin/env python3
"""How much memory a run holds, by the length of a stream that is piped into it and stored nowhere.

    python benchmarks/resident.py [--copies 1,2,5,20] [--events 1000000] [--json FILE]

A million synthetic events come again and again, each time with other IRIs and a year later, through
a pipe into `spaseq run sequence.rq --stream S1=- --runtime local`. *Peak* is the most that the
run's process held, *growth* that against the shortest stream's. Kernels are compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import islice
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


def pour(file: Path, copies: int) -> None:
    """Write the stream so many times to standard output."""
    for copy in range(copies):
        iri, year = b"s.example/e/%d-" % copy, b'"%d-' % (2025 + copy)
        with file.open("rb") as lines:
            while part := b"".join(islice(lines, 60_000)):
                sys.stdout.buffer.write(part.replace(b"s.example/e/", iri).replace(b'"2025-', year))


def measure(file: Path, events: int, copies: int, threads: int) -> Line:
    """Runs the query behind a pipe."""
    pouring = [sys.executable, __file__, "--pour", str(file), "--copies", str(copies)]
    out = file.with_name("answers.jsonl")
    query = [sys.executable, "-m", "spaseq", "run", str(QUERY), "--stream", "S1=-"]
    query += ["--runtime", "local", "--threads", str(threads), "--out", str(out)]
    started = time.perf_counter()
    source = subprocess.Popen(pouring, stdout=subprocess.PIPE)
    run = subprocess.Popen(query, stdin=source.stdout, stderr=subprocess.DEVNULL)
    assert source.stdout is not None
    source.stdout.close()
    _, status, usage = os.wait4(run.pid, 0)
    source.wait()
    seconds = time.perf_counter() - started
    if status or source.returncode:
        sys.exit(f"failed with {copies} copies")
    cpu = usage.ru_utime + usage.ru_stime
    answers = out.read_bytes().count(b"\n")
    return Line(events * copies, answers, seconds, cpu, usage.ru_maxrss / 1024)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", default="1,2,5,20")
    parser.add_argument("--events", type=int, default=1_000_000, help="of a copy")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    parser.add_argument("--pour", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pour:
        pour(options.pour, int(options.copies))
        return
    print(f"{'events':>11} {'answers':>8} {'seconds':>8} {'CPU':>7} {'peak':>9} {'growth':>7}")
    lines: list[Line] = []
    with TemporaryDirectory() as directory:
        generate = [sys.executable, str(HERE / "generate.py"), "synthetic", "--seed", "1"]
        generate += ["--events", str(options.events), "--out", directory]
        subprocess.run(generate, check=True)
        subprocess.run([sys.executable, "-m", "spaseq", "warm"], check=True, capture_output=True)
        for copies in map(int, options.copies.split(",")):
            file = Path(directory, "s1.nq")
            lines.append(line := measure(file, options.events, copies, options.threads))
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
