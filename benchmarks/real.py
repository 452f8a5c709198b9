#!/usr/bin/env python3
"""Real streams from N-Quads text to alerts, with their knowledge bases, on both runtimes.

    python benchmarks/real.py DIR [--runs 3] [--only NAME] [--spark] [--json FILE]

The queries are in `queries/real`. A stream or knowledge base `http://FOLDER.example/...` is read
from DIR/FOLDER: `NAME.nq` for a stream whose IRI ends in `/NAME`, `kb.ttl` for a knowledge base.
`QUERY.ttl` beside a query is its ontology. Everything runs in one process, with the files in the
page cache. Each variant runs once before the measurement, so the times include neither the start of
Java nor the compilation of kernels.

pyoxigraph  only parses the streams of the query; the ratios are relative to this time
local       `spaseq run --runtime local`
spark       `spaseq run` on a local session with two cores

Seconds are wall-clock time: the median of the runs. All variants must give the same number of
answers. The streams have only a few thousand events, so the fixed costs of a run matter.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyoxigraph

from spaseq.cli.run import run
from spaseq.compile import compile_query
from spaseq.compiled.warming import warm
from spaseq.runtime.spark.session.spark_session import session

QUERIES = Path(__file__).parent / "queries" / "real"
REFERENCE = "pyoxigraph"


@dataclass(frozen=True)
class Line:
    """The measurement of one variant for one query."""

    query: str
    way: str
    events: int
    seconds: float
    answers: int
    ratio: float


@dataclass(frozen=True)
class Case:
    """A query and its inputs."""

    query: Path
    streams: dict[str, Path]
    kbs: dict[str, Path]

    @classmethod
    def of(cls, query: Path, data: Path) -> Case:
        plan = compile_query(query.read_text(), query.stem)
        read = plan.inputs
        streams = {iri: data / _folder(iri) / f"{iri.rsplit('/')[-1]}.nq" for iri in read.streams}
        return cls(query, streams, {iri: data / _folder(iri) / "kb.ttl" for iri in read.kbs})

    def arguments(self) -> list[str]:
        """The arguments of `spaseq run`."""
        found = [str(self.query)]
        for option, paths in (("--stream", self.streams), ("--kb", self.kbs)):
            for iri, path in paths.items():
                found += [option, f"{iri}={path}"]
        ontology = self.query.with_suffix(".ttl")
        return (
            [*found, "--ontology", str(ontology), "--entailment", "rdfs"]
            if (ontology.exists())
            else found
        )

    def parsed(self) -> tuple[int, int]:
        """Parse with pyoxigraph: (0 events, 0 answers)."""
        for path in self.streams.values():
            for _ in pyoxigraph.parse(path=str(path)):
                pass
        return 0, 0

    def answered(self, *options: str) -> tuple[int, int]:
        """Run `spaseq run`: (events, answers)."""
        with TemporaryDirectory() as directory:
            out, stats = Path(directory, "answers.jsonl"), Path(directory, "stats.json")
            files = ["--out", str(out), "--stats", str(stats)]
            run.main([*self.arguments(), *files, *options], standalone_mode=False)
            return json.loads(stats.read_text())["events"], out.read_bytes().count(b"\n")


def _folder(iri: str) -> str:
    return iri.removeprefix("http://").split(".")[0]


def measured(case: Case, runs: int, spark: bool) -> list[Line]:
    """Measure a query by all variants."""
    ways: dict[str, Callable[[], tuple[int, int]]] = {
        REFERENCE: case.parsed,
        "local": lambda: case.answered("--runtime", "local"),
    }
    if spark:
        ways["spark"] = case.answered
    found: dict[str, tuple[float, int, int]] = {}
    for way, work in ways.items():
        work()
        seconds = []
        for _ in range(runs):
            started = time.perf_counter()
            events, answers = work()
            seconds.append(time.perf_counter() - started)
        found[way] = median(seconds), events, answers
    _, events, answers = found["local"]
    if any(given[1:] != (events, answers) for way, given in found.items() if way != REFERENCE):
        sys.exit(f"{case.query.stem}: the ways differ: {found}")
    reference = found[REFERENCE][0]
    return [
        Line(case.query.stem, way, events, taken, answers, reference / taken)
        for way, (taken, *_) in found.items()
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DIR", help="the folders of real streams")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", metavar="NAME", help="only queries whose name begins with NAME")
    parser.add_argument("--spark", action="store_true", help="also measure Spark")
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    options = parser.parse_args()
    warm()
    if options.spark:
        session(2)
    lines = []
    print(
        f"{'query':20} {'way':11} {'events':>7} {'seconds':>8} {'events/s':>10} {'ratio':>6} found"
    )
    for query in sorted(QUERIES.glob(f"{options.only or ''}*.rq")):
        for line in measured(Case.of(query, options.data), options.runs, options.spark):
            lines.append(line)
            print(
                f"{line.query:20} {line.way:11} {line.events:7} {line.seconds:8.3f} "
                f"{line.events / line.seconds:10,.0f} {line.ratio:6.2f} {line.answers:5}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
