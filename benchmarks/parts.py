#!/usr/bin/env python3
"""CPU time per event of each part of a local run, by default where every event has two solutions.

    python benchmarks/parts.py [--workload matching] [--cardinality high] [--events 400000]
                               [--runs 5] [--data FILE]

It takes the workloads of `end_to_end.py`. The stream is one N-Quads file in order of time, an
event every millisecond. One thread reads it.

*read* parses and assembles events, *match* evaluates the graph patterns, *sort in* and *sort out*
are the sorter (with its files), *sequence* is the second stage, and *rest* is the answers' output
and everything else. The numbers are medians, in ns per event. The first run, over a small stream,
compiles kernels and does not count.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from generators.workloads import CARDINALITIES, WORKLOADS, Workload

from spaseq.cli.run import run
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.sources.files import FileSource
from spaseq.stages.sequence import SequenceStage
from spaseq.stages.sorting import RowSorter

spent: dict[str, float] = defaultdict(float)


def generate(file: Path, workload: Workload, cardinality: str, events: int) -> None:
    """Write the stream."""
    with file.open("w", encoding="utf-8") as out:
        out.writelines(event.text for event in islice(workload.events(cardinality), events))


def timed(owner: type, name: str, part: str) -> None:
    """Add the CPU time of a method to a part."""
    original: Callable[..., Any] = getattr(owner, name)

    def method(*arguments: Any, **options: Any) -> Any:
        started = time.process_time()
        try:
            return original(*arguments, **options)
        finally:
            spent[part] += time.process_time() - started

    setattr(owner, name, method)


def timed_iterator(owner: type, name: str, part: str) -> None:
    """Add the CPU time of a method's iterator to a part."""
    original: Callable[..., Iterator[Any]] = getattr(owner, name)

    def method(*arguments: Any) -> Generator[Any]:
        items = original(*arguments)
        while True:
            started = time.process_time()
            item = next(items, None)
            spent[part] += time.process_time() - started
            if item is None:
                return
            yield item

    setattr(owner, name, method)


def instrument() -> None:
    """Time the parts of all runs from now on."""
    timed_iterator(FileSource, "open", "read")
    timed(PatternStage, "match", "match")
    timed(RowSorter, "add", "sort in")
    timed_iterator(RowSorter, "batches", "sort out")
    timed(SequenceStage, "advance", "sequence")
    timed(SequenceStage, "close", "sequence")


def answers(query: Path, stream: Path, out: Path) -> int:
    """Run the query; returns the number of answers."""
    options = [
        "--stream",
        f"S1={stream}",
        "--out",
        str(out),
        "--runtime",
        "local",
        "--threads",
        "1",
    ]
    run.main([str(query), *options], standalone_mode=False)
    return out.read_bytes().count(b"\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", choices=WORKLOADS, default="matching")
    parser.add_argument("--cardinality", choices=CARDINALITIES, default="high")
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, help="file for the stream; made if it does not exist")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="spaseq-parts-") as directory:
        workload, out = WORKLOADS[options.workload], Path(directory, "answers.jsonl")
        small, stream = Path(directory, "small.nq"), options.data or Path(directory, "s.nq")
        generate(small, workload, options.cardinality, 1_000)
        if not stream.exists():
            generate(stream, workload, options.cardinality, options.events)
        answers(workload.query, small, out)
        instrument()
        found, runs = 0, list[dict[str, float]]()
        for _ in range(options.runs):
            spent.clear()
            started = time.process_time()
            found = answers(workload.query, stream, out)
            whole = time.process_time() - started
            runs.append({**spent, "rest": whole - sum(spent.values()), "whole": whole})
    print(f"{found} answers from {options.events:,} events; ns of CPU time per event")
    for part in runs[0]:
        print(f"{part:10} {median(each[part] for each in runs) * 1e9 / options.events:7.0f}")


if __name__ == "__main__":
    main()
