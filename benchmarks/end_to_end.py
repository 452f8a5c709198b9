#!/usr/bin/env python3
"""From N-Quads text to alerts: the three-step correlated query by key over five-triple events.

    python benchmarks/end_to_end.py [--events 1000000] [--runs 3] [--spark] [--selectivity 0.1]
                                    [--query FILE] [--data DIR] [--json FILE]
    python benchmarks/end_to_end.py --spark --events 5000000 --selectivity 0.045

The stream comes from `generate.py synthetic`. The query is `queries/synthetic/sequence.rq` or
another query over that stream. The output format is jsonl. The following variants are measured:

pyoxigraph      only parses the file; the ratios are relative to this time
local           `--runtime local` with one or two reader threads
spark[n] batch  `spaseq run` on `local[n]`
spark[n] follow Structured Streaming over the same file, which exists before the query starts

Each variant runs in a separate process, with the file in the page cache and with compiled kernels.
On Spark, the session first runs once over a small stream. All runs must give the same answers.

The table shows medians of the runs. Seconds are wall-clock time. *CPU* is the CPU time of the
process and its children; compare it if the machine has other users. *local 2* is the rate divided
by the rate of two local threads, which run in the same process after each run on Spark. *start* is
the time of the same variant for a small stream: almost only the start of a job or a streaming
query. *steady* is *local 2* without that time. *memory* is the peak memory of the process; on Spark
it includes only the driver's Python. By default, 21 % of the events have a solution. With
`--selectivity 0.045` it is 9.5 %, and with `--selectivity 0.3333333 --query
benchmarks/queries/synthetic/every.rq` it is 100 %.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
QUERY = HERE / "queries" / "synthetic" / "sequence.rq"
REFERENCE = "pyoxigraph"
LOCAL = ("local, 1 thread", "local, 2 threads")
SPARK = ("spark[1] batch", "spark[2] batch", "spark[1] follow", "spark[2] follow")


@dataclass(frozen=True)
class Line:
    """The measurements of one variant."""

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


def generate(directory: Path, events: int, selectivity: float) -> None:
    """Write the stream as one file, unless the file exists."""
    if (directory / "s1.nq").exists():
        return
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(HERE / "generate.py"), "synthetic", "--seed", "1"]
    command += ["--events", str(events), "--selectivity", str(selectivity)]
    subprocess.run([*command, "--out", str(directory)], check=True)


# --- the variants: each returns the number of answers and the seconds by stage --------------------

Outcome = tuple[int, dict[str, float]]


def by_pyoxigraph(file: Path, query: Path) -> Outcome:
    import pyoxigraph

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


def measure(name: str, query: Path, file: Path, small: Path, events: int, runs: int) -> Line:
    """Measure one variant in this process."""
    run = way(name)
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
    line = Line(name, events, median(seconds), median(cpu), answers, memory, stages=stages)
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


def measured(name: str, options: argparse.Namespace, directory: Path) -> Line:
    """Measure one variant in a separate process."""
    command = [sys.executable, __file__, "--way", name, "--events", str(options.events)]
    command += ["--runs", str(options.runs), "--directory", str(directory)]
    command += ["--query", str(options.query)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return Line(**json.loads(done.stdout))


def ways(options: argparse.Namespace) -> Iterator[str]:
    for name in (REFERENCE, *LOCAL, *(SPARK if options.spark else ())):
        if name == REFERENCE or options.only in name:
            yield name


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--selectivity", type=float, default=0.1, help="share of each of three types"
    )
    parser.add_argument("--query", type=Path, default=QUERY, help="a query over the stream S1")
    parser.add_argument("--spark", action="store_true", help="also measure Spark")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only variants whose name contains TEXT"
    )
    parser.add_argument(
        "--data", type=Path, help="directory for the streams; existing files are reused"
    )
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    for hidden in ("--way", "--directory"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        place = Path(options.directory)
        files = place / "large" / "s1.nq", place / "small" / "s1.nq"
        print(
            json.dumps(
                asdict(measure(options.way, options.query, *files, options.events, options.runs))
            )
        )
        return
    with TemporaryDirectory(prefix="spaseq-end-to-end-") as directory:
        place = options.data or Path(directory)
        for name, events in (("large", options.events), ("small", 20_000)):
            generate(place / name, events, options.selectivity)
        lines = []
        print(f"{'way':17} {'seconds':>8} {'CPU':>7} {'events/s':>11} {'ratio':>6} {'CPU ratio':>9}"
              f" {'local 2':>7} {'start':>5} {'steady':>6} {'memory':>8} {'found':>8}")  # fmt: skip
        for name in ways(options):
            lines.append(measured(name, options, place))
            show(lines[-1], lines[0])
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


def show(line: Line, reference: Line) -> None:
    """One line of the table."""
    stages = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in line.stages.items())
    of_local, start, steady = (
        "" if value is None else f"{value:.2f}"
        for value in (line.of_local, line.start, line.steady)
    )
    print(
        f"{line.way:17} {line.seconds:8.2f} {line.cpu:7.2f} {line.rate:11,.0f} "
        f"{reference.seconds / line.seconds:6.2f} {reference.cpu / line.cpu:9.2f} "
        f"{of_local:>7} {start:>5} {steady:>6} {line.memory_mb:5.0f} MB {line.answers:8}  {stages}",
        flush=True,
    )


if __name__ == "__main__":
    main()
