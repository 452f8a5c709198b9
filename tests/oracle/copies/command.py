"""Runs of the command line over the copies of a case: as a process, or in this one."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spaseq.cli.main import cli
from tests.oracle.copies.files import Written
from tests.thresholds import environment, forced, names

TIMEOUT_S = 900


@dataclass(frozen=True)
class Road:
    """How a case is run: with which runtime, in a process or in this one, with partial matches?"""

    runtime: str = "local"
    process: bool = True
    partial: bool = False
    thresholds: str = ""  # how sizes that choose between ways are forced


@dataclass(frozen=True)
class Output:
    """What a run has left: files, and what went wrong, if anything."""

    answers: Path
    partial: Path
    problem: str
    crossed: frozenset[str] = frozenset()  # names of thresholds


def run(
    road: Road, texts: Mapping[str, str], written: Sequence[Written], directory: Path
) -> Output:
    """Run queries, by name, over the written streams; the largest knowledge base has all keys."""
    queries = directory / "queries"
    queries.mkdir(exist_ok=True)
    for name, text in texts.items():
        (queries / f"{name}.rq").write_text(text, encoding="utf-8")
    output = Output(directory / "answers.jsonl", directory / "partial.jsonl", "")
    stats, bad = directory / "stats.json", directory / "bad.jsonl"
    several = (
        ["--queries", str(queries)]
        if len(texts) > 1
        else [str(queries / f"{next(iter(texts))}.rq")]
    )
    words = ["run", *several, "--runtime", road.runtime, "--out", str(output.answers)]
    words += ["--stats", str(stats), "--bad", str(bad)]
    words += ["--partial", str(output.partial)] if road.partial else []
    for iri, path in (pair for each in written for pair in each.streams.items()):
        words += ["--stream", f"<{iri}>={path}"]
    graphs = sorted(
        (pair for each in written for pair in each.kb.items()), key=lambda p: p[1].stat().st_size
    )
    for iri, path in dict(graphs).items():
        words += ["--kb", f"{iri}={path}"]
    crossed = directory / "crossed.txt"
    problem = _in_process(words, road, crossed) if road.process else _here(words, road, crossed)
    if not problem and json.loads(stats.read_text())["bad"]:
        problem = f"bad input: {bad.read_text()[:1000]}"
    return Output(output.answers, output.partial, problem, frozenset(names(crossed)))


def _in_process(words: list[str], road: Road, crossed: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "spaseq", *words],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(road.thresholds, crossed),
        check=False,
    )
    return "" if not done.returncode else f"status {done.returncode}\n{done.stderr[-3000:]}"


def _here(words: list[str], road: Road, crossed: Path) -> str:
    said = io.StringIO()
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(said),
        forced(road.thresholds) as seen,
    ):
        try:
            cli.main(words, standalone_mode=False)
        except SystemExit as end:
            return "" if not end.code else f"status {end.code}\n{said.getvalue()[-3000:]}"
        except Exception as error:
            return f"{type(error).__name__}: {error}\n{said.getvalue()[-3000:]}"
        finally:
            crossed.write_text("\n".join(seen))
    return ""
