"""Spark: many keys in one bounded run, and the time of a followed run's batches.

    python benchmarks/spark.py keys --events 1000000 --keys 100000
    python benchmarks/spark.py batches --sizes 10 1000 10000 100000
    python benchmarks/spark.py state --megabytes 100

`keys` measures rows per second of stage 2, bounded and followed, and the time of the first batch
after a restart, which restores the state of all keys. `batches` measures the time of a batch by its
number of events. `state` measures the time of a small batch with small and with large state, and of
the first batch after a restart. A restart is a new session with new workers in the running JVM.
Each command prints a table and, with `--json FILE`, also writes it to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark import bounded as bounded
from spaseq.runtime.spark.following.follow import follow
from spaseq.runtime.spark.session.spark_session import session
from spaseq.sources.files import FileSource

KEY_FILES = 8
STREAM = "http://b.example/s"
QUERY = """PREFIX : <http://b.example/>
SELECT * WITHIN {window} FROM STREAM S <http://b.example/s>
SEQ (A; B; C) {{
  DEFINE GPM A ON S {{ ?machine :load ?a ; :state "on" FILTER (?a >= {least}) }}
  DEFINE GPM B ON S {{ ?machine :load ?b ; :state "on" FILTER (?b < ?a) }}
  DEFINE GPM C ON S {{ ?machine :load ?c ; :state "off" }}
}}"""


def events(first: int, count: int, keys: int, step_ms: int = 1) -> Iterator[str]:
    """The N-Quads of each event; keys repeat after `keys` events."""
    long, m = "http://www.w3.org/2001/XMLSchema#long", "http://b.example/"
    for n in range(first, first + count):
        state = "off" if (n // keys) % 5 == 4 else "on"
        g, s, load = f"<{m}e/{n}>", f"<{m}k{n % keys}>", (n * 2654435761 >> 12) % 1000
        yield (
            f'{g} <http://www.w3.org/ns/prov#generatedAtTime> "{n * step_ms}"^^<{long}> .\n'
            f'{s} <{m}load> "{load}"^^<{long}> {g} .\n{s} <{m}state> "{state}" {g} .\n'
        )


def write(path: Path, text: Iterator[str]) -> int:
    """Write a file that appears atomically; returns its size."""
    unfinished = path.with_name(f".{path.name}")
    with unfinished.open("w", encoding="ascii") as file:
        file.writelines(text)
    unfinished.rename(path)
    return path.stat().st_size


def job(path: Path, window: str, least: int = 0) -> Job:
    """A run over one stream; A's load is in [`least`, 999]."""
    plan = compile_query(QUERY.format(window=window, least=least), "benchmark")
    return Job((plan,), (FileSource(StreamOptions(STREAM, (str(path),))),), KnowledgeBase.empty())


