"""A full disk ends a run with status 4 and a line that names the file; outputs keep whole lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import run_bounded

QUERY = """SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/is> ?y } }"""
EVENTS = 600
FULL = "No space left on device"

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nq").write_text(
        "".join(
            f'<http://example/a{i}> <http://example/is> "b" <http://example/e{i}> .\n'
            f"<http://example/e{i}> <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{1000 * i}"^^<http://www.w3.org/2001/XMLSchema#long> .\n<e:s> bad {i} <e:g> .\n'
            for i in range(EVENTS)
        )
    )
    return tmp_path


def _run(place: Path, *arguments: str) -> tuple[int, str]:
    done = run_bounded(
        ["run", "q.rq", "--runtime", "local", "--stream", "S=s.nq", *arguments],
        cwd=place,
        seconds=300,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("option", ["--out", "--bad", "--stats"])
def test_a_full_device(place: Path, option: str) -> None:
    others = {"--out": "out", "--bad": "bad", "--stats": "stats"} | {option: "/dev/full"}
    status, message = _run(place, *(text for pair in others.items() for text in pair))
    assert (status, message.splitlines()[-1]) == (4, f"spaseq: cannot write /dev/full: {FULL}")
    if option != "--stats":
        assert "events" in json.loads((place / "stats").read_text())
    if option != "--bad":
        assert len((place / "bad").read_text().splitlines()) == EVENTS
    if option == "--stats":
        assert len((place / "out").read_text().splitlines()) == EVENTS


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["json", "csv", "tsv"])
def test_a_full_device_in_other_formats(place: Path, form: str) -> None:
    status, message = _run(place, "--format", form, "--out", "/dev/full", "--bad", "/dev/null")
    assert (status, message.splitlines()[-1]) == (4, f"spaseq: cannot write /dev/full: {FULL}")


def _bash(place: Path, command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["bash", "-c", command.replace("SPASEQ", f"{sys.executable} -m spaseq")],
        cwd=place, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def test_a_full_standard_output(place: Path) -> None:
    done = _bash(place, "SPASEQ run q.rq --runtime local --stream S=s.nq --bad bad > /dev/full")
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1] == f"spaseq: cannot write standard output: {FULL}"
    assert _bash(place, "SPASEQ explain q.rq > /dev/full").returncode == 4


def test_messages_that_nobody_can_read_do_not_end_a_run(place: Path) -> None:
    done = _bash(place, "SPASEQ run q.rq --runtime local --stream S=s.nq 2> /dev/full")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == EVENTS


def test_a_file_that_may_not_grow_keeps_whole_lines(place: Path) -> None:
    """The limit of the process stands for a full disk."""
    done = _bash(
        place,
        "ulimit -f 100; SPASEQ run q.rq --runtime local --stream S=s.nq --bad /dev/null --out out",
    )
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1] == "spaseq: cannot write out: File too large"
    text = (place / "out").read_text()
    assert 90 * 1024 < len(text) <= 100 * 1024
    assert text.endswith("\n")
    assert [json.loads(line)["query"] for line in text.splitlines()].count("q") > 300
    assert sorted(p.name for p in place.iterdir()) == ["out", "q.rq", "s.nq"]


@pytest.mark.thorough
def test_a_disk_too_small_for_sorting() -> None:
    done = run_bounded(
        """
import resource
import numpy as np
from spaseq.errors import RunError
from spaseq.stages.sorting import RowSorter
from tests.stages.test_sorting import COLUMNS, batch
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
sorter = RowSorter(COLUMNS, memory_rows=10)
try:
    for time in range(100_000):
        sorter.add(batch([time], time))
except RunError as error:
    print(error)
"""
    )
    assert done.stdout.startswith("cannot sort on disk in "), done.stderr
    assert done.stdout.endswith(": File too large\n")
