"""SIGTERM and SIGINT end a run with its outputs written and its temporary files removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spaseq.cli.main import AskedToEnd, cli, main, terminable
from spaseq.errors import Terminated
from spaseq.runtime.job.interrupts import until_interrupted

QUERY = """SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/is> ?y } }"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGTERM, 143, "spaseq: terminated"),
        (signal.SIGINT, 130, "spaseq: interrupted"),
    ],
)
def test_a_run_that_waits_for_input(
    tmp_path: Path, number: signal.Signals, status: int, message: str
) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "scratch").mkdir()
    arguments = ["--runtime", "local", "--stream", "S=-", "--out", "out", "--stats", "stats"]
    process = subprocess.Popen(
        [sys.executable, "-m", "spaseq", "run", "q.rq", "--bad", "bad", *arguments],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "scratch")},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"bad\n" * 100_000)  # returns when the run reads, as a pipe holds less
    process.stdin.flush()
    process.send_signal(number)
    assert process.stderr is not None
    text = process.stderr.read().decode()
    assert (process.wait(60), text.strip().splitlines()[-1]) == (status, message)
    process.stdin.close()
    process.stderr.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad", "out", "q.rq", "scratch", "stats"]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_second_sigterm_does_not_disturb_the_cleaning_up() -> None:
    cleaned = False
    with pytest.raises(Terminated), terminable(AskedToEnd()):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            cleaned = True
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_library_turns_a_signal_into_its_own_error(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, status: int
) -> None:
    def fails(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None

    monkeypatch.setattr(cli, "main", fails)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == status


@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGINT, "spaseq: interrupted"), (signal.SIGTERM, "spaseq: terminated")],
)
def test_a_call_of_java_that_a_signal_interrupts_is_told_in_one_line(
    number: signal.Signals, message: str
) -> None:
    """py4j logs it with a traceback; what it logs without a signal is still written."""
    code = f"""
import logging, signal
from py4j.clientserver import JavaClient
from spaseq.cli.main import cli, main

class Connection:
    socket = None
    def send_command(self, command):
        signal.raise_signal({int(number)})

def call(*args, **options):
    logging.error("Exception while sending command: before")
    client = object.__new__(JavaClient)
    client._get_connection = Connection
    client.send_command("c")

cli.main = call
signal.signal(signal.SIGINT, signal.default_int_handler)
main(["run"])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stderr == f"ERROR:root:Exception while sending command: before\n{message}\n"
    assert ended.returncode == 128 + number


def test_a_followed_run_ends_after_the_present_batch() -> None:
    with pytest.raises(Terminated), until_interrupted() as asked:
        assert not asked.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked.wait(10)


def test_objects_whose_making_was_interrupted_say_nothing() -> None:
    code = """
import signal
from spaseq.cli.main import cli, main

class Half:
    def __init__(self):
        signal.raise_signal(signal.SIGINT)
        self.whole = True

    def __del__(self):
        self.whole

cli.main = lambda *args, **options: Half()
signal.signal(signal.SIGINT, signal.default_int_handler)
main(["run"])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "spaseq: interrupted\n")


CLEANS_UP = """
import atexit, signal, sys, time
from spaseq.cli.main import cli, program

def clean_up():
    for _ in range({signals}):
        signal.raise_signal(signal.{name})
        time.sleep(0.01)
    print("clean")

atexit.register(clean_up)
signal.signal(signal.SIGINT, signal.default_int_handler)
cli.main = lambda *args, **options: 0
program(["run"])
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_after_the_last_answer_does_not_disturb_the_exit(name: str) -> None:
    code = CLEANS_UP.format(signals=1, name=name)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "clean\n", "")


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_second_signal_ends_an_exit_that_hangs(name: str, status: int) -> None:
    code = CLEANS_UP.format(signals=2, name=name)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, "", "")
