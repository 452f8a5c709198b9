"""Local runs that are killed, terminated or interrupted at random times leave nothing behind.

`SPASEQ_KILLS` is the number of kills in the slow run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from spaseq.scratch import sweep

QUERY = """SELECT * WITHIN 1 MINUTES FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/is> ?y } }"""
EVENTS = 20_000

COMMAND = """
from spaseq.stages.sorting import RowSorter
RowSorter.__init__.__defaults__ = (1000,)  # so that a small stream is sorted on disk
from spaseq.cli.main import main
main()
"""

ENDINGS = {
    signal.SIGKILL: {-signal.SIGKILL},
    # The process may get the signal before it can handle it.
    signal.SIGTERM: {143, -signal.SIGTERM},
    signal.SIGINT: {130, -signal.SIGINT},
}


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
        self.seconds = self._whole_run()

    def _start(self) -> subprocess.Popen[bytes]:
        arguments = ["run", "q.rq", "--runtime", "local", "--stream", "S=s.nq"]
        outputs = ["--out", "outputs/a.jsonl", "--bad", "outputs/bad", "--stats", "outputs/stats"]
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments, *outputs],
            cwd=self.place,
            env=os.environ | {"TMPDIR": str(self.scratch)},
            stderr=subprocess.DEVNULL,
        )

    def _whole_run(self) -> float:
        """Run to the end, twice because of the kernels; the seconds of the second run."""
        for _ in range(2):
            begun = time.monotonic()
            assert self._start().wait(300) == 0
        assert len(self._answers()) == EVENTS
        return time.monotonic() - begun

    def _answers(self) -> list[str]:
        """The answers, if there are any; each line is whole."""
        path = self.outputs / "a.jsonl"
        text = path.read_text() if path.exists() else ""
        assert text == "" or text.endswith("\n")
        return [json.loads(line)["query"] for line in text.splitlines()]

    def kill(self, random: Random) -> tuple[signal.Signals, bool]:
        """Kill one run at a random time, and check what it leaves; whether it had answers."""
        for path in self.outputs.iterdir():
            path.unlink()
        number = random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        process = self._start()
        time.sleep(random.uniform(0, 1.1 * self.seconds))
        process.send_signal(number)
        assert process.wait(60) in ENDINGS[number] | {0}
        assert {p.name for p in self.outputs.iterdir()} <= {"a.jsonl", "bad", "stats"}
        if number == signal.SIGKILL:
            for path in self.scratch.iterdir():
                os.utime(path, (0, 0))  # as if it were old
            sweep(self.scratch)
        assert list(self.scratch.iterdir()) == []
        return number, bool(self._answers())


def _loop(place: Path, kills: int) -> None:
    runs, seen = KilledRuns(place), Counter[str]()
    random, begun = Random(7), time.monotonic()
    for _ in range(kills):
        number, has_answers = runs.kill(random)
        seen[f"{number.name}, {'with' if has_answers else 'without'} answers"] += 1
    print(f"{kills} kills of local runs in {time.monotonic() - begun:.0f} s: {dict(seen)}")


@pytest.mark.thorough
def test_twenty_kills(tmp_path: Path) -> None:
    _loop(tmp_path, 20)


@pytest.mark.slow
def test_hundreds_of_kills(tmp_path: Path) -> None:
    _loop(tmp_path, int(os.environ.get("SPASEQ_KILLS", "300")))
