#!/usr/bin/env python3
"""Measure what docs/benchmarks.md and docs/cost.md show, and write it into them.

    python benchmarks/pages.py measure [NAME ...] [--flink PYTHON]
    python benchmarks/pages.py write

`measure` runs the programs one after the other, which takes about an hour on a quiet machine, and
keeps what each prints in `benchmarks/measured/`, below its command, the date, and how fast the
machine was. `write` puts these texts into the page, between the comments `<!-- measured: NAME -->`
and `<!-- end -->`, and draws the figures of docs/cost.md (extra `plots`). So no number of these
pages is written by hand. `--flink` is a Python in which apache-flink is installed (`flink_cep.py`);
without it that comparison keeps the text of its last run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

BENCHMARKS = Path(__file__).parent
MEASURED = BENCHMARKS / "measured"
PAGE = BENCHMARKS.parent / "docs" / "benchmarks.md"

MATCHING = "--workload matching --cardinality high --format nq"
RUNS = {
    "commands": "benchmarks/commands.py",
    "workloads": "benchmarks/end_to_end.py --only local --format nq",
    "spark": f"benchmarks/end_to_end.py --spark --events 1600000 {MATCHING}",
    "parts": "benchmarks/parts.py",
    "formats": "benchmarks/message_formats.py",
    "reading": "benchmarks/ingest.py --runs 3",
    "tables": "benchmarks/lift.py --events 400000",
    "peers": "benchmarks/lift.py --others --events 100000 --flink PYTHON",
    "sequences": "benchmarks/sequence.py --events 1000000 --rounds 3",
    "forms": "benchmarks/evaluator_forms.py",
    "partial": "benchmarks/partial_matches.py",
    "patterns": "benchmarks/graph_patterns.py --runs 3",
    "knowledge": "benchmarks/kb.py --triples 10000 100000 1000000",
    "changing": "benchmarks/last_positions.py",
    "places": "benchmarks/places.py",
    "paths": "benchmarks/paths.py --runs 3",
    "latency": "benchmarks/latency.py",
    "memory": "benchmarks/memory.py --copies 1,5",
    "broker": "-m benchmarks.live latency --rate 5000 --sync 5",
    "messages": "-m benchmarks.live throughput --events 200000",
    "posts": "benchmarks/posts.py",
    "silence": "benchmarks/silence.py",
    "price": "benchmarks/spark_price.py --runs 3",
    "keys": "benchmarks/spark.py keys --events 1000000 --keys 100000",
    "batches": "benchmarks/spark.py batches --sizes 10 1000 10000",
    "state": "benchmarks/spark.py state --megabytes 100",
    "queries": "benchmarks/queries.py --numbers 1 100 1000 --ways local pushed "
    "--workloads family families shapes --kinds rare few",
    "members": "benchmarks/queries.py --numbers 1 10 100 1000 10000 --events 8000 "
    "--workloads rules --kinds many --ways local",
    "windows": "benchmarks/windows.py --runs 3",
    "rules": "benchmarks/rules.py",
    "cost": "-m benchmarks.cost measure --rounds 2 --longest 1000000",
}


def loop_seconds() -> float:
    """How fast the machine is: seconds that a loop of Python over ten million numbers takes."""
    began = time.perf_counter()
    for _ in range(10_000_000):
        pass
    return time.perf_counter() - began


def measure(name: str, flink: str | None) -> None:
    """Run one program and keep what it prints."""
    command = f"python {RUNS[name]}"
    if "PYTHON" in command and flink is None:
        print(f"{name}: left out, without --flink", flush=True)
        return
    loop, load, began = loop_seconds(), os.getloadavg()[0], time.monotonic()
    words = [{"python": sys.executable, "PYTHON": flink or ""}.get(w, w) for w in command.split()]
    done = subprocess.run(
        words, cwd=BENCHMARKS.parent, stdout=subprocess.PIPE, text=True, check=False
    )
    took = time.monotonic() - began
    if done.returncode:
        print(f"{name}: exit status {done.returncode}, the last text stays", flush=True)
        return
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    said = (
        f"{datetime.now(UTC):%Y-%m-%d}, a loop of ten million takes {loop:.2f} s, load {load:.1f}"
    )
    MEASURED.mkdir(exist_ok=True)
    text = "\n".join((f"$ {command}", f"# {said}", *lines))
    (MEASURED / f"{name}.txt").write_text(text + "\n", "utf-8")
    print(f"{name}: {took:.0f} s", flush=True)


def filled(page: str) -> str:
    """The page with the texts that are kept."""

    def block(found: re.Match[str]) -> str:
        name = found[1]
        kept = MEASURED / f"{name}.txt"
        text = kept.read_text("utf-8") if kept.exists() else ""
        return f"<!-- measured: {name} -->\n```text\n{text}```\n<!-- end -->"

    return re.sub(r"<!-- measured: (\w+) -->\n.*?<!-- end -->", block, page, flags=re.DOTALL)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("measure", "write"))
    parser.add_argument("names", nargs="*", choices=[*RUNS, []], help="default: all")
    parser.add_argument("--flink", metavar="PYTHON")
    options = parser.parse_args()
    if options.what == "measure":
        for name in options.names or RUNS:
            measure(name, options.flink)
        return
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
    draw = [sys.executable, "-m", "benchmarks.cost", "draw"]
    subprocess.run(draw, cwd=BENCHMARKS.parent, check=True)


if __name__ == "__main__":
    main()
