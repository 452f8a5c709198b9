"""Followed runs tell of silence while it lasts, by one query and by a set of queries."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.live.live_jobs import IRI, lines

SILENT = f"""SELECT ?x WITHIN 2 SECONDS FROM STREAM S <{IRI}>
WHERE {{ SEQ(H; N!)
  DEFINE GPM H ON S {{ ?x <http://example/is> "up" }}
  DEFINE GPM N ON S {{ ?x <http://example/is> "up" }} }}"""

UP = '<http://example/d> <http://example/is> "up" <http://example/e{0}> .\n'
AT = (
    '<http://example/e{0}> <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:{0:02}Z"'
    "^^<http://www.w3.org/2001/XMLSchema#dateTime> <http://example/e{0}> .\n"
)


@contextmanager
def following(place: Path, runtime: str, query: Path, *more: str) -> Iterator[Path]:
    """The output of a run that is terminated at the end of the block, and says so."""
    given = ("--queries", str(query)) if query.is_dir() else (str(query),)
    command = [
        *(sys.executable, "-m", "spaseq", "run", *given, "--runtime", runtime, "--follow"),
        *("--stream", f"S={place / 'in'}", "--checkpoint", str(place / "state")),
        *("--idle", "300 MILLISECONDS", "--heartbeat", "100 MILLISECONDS"),
        *("--out", str(place / "out.jsonl"), *more),
    ]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield place / "out.jsonl"
    finally:
        run.send_signal(signal.SIGTERM)
        told = run.communicate(timeout=90)[1]
    assert (run.returncode, told.splitlines()[-1]) == (143, "spaseq: terminated"), told


def arrive(place: Path, number: int) -> None:
    """Let a file with one event arrive."""
    (place / ".new").write_text(UP.format(number) + AT.format(number))
    (place / ".new").rename(place / "in" / f"{number:02}.nq")


def until_answered(out: Path, ends: list[str]) -> None:
    end = time.monotonic() + 240  # Spark starts, beside other tests
    while [json.loads(line)["end"] for line in lines(out)] != ends:
        assert time.monotonic() < end, lines(out)
        time.sleep(0.05)


ON_SPARK = (pytest.mark.spark(apart=True), pytest.mark.thorough)


@pytest.mark.parametrize(
    ("runtime", "is_set"),
    [
        ("local", False),
        pytest.param("local", True, marks=pytest.mark.thorough),
        pytest.param("spark", False, marks=ON_SPARK),
        pytest.param("spark", True, marks=ON_SPARK),
    ],
)
def test_a_silence_is_told_while_it_lasts(tmp_path: Path, runtime: str, is_set: bool) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "queries").mkdir()
    query = tmp_path / "queries" / "q.rq"
    query.write_text(SILENT)
    given = query.parent if is_set else query
    first, second = "2026-01-01T00:00:02Z", "2026-01-01T00:00:32Z"
    arrive(tmp_path, 0)
    with following(tmp_path, runtime, given) as out:
        until_answered(out, [first])
    with following(tmp_path, runtime, given) as out:  # a restart tells nothing again
        arrive(tmp_path, 30)
        until_answered(out, [first, second])
