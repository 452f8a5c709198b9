"""Signals that end a followed run, whatever the main thread is doing."""

from __future__ import annotations

import subprocess
import sys

import pytest

WAITING = """
import os, signal
from spaseq.runtime.job.interrupts import until_interrupted

try:
    with until_interrupted() as asked:
        with asked._cond:  # as in the midst of `asked.wait`
            os.kill(os.getpid(), signal.{first})
        assert asked.wait(30)
        {then}
except BaseException as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("first", "then", "name"),
    [
        ("SIGINT", "", "KeyboardInterrupt"),
        ("SIGTERM", "", "Terminated"),
        (
            "SIGINT",
            "os.kill(os.getpid(), signal.SIGINT); print('not interrupted')",
            "KeyboardInterrupt",
        ),
        (
            "SIGTERM",
            "os.kill(os.getpid(), signal.SIGTERM); print('goes on')",
            "goes on\nTerminated",
        ),
    ],
)
def test_a_signal_while_the_main_thread_waits(first: str, then: str, name: str) -> None:
    code = WAITING.format(first=first, then=then)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == name
