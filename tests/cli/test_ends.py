"""How a run ends that is interrupted, or whose reader has gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rdf.lines.test_hostile_lines import QUERY, event
from tests.sizes import first_of

SECONDS = 240  # the first run compiles the kernels


def started(directory: Path, *options: str) -> subprocess.Popen[bytes]:
    """A run that reads standard input, which stays open, with threads that read ahead."""
    (directory / "q.rq").write_text(QUERY)
    command = [sys.executable, "-m", "spaseq", "run", "q.rq", "--stream", "S=-"]
    return subprocess.Popen(
        [*command, "--runtime", "local", *options],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("threads", first_of(["2", "1"], 1))
def test_a_run_that_waits_for_input_ends_at_an_interrupt(tmp_path: Path, threads: str) -> None:
    with started(tmp_path, "--threads", threads) as run:
        assert run.stdin is not None
        run.stdin.write(event("one", 1) + b"# comment\n" * 20_000)  # more than a pipe holds
        run.stdin.flush()
        run.send_signal(signal.SIGINT)
        assert run.wait(SECONDS) == 130
        assert run.stderr is not None
        assert run.stderr.read().splitlines()[-1] == b"spaseq: interrupted"


@pytest.mark.parametrize("form", first_of(["jsonl", "csv", "json"], 1))
def test_a_run_whose_reader_has_gone_ends_quietly_as_by_sigpipe(tmp_path: Path, form: str) -> None:
    with started(tmp_path, "--format", form) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        run.stdin.write(b"".join(event(f"e{i}", i) for i in range(5000)))
        run.stdin.close()
        assert run.wait(SECONDS) == 141
        assert b"Traceback" not in run.stderr.read()


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["explain", "q.rq"]])
def test_output_that_nobody_reads_ends_quietly(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing) as gone:
        done = subprocess.run(
            [sys.executable, "-m", "spaseq", *arguments],
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=gone,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
        )
    assert (done.returncode, done.stderr) == (141, b"")