def many_keys(directory: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure `keys`: every key has ten events in the window; 1 % of A's solutions remain."""
    count, keys = arguments.events, arguments.keys
    window = f"{10 * keys} MILLISECONDS"
    files = directory / "in"
    files.mkdir()
    part = -(-count // KEY_FILES)
    for first in range(0, count, part):
        write(files / f"{first:09}.nq", events(first, min(part, count - first), keys))

    def row(way: str, work: Job, found: int, seconds: float, restored: float) -> dict[str, Any]:
        stage_2 = work.stats.stages["sequence"]
        return {
            "way": way,
            "events": work.stats.events,
            "keys": keys,
            "answers": found,
            "seconds": round(seconds, 1),
            "stage 1, s of work": round(seconds_of(work, "ingest", "graph patterns"), 1),
            "stage 2, s of work": round(stage_2, 1),
            "stage 2, M rows/s and core": round(work.stats.events / stage_2 / 1e6, 2),
            "state, MB": round(sum(work.stats.state_bytes.values()) / 2**20, 1),
            "first batch after a restart, s": round(restored, 1),
        }

    list(bounded.run(job(files, window, 1000)))  # workers start, kernels are loaded
    work = job(files, window, 990)
    started = time.perf_counter()
    found = sum(1 for _ in bounded.run(work))
    rows = [row("bounded", work, found, time.perf_counter() - started, 0.0)]
    work = job(files, window, 990)
    started = time.perf_counter()
    found = sum(1 for _ in follow(work, FollowOptions(directory / "state", until_done=True)))
    seconds = time.perf_counter() - started
    restart(arguments.cores)
    size = write(files / f"{count:09}.nq", events(count, 100, keys))
    _, restored = followed(job(files, window, 990), directory / "state", size)
    return [*rows, row("followed", work, found, seconds, restored)]


def restart(cores: int) -> None:
    """Start a new session with new workers."""
    session().stop()
    session(cores)


def seconds_of(work: Job, *stages: str) -> float:
    return sum(work.stats.stages.get(stage, 0.0) for stage in stages)


class Ends:
    """Records when batches ended."""

    def __init__(self, work: Job) -> None:
        self.at: list[float] = []
        self.work = work

    def begin(self, batch: int) -> None:
        pass

    def end(self, batch: int) -> None:
        self.at.append(time.perf_counter())


def followed(work: Job, checkpoint: Path, batch: int) -> tuple[list[float], float]:
    """Run a job in batches of `batch` bytes.

    Returns:
        Seconds of each batch after the first one, and seconds until the first one ended.
    """
    ends = Ends(work)
    settings = FileSourceSettings(max_bytes=batch)
    started = time.perf_counter()
    options = FollowOptions(checkpoint, settings, until_done=True)
    for _ in follow(work, options, output=ends):
        pass
    return [b - a for a, b in zip(ends.at, ends.at[1:], strict=False)], ends.at[0] - started


def batches(directory: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for size in arguments.sizes:
        place = directory / str(size)
        (place / "in").mkdir(parents=True)
        count = max(3, min(arguments.batches, 400_000 // size))
        files = [
            write(place / "in" / f"{n:05}.nq", events(n * size, size, 1000)) for n in range(count)
        ]
        times, _ = followed(job(place / "in", "10 SECONDS"), place / "checkpoint", max(files))
        rows.append(
            {
                "events per batch": size,
                "batches": len(times),
                "p50, ms": round(1000 * median(times)),
                "p99, ms": round(1000 * quantiles(times, n=100)[-1]),
                "events/s": round(size / median(times)),
            }
        )
    return rows


def large_state(directory: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    place = directory / "in"
    place.mkdir()
    checkpoint = directory / "checkpoint"
    per_file, keys, small = 50_000, 10**9, 100
    next_event = 0

    def deliver(count: int) -> int:
        nonlocal next_event
        size = write(place / f"{next_event:012}.nq", events(next_event, count, keys))
        next_event += count
        return size

    rows = []
    for megabytes in (0, arguments.megabytes):
        size = 0.0
        while size < megabytes:
            largest = max(deliver(per_file) for _ in range(4))
            filling = job(place, "7 DAYS")
            followed(filling, checkpoint, largest)
            size = sum(filling.stats.state_bytes.values()) / 2**20
        largest = max(deliver(small) for _ in range(arguments.batches))
        restart(arguments.cores)
        work = job(place, "7 DAYS")
        times, first = followed(work, checkpoint, largest)
        rows.append(
            {
                "state, MB": round(sum(work.stats.state_bytes.values()) / 2**20, 1),
                "partial matches": sum(work.stats.live_runs.values()),
                "events per batch": small,
                "p50, ms": round(1000 * median(times)),
                "p99, ms": round(1000 * quantiles(times, n=100)[-1]),
                "first batch after a restart, s": round(first, 1),
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0])
    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    lines += [" | ".join(str(row[name]) for name in names) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Callable[..., list[dict[str, Any]]]) -> argparse.ArgumentParser:
        one = commands.add_parser(name)
        one.set_defaults(run=run)
        return one

    keys = command("keys", many_keys)
    keys.add_argument("--events", type=int, default=1_000_000)
    keys.add_argument("--keys", type=int, default=100_000)
    sizes = command("batches", batches)
    sizes.add_argument("--sizes", type=int, nargs="+", default=[10, 1000, 10_000, 100_000])
    sizes.add_argument("--batches", type=int, default=50)
    state = command("state", large_state)
    state.add_argument("--megabytes", type=int, default=100)
    state.add_argument("--batches", type=int, default=30)
    arguments = parser.parse_args()
    session(arguments.cores)
    with tempfile.TemporaryDirectory(prefix="spaseq-benchmark-") as directory:
        rows = arguments.run(Path(directory), arguments)
    print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
