"""Runs of the local runtime over a file in one thread, in CPU time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import spaseq

MOST_ANSWERS = 1000
"""Of one instant, as CORE's authors bound it."""


def jsonl_seconds(query: Path, streams: Mapping[str, Path]) -> tuple[float, int]:
    """CPU time of `spaseq run` from text to a file of jsonl, and its number of answers."""
    from spaseq.cli.run import run

    with TemporaryDirectory() as folder:
        out = Path(folder, "answers.jsonl")
        given = [f"--stream={name}={path}" for name, path in streams.items()]
        options = ["--out", str(out), "--runtime", "local", "--threads", "1"]
        began = time.process_time()
        with redirect_stderr(StringIO()):  # the summary of the run
            run.main([str(query), *given, *options], standalone_mode=False)
        return time.process_time() - began, out.read_bytes().count(b"\n")


def cpu_seconds(
    query: str, streams: Mapping[str, Path], kb: Mapping[str, Path] | None = None
) -> tuple[float, int]:
    """CPU time of one run from text to answers as objects, and their number."""
    began = time.process_time()
    found = spaseq.run(
        query,
        dict(streams),
        kb=dict(kb or {}),
        runtime="local",
        threads=1,
        limit_per_event=MOST_ANSWERS,
    )
    answers = sum(1 for _ in found)
    return time.process_time() - began, answers


def rate(
    query: str,
    streams: Mapping[str, Path],
    events: int,
    rounds: int,
    kb: Mapping[str, Path] | None = None,
) -> tuple[float, int]:
    """The median rate of a query in events per second, and its number of answers.

    A first run, which loads kernels and fills the page cache, does not count.
    """
    runs = [cpu_seconds(query, streams, kb) for _ in range(rounds + 1)][1:]
    return statistics.median(events / seconds for seconds, _ in runs), runs[-1][1]
