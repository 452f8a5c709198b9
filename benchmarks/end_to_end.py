#!/usr/bin/env python3
"""From the text of a stream to alerts: three workloads, on both runtimes, against parsing alone.

    python benchmarks/end_to_end.py [--events 200000] [--runs 3] [--spark]
                                    [--only local "spark[2] batch"]
                                    [--workload selective matching answering]
                                    [--cardinality low high] [--format nq nq.gz trig]
                                    [--data DIR] [--json FILE]
    python benchmarks/end_to_end.py --spark --events 5000000 --workload selective --cardinality low
                                    --format nq

`generators/workloads.py` says what the workloads and cardinalities are: in *selective*, 9.5 % of
the events have a solution; in *matching*, every event has two, but few matches end; in *answering*,
every event has one, and 15 % end a match. Values are 1,000 integers (*low*), or doubles that nearly
all differ (*high*). The output format is jsonl. The following variants are measured:

pyoxigraph      only parses the file; the ratios are relative to this time
local           `--runtime local` with one or two reader threads
spark[n] batch  `spaseq run` on `local[n]`
spark[n] follow Structured Streaming over the same file, which exists before the query starts

Each variant runs in a separate process, with the file in the page cache and with compiled kernels.
On Spark, the session first runs once over a small stream. All runs of a workload must give the same
answers.

The table shows medians of the runs. Seconds are wall-clock time. *CPU* is the CPU time of the
process and its children; compare it if the machine has other users. *local 2* is the rate divided
by the rate of two local threads, which run in the same process after each run on Spark. *start* is
the time of the same variant for a small stream: almost only the start of a job or a streaming
query. *steady* is *local 2* without that time. *memory* is the peak memory of the process; on Spark
it includes only the driver's Python.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from generate import FORMATS, write_files
from generators.workloads import CARDINALITIES, WORKLOADS

SMALL = 20_000  # events of the stream that shows what a start costs
REFERENCE = "pyoxigraph"
LOCAL = ("local, 1 thread", "local, 2 threads")
SPARK = ("spark[1] batch", "spark[2] batch", "spark[1] follow", "spark[2] follow")


@dataclass(frozen=True)
class Work:
    """A workload, its values and the format of its stream."""

    workload: str
    cardinality: str
    form: str

    def __str__(self) -> str:
        return f"{self.workload:9} {self.cardinality:4} {self.form:5}"

    @property
    def query(self) -> Path:
        """The file of the query."""
        return WORKLOADS[self.workload].query

    def stream(self, data: Path, size: str) -> Path:
        """The file of a stream, alone in its directory."""
        return (
            data / "-".join((self.workload, self.cardinality, self.form)) / size / f"s1.{self.form}"
        )

    def generate(self, data: Path, size: str, events: int) -> None:
        """Write a stream, unless its file exists."""
        workload, file = WORKLOADS[self.workload], self.stream(data, size)
        if not file.exists():
            first = islice(workload.events(self.cardinality), events)
            write_files(
                workload.case(self.cardinality), first, workload.keys, file.parent, self.form
            )


@dataclass(frozen=True)
class Line:
    """The measurements of one variant."""

    work: Work
    way: str
    events: int
    seconds: float
    cpu: float
    answers: int
    memory_mb: float
    of_local: float | None = None  # the rate divided by the rate of two local threads
    start: float | None = None  # seconds for a small stream
    steady: float | None = None  # `of_local` without `start`
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds


# --- the variants: each returns the number of answers and the seconds by stage --------------------

Outcome = tuple[int, dict[str, float]]


def by_pyoxigraph(file: Path, query: Path) -> Outcome:
    import pyoxigraph

    if file.suffix == ".gz":
        with gzip.open(file) as unpacked:
            for _ in pyoxigraph.parse(unpacked, pyoxigraph.RdfFormat.N_QUADS):
                pass
        return 0, {}
    for _ in pyoxigraph.parse(path=str(file)):
        pass
    return 0, {}


def by_command(file: Path, query: Path, *options: str) -> Outcome:
    from spaseq.cli.run import run

    with TemporaryDirectory() as directory:
        out, stats = Path(directory, "answers.jsonl"), Path(directory, "stats.json")
        arguments = [str(query), "--stream", f"S1={file}", "--out", str(out)]
        run.main([*arguments, "--stats", str(stats), *options], standalone_mode=False)
        found = json.loads(stats.read_text())
        return out.read_bytes().count(b"\n"), found["stages"]


def by_following(file: Path, query: Path) -> Outcome:
    from spaseq.compile import compile_query
    from spaseq.kb.knowledge import KnowledgeBase
    from spaseq.options import FollowOptions
    from spaseq.rdf.inputs.stream_options import StreamOptions
    from spaseq.runtime.job.job import Job
    from spaseq.runtime.spark.following.follow import run
    from spaseq.sources.files import FileSource

    plan = compile_query(query.read_text(), query.stem)
    streams = (FileSource(StreamOptions(plan.inputs.streams[0], (str(file.parent),))),)
    job = Job((plan,), streams, KnowledgeBase.empty())
    with TemporaryDirectory() as directory:
        out = Path(directory, "answers.jsonl")
        options = FollowOptions(Path(directory, "state"), until_done=True)
        run(job, options, out=str(out), form="jsonl")
        return out.read_bytes().count(b"\n"), job.stats.stages


def way(name: str) -> Callable[[Path, Path], Outcome]:
    """The function that runs a variant on a file and a query; starts Spark if needed."""
    if name == REFERENCE:
        return by_pyoxigraph
    from spaseq.compiled.warming import warm

    warm()
    if name in LOCAL:
        threads = str(1 + LOCAL.index(name))
        return lambda file, query: by_command(
            file, query, "--runtime", "local", "--threads", threads
        )
    from spaseq.runtime.spark.session.spark_session import session

    session(int(name[len("spark[")]))
    return by_following if name.endswith("follow") else by_command


# --- measuring ---------------------------------------------------------------------------------


def cpu_seconds() -> float:
    """CPU seconds of this process and its descendants, which include Spark's processes (Linux)."""
    times: dict[int, tuple[int, int]] = {}  # parent, ticks
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # the process has ended
            continue
        times[int(place.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    own = {os.getpid()}
    for pid in times:
        line, at = [pid], pid
        while at in times and at not in own:
            at = times[at][0]
            line.append(at)
        if at in own:
            own.update(line)
    return sum(times[pid][1] for pid in own) / os.sysconf("SC_CLK_TCK")


def measure(name: str, work: Work, data: Path, events: int, runs: int) -> Line:
    """Measure one variant in this process."""
    run, query = way(name), work.query
    file, small = work.stream(data, "large"), work.stream(data, "small")
    local = way(LOCAL[1]) if name in SPARK else None
    if name != REFERENCE:
        run(small, query)
    seconds, cpu, answers = [], [], 0
    locally, starts = list[float](), list[float]()
    stages: dict[str, float] = {}
    for _ in range(runs):
        started, used = time.perf_counter(), cpu_seconds()
        answers, stages = run(file, query)
        seconds.append(time.perf_counter() - started)
        cpu.append(cpu_seconds() - used)
        if local is not None:
            locally.append(_timed(local, file, query))
            starts.append(_timed(run, small, query))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = Line(work, name, events, median(seconds), median(cpu), answers, memory, stages=stages)
    if local is None:
        return line
    runs_of = [*zip(seconds, locally, starts, strict=True)]
    return replace(
        line,
        of_local=median(here / s for s, here, _ in runs_of),
        start=median(starts),
        steady=median(here / (s - start) for s, here, start in runs_of),
    )


def _timed(run: Callable[[Path, Path], Outcome], file: Path, query: Path) -> float:
    started = time.perf_counter()
    run(file, query)
    return time.perf_counter() - started


def measured(name: str, work: Work, options: argparse.Namespace, data: Path) -> Line:
    """Measure one variant in a separate process."""
    command = [sys.executable, __file__, "--way", name, "--events", str(options.events)]
    command += ["--runs", str(options.runs), "--data", str(data), "--format", work.form]
    command += ["--workload", work.workload, "--cardinality", work.cardinality]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return Line(**{**json.loads(done.stdout), "work": work})


def ways(options: argparse.Namespace) -> Iterator[str]:
    for name in (REFERENCE, *LOCAL, *(SPARK if options.spark else ())):
        if name == REFERENCE or any(text in name for text in options.only):
            yield name


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    for name, choices in (
        ("--workload", WORKLOADS),
        ("--cardinality", CARDINALITIES),
        ("--format", FORMATS),
    ):
        parser.add_argument(name, nargs="+", choices=choices, default=list(choices))
    parser.add_argument("--spark", action="store_true", help="also measure Spark")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="only variants whose name contains a TEXT",
    )
    parser.add_argument(
        "--data", type=Path, help="directory for the streams; existing files are reused"
    )
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    """The command line."""
    options = arguments().parse_args()
    chosen = product(options.workload, options.cardinality, options.format)
    works = [Work(*each) for each in chosen]
    if options.way:
        (work,) = works
        line = measure(options.way, work, options.data, options.events, options.runs)
        print(json.dumps(asdict(line)))
        return
    lines = []
    names = ("seconds", "CPU", "events/s", "ratio", "CPU ratio", "local 2", "start", "steady")
    names += ("memory", "found")
    widths = 8, 7, 11, 6, 9, 7, 5, 6, 8, 8
    columns = (f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    print(f"{'work':20} {'way':17}", *columns)
    for work in works:
        with TemporaryDirectory(prefix="spaseq-end-to-end-") as directory:
            lines += compared(work, options, options.data or Path(directory))
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


def compared(work: Work, options: argparse.Namespace, data: Path) -> list[Line]:
    """Measure and show all variants of one work."""
    work.generate(data, "large", options.events)
    work.generate(data, "small", SMALL)
    lines: list[Line] = []
    for name in ways(options):
        lines.append(measured(name, work, options, data))
        show(lines[-1], lines[0])
    if len({line.answers for line in lines[1:]}) > 1:
        sys.exit(f"{work}: the variants' answers differ")
    return lines


def show(line: Line, reference: Line) -> None:
    """One line of the table."""
    stages = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in line.stages.items())
    of_local, start, steady = (
        "" if value is None else f"{value:.2f}"
        for value in (line.of_local, line.start, line.steady)
    )
    print(
        f"{line.work!s} {line.way:17} {line.seconds:8.2f} {line.cpu:7.2f} {line.rate:11,.0f} "
        f"{reference.seconds / line.seconds:6.2f} {reference.cpu / line.cpu:9.2f} "
        f"{of_local:>7} {start:>5} {steady:>6} {line.memory_mb:5.0f} MB {line.answers:8}  {stages}",
        flush=True,
    )


if __name__ == "__main__":
    main()
