"""Local runs that are killed, terminated or interrupted at random times leave nothing behind.

`SPASEQ_KILLS` is the number of kills in the slow run, and `SPASEQ_SOAK_SEED` its seed. The run ends
after `SPASEQ_KILLS_SECONDS`, even with fewer kills.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO, Protocol

import pytest

from spaseq.scratch import sweep

QUERY = """SELECT * WITHIN 1 MINUTES FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/is> ?y } }"""
EVENTS = 2000
ROOT = Path(__file__).parents[2]

ARGUMENTS = (
    *("run", "q.rq", "--runtime", "local", "--stream", "S=s.nq"),
    *("--out", "outputs/a.jsonl", "--bad", "outputs/bad", "--stats", "outputs/stats"),
)
SEED = int(os.environ.get("SPASEQ_SOAK_SEED", "1"))
FRESH = 0.1
"""The share of runs that start as new processes; the others are forked, which is faster."""

ENDINGS = {
    signal.SIGKILL: {-signal.SIGKILL},
    # The process may get the signal before it can handle it.
    signal.SIGTERM: {143, -signal.SIGTERM},
    signal.SIGINT: {130, -signal.SIGINT},
}


class Run(Protocol):
    """A run as a process."""

    @property
    def pid(self) -> int: ...

    def wait(self, timeout: float) -> int: ...


class ForkedRuns:
    """The process that forks runs (see `forking_runs`)."""

    def __init__(self, place: Path, environment: dict[str, str], messages: IO[bytes]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.forking_runs", *ARGUMENTS],
            cwd=place,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
        )

    def start(self) -> ForkedRun:
        """Fork a run."""
        return ForkedRun(int(self.ask("start")), self)

    def ask(self, line: str) -> str:
        """Send a line, and return the answer."""
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        return self._server.stdout.readline()

    def end(self) -> None:
        """End the process."""
        self._server.communicate()


@dataclass(frozen=True)
class ForkedRun:
    """A run that was forked."""

    pid: int
    runs: ForkedRuns

    def wait(self, timeout: float) -> int:
        """Wait for the end; a run that hangs is killed after `timeout` seconds, and fails."""
        hangs = threading.Event()

        def give_up() -> None:
            hangs.set()
            os.kill(self.pid, signal.SIGKILL)

        killer = threading.Timer(timeout, give_up)
        killer.start()
        try:
            status = int(self.runs.ask("wait"))
        finally:
            killer.cancel()
        assert not hangs.is_set(), f"the run had not ended after {timeout} s"
        return status


class KilledRuns:
    """Runs of one query in a directory, with a directory of outputs and one of temporary files."""

    def __init__(self, place: Path) -> None:
        self.place, self.outputs, self.scratch = place, place / "outputs", place / "scratch"
        self.outputs.mkdir()
        self.scratch.mkdir()
        (place / "q.rq").write_text(QUERY)
        with (place / "s.nq").open("w") as file:
            for i in range(EVENTS):
                time_ms = 1000 * (i * 7919 % EVENTS)  # in no order, so that runs are merged
                file.write(
                    f'<http://e/x{i}> <http://e/is> "b" <http://e/e{i}> .\n<http://e/e{i}> '
                    f'<http://www.w3.org/ns/prov#generatedAtTime> "{time_ms}"'
                    "^^<http://www.w3.org/2001/XMLSchema#long> .\n"
                )
        self.environment = os.environ | {
            "TMPDIR": str(self.scratch),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        self.messages = (place / "messages").open("ab")
        self.forked = ForkedRuns(place, self.environment, self.messages)
        self.seconds = {start: self._whole_run(start) for start in (self._fresh, self.forked.start)}

    def _fresh(self) -> Run:
        return subprocess.Popen(
            [sys.executable, "-m", "spaseq", *ARGUMENTS],
            cwd=self.place,
            env=self.environment,
            stderr=self.messages,
        )

    def _whole_run(self, start: Callable[[], Run]) -> float:
        """Run to the end, twice because of the kernels; the seconds of the second run."""
        for _ in range(2):
            begun = time.monotonic()
            assert start().wait(300) == 0
            seconds = time.monotonic() - begun
        assert len(self._answers()) == EVENTS
        return seconds

    def _answers(self) -> list[str]:
        """The answers, if there are any; each line is whole."""
        path = self.outputs / "a.jsonl"
        text = path.read_text() if path.exists() else ""
        assert text == "" or text.endswith("\n")
        return [json.loads(line)["query"] for line in text.splitlines()]

    def end(self) -> None:
        """End the process that forks runs."""
        self.forked.end()
        self.messages.close()

    def kill(self, random: Random) -> str | None:
        """Kill one run at a random time, and check what it leaves.

        Returns:
            The signal, and whether there are answers; None if the run had ended or not begun.
        """
        for path in self.outputs.iterdir():
            path.unlink()
        self.messages.truncate(0)
        number = random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        start = self._fresh if random.random() < FRESH else self.forked.start
        run = start()
        time.sleep(random.uniform(0, 1.1 * self.seconds[start]))
        os.kill(run.pid, number)
        status = run.wait(60)
        said = (self.place / "messages").read_text(errors="replace")
        if "init_import_site" in said:  # Python was interrupted while it started
            return None
        assert status in ENDINGS[number] | {0}, f"exit status {status} after {number.name}: {said}"
        assert "Traceback" not in said or status == -number, said
        assert {p.name for p in self.outputs.iterdir()} <= {"a.jsonl", "bad", "stats"}
        if number == signal.SIGKILL:
            for path in self.scratch.iterdir():
                os.utime(path, (0, 0))  # as if it were old
            sweep(self.scratch)
        assert [path for path in self.scratch.iterdir() if not _is_probe(path)] == []
        answers = len(self._answers())
        if status == 0:
            assert answers == EVENTS
            return None
        return f"{number.name}, {'with' if answers else 'without'} answers"


def _is_probe(path: Path) -> bool:
    """Whether Python's tempfile left this file when it tried if the directory can be written to."""
    return path.is_file() and len(path.name) == 8 and path.read_bytes() in (b"", b"blat")


def _loop(place: Path, kills: int, seconds: float = math.inf) -> None:
    runs, seen = KilledRuns(place), Counter[str]()
    random, begun = Random(SEED), time.monotonic()
    ended = 0
    while seen.total() < kills and time.monotonic() < begun + seconds:
        hit = runs.kill(random)
        if hit is None:
            ended += 1
            continue
        seen[hit] += 1
        if seen.total() % 100 == 0:
            print(f"{seen.total()} kills in {time.monotonic() - begun:.0f} s", flush=True)
    runs.end()
    print(
        f"{seen.total()} kills of local runs in {time.monotonic() - begun:.0f} s: {dict(seen)}; "
        f"{ended} runs had ended before or not begun"
    )


@pytest.mark.thorough
def test_ten_kills(tmp_path: Path) -> None:
    _loop(tmp_path, 10)


@pytest.mark.slow
def test_hundreds_of_kills(tmp_path: Path) -> None:
    kills, seconds = os.environ.get("SPASEQ_KILLS", "300"), os.environ.get("SPASEQ_KILLS_SECONDS")
    _loop(tmp_path, int(kills), math.inf if seconds is None else float(seconds))
