#!/usr/bin/env python3
"""CPU time per event of each part of a local run, where every event has two solutions.

    python benchmarks/parts.py [--events 400000] [--runs 5] [--data FILE]

An event has 4 triples: a key (one of 1,000), a price, a size and its time. Nearly all prices
differ. Each event is a solution of A and of B, and one in 2,000 is one of C, so there are few
answers. The stream is one N-Quads file in order of time, an event every millisecond. One thread
reads it.

*read* parses and assembles events, *match* evaluates the graph patterns, *sort in* and *sort out*
are the sorter (with its files), *sequence* is the second stage, and *rest* is the answers' output
and everything else. The numbers are medians, in ns per event. The first run, over a small stream,
compiles kernels and does not count.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from spaseq.cli.run import run
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.sources.files import FileSource
from spaseq.stages.sequence import SequenceStage
from spaseq.stages.sorting import RowSorter

QUERY = """
PREFIX : <http://x.example/>
SELECT ?key ?p1 ?p2 ?p3
WITHIN 2 SECONDS
PARTITION BY (?key)
FROM STREAM S <http://x.example/s>
SEQ (A; B; C) {
  DEFINE GPM A ON S { ?a :key ?key ; :price ?p1 . FILTER (?p1 >= 0) }
  DEFINE GPM B ON S { ?b :key ?key ; :price ?p2 . FILTER (?p2 >= 0 && ?p2 > ?p1) }
  DEFINE GPM C ON S { ?c :key ?key ; :price ?p3 . FILTER (?p3 >= 999.5 && ?p3 > ?p2) }
}
"""
XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"

spent: dict[str, float] = defaultdict(float)


def generate(file: Path, events: int) -> None:
    """Write the stream."""
    dice = random.Random(1)
    with file.open("w") as out:
        for i in range(events):
            seconds, ms = divmod(i, 1000)
            clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"
            key, price, size = dice.randrange(1000), dice.uniform(0, 1000), dice.randrange(100)
            name = f"<urn:e{i}>"
            out.write(
                f"_:b{i} <http://x.example/key> <http://x.example/k{key}> {name} .\n"
                f'_:b{i} <http://x.example/price> "{price:.4f}"^^<{XSD}double> {name} .\n'
                f'_:b{i} <http://x.example/size> "{size}"^^<{XSD}integer> {name} .\n'
                f'{name} {TIME} "2026-01-01T{clock}Z"^^<{XSD}dateTime> .\n'
            )


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


def answers(query: Path, stream: Path) -> int:
    """Run the query; returns the number of answers."""
    out = query.with_name("answers.jsonl")
    options = ["--stream", f"S={stream}", "--out", str(out), "--runtime", "local", "--threads", "1"]
    run.main([str(query), *options], standalone_mode=False)
    return out.read_bytes().count(b"\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, help="file for the stream; made if it does not exist")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="spaseq-parts-") as directory:
        query, small = Path(directory, "q.rq"), Path(directory, "small.nq")
        stream = options.data or Path(directory, "s.nq")
        query.write_text(QUERY)
        generate(small, 1_000)
        if not stream.exists():
            generate(stream, options.events)
        answers(query, small)
        instrument()
        found, runs = 0, list[dict[str, float]]()
        for _ in range(options.runs):
            spent.clear()
            started = time.process_time()
            found = answers(query, stream)
            whole = time.process_time() - started
            runs.append({**spent, "rest": whole - sum(spent.values()), "whole": whole})
    print(f"{found} answers from {options.events:,} events; ns of CPU time per event")
    for part in runs[0]:
        print(f"{part:10} {median(each[part] for each in runs) * 1e9 / options.events:7.0f}")


if __name__ == "__main__":
    main()
