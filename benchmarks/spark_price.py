#!/usr/bin/env python3
"""What a query pays for Spark, and from which size on Spark is faster than the local runtime.

    python benchmarks/spark_price.py [--events 100000 400000 1600000] [--runs 5] [--data DIR]

The workload is *matching* of `end_to_end.py` with numbers that nearly all differ: every event has
two solutions, and few of them end a match. Each way runs in a new process, from text to `jsonl`:
the local runtime with one and with two reading threads, and Spark on `local[1]` and
`local[2]`. *start* is the time from the start of the process to the end of a first run over 1,000
events. *small* is the time of such a run once the session runs. Kernels are compiled before.

The table has the medians of CPU seconds of all processes, and the least seconds of the clock.

In the model a run over n events takes `start + n * each / cores` seconds. *start* is the CPU time
of the start on one core, and *each* is the slope of CPU time on one core between the smallest and
the largest run. So the model assumes that events and keys divide evenly, that more cores make no
more work, and that the cores have nothing else to do. It is checked against the CPU time for each
core, on one and on two cores. The clock says the same on a machine without other programs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from end_to_end import cpu_seconds
from generators.workloads import WORKLOADS
from parts import generate

WAYS = ("local 1", "local 2", "spark 1", "spark 2")
WORKLOAD = WORKLOADS["matching"]
SMALL = 1_000
MODEL_EVENTS = (100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
MODEL_CORES = (1, 2, 4, 8, 16, 32)


def measure(way: str, directory: Path, events: list[int], runs: int, began: float) -> None:
    """Measure one way in this process; prints JSON."""
    from spaseq.cli.run import run

    runtime, count = way.split()
    options = ["--runtime", runtime, "--out", str(directory / f"answers {way}.jsonl")]
    if runtime == "spark":
        from spaseq.runtime.spark.session.spark_session import session

        session(int(count))
    else:
        options += ["--threads", count]

    def once(number: int) -> tuple[float, float]:
        at, used = time.perf_counter(), cpu_seconds()
        stream = f"S1={directory / f'{number}.nq'}"
        run.main([str(WORKLOAD.query), "--stream", stream, *options], standalone_mode=False)
        return time.perf_counter() - at, cpu_seconds() - used

    once(SMALL)
    found: dict[str, Any] = {"start": (time.time() - began, cpu_seconds()), "runs": {}}
    for number in (SMALL, *events):
        once(number)
        timed = [once(number) for _ in range(runs)]
        wall, used = min(t for t, _ in timed), median(c for _, c in timed)
        found["runs"][number] = wall, used
    print(json.dumps(found))


def table(rows: list[list[str]]) -> str:
    """A Markdown table whose first row is its head."""
    head, *rest = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rest])


def model(found: dict[str, Any], sizes: list[int]) -> tuple[float, float]:
    """(CPU seconds of the start, CPU seconds for each event) of a way."""
    runs = found["runs"]
    first, last = (runs[str(n)][1] for n in (sizes[0], sizes[-1]))
    return found["start"][1], (last - first) / (sizes[-1] - sizes[0])


def report(found: dict[str, Any], sizes: list[int]) -> None:
    """Print what was measured, the model, and where Spark overtakes."""
    rows = [["way", "start", *(f"{n:,} events: CPU s (clock)" for n in (SMALL, *sizes))]]
    for way in WAYS:
        runs = found[way]["runs"].values()
        starts = "{1:.1f} ({0:.1f})".format(*found[way]["start"])
        rows.append([way, starts, *(f"{cpu:.2f} ({wall:.2f})" for wall, cpu in runs)])
    print(table(rows))
    local_start, local_each = model(found["local 1"], sizes)
    start, each = model(found["spark 1"], sizes)
    print(f"\nlocal: {local_start:.1f} s + n * {local_each * 1e6:.2f} us")
    print(f"Spark: {start:.1f} s + n * {each * 1e6:.2f} us / cores\n")
    for cores in (1, 2):
        runs = found[f"spark {cores}"]["runs"]
        small, (clock, cpu) = runs[str(SMALL)][1], runs[str(sizes[-1])]
        print(
            f"check, {cores} cores, {sizes[-1]:,} events, without the start: "
            f"{small + each * sizes[-1] / cores:.2f} s by the model, "
            f"{cpu / cores:.2f} s of CPU time for each core, {clock:.2f} s by the clock"
        )
    head = ["events", "local, one thread", *(f"Spark, {c} cores" for c in MODEL_CORES)]
    rows = [head]
    for n in MODEL_EVENTS:
        times = [local_start + n * local_each, *(start + n * each / c for c in MODEL_CORES)]
        rows.append([f"{n:,}", *(f"{t:,.1f}" for t in times)])
    print(f"\nSeconds by the model:\n\n{table(rows)}\n")
    for cores in MODEL_CORES:
        gain = local_each - each / cores
        place = f"{(start - local_start) / gain:,.0f} events" if gain > 0 else "no size"
        print(f"{cores} cores: faster than one local thread from {place} on")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 400_000, 1_600_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, help="directory for the streams")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        measure(options.way, options.data, options.events, options.runs, options.began)
        return
    with TemporaryDirectory(prefix="spaseq-price-") as temporary:
        directory = options.data or Path(temporary)
        directory.mkdir(exist_ok=True)
        for number in (SMALL, *options.events):
            if not (directory / f"{number}.nq").exists():
                generate(directory / f"{number}.nq", WORKLOAD, "high", number)
        found = {way: measured(way, directory, options) for way in WAYS}
    report(found, options.events)


def measured(way: str, directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What a process measures of one way."""
    command = [sys.executable, __file__, "--way", way, "--data", str(directory)]
    command += ["--runs", str(options.runs), "--began", str(time.time())]
    command += ["--events", *map(str, options.events)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
