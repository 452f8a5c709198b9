"""SIGINT and SIGTERM at the begin of the command line: no traceback, whatever is being imported."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

QUERY = """SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/is> ?y } }"""
COMMAND = ["run", "q.rq", "--runtime", "local", "--stream", "S=-"]


@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGINT, "spaseq: interrupted"), (signal.SIGTERM, "spaseq: terminated")],
)
@pytest.mark.parametrize(
    "module", ["spaseq.cli", "click", "spaseq.errors", "spaseq.cli.main", "spaseq.cli.run"]
)
def test_a_signal_while_a_module_is_imported(
    tmp_path: Path, module: str, number: signal.Signals, message: str
) -> None:
    code = f"""
import importlib.abc, signal, sys
from spaseq.__main__ import program

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            signal.raise_signal({int(number)})

sys.meta_path.insert(0, Interrupting())
signal.signal(signal.SIGINT, signal.default_int_handler)
program()
"""
    (tmp_path / "q.rq").write_text(QUERY)
    command = [sys.executable, "-c", code, *COMMAND]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, input="")
    assert (done.returncode, done.stderr.strip()) == (128 + number, message)


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    code = """
import signal
from spaseq.__main__ import program
signal.signal(signal.SIGINT, signal.SIG_IGN)
from spaseq.startup import end_at_signals
end_at_signals()
signal.raise_signal(signal.SIGINT)
print("goes on")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")


@pytest.mark.parametrize("wait_ms", [20, 40, 60, 80, 120, 160, 200])
def test_ctrl_c_soon_after_the_start(tmp_path: Path, wait_ms: int) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    process = subprocess.Popen(
        [sys.executable, "-m", "spaseq", *COMMAND],
        cwd=tmp_path,
        stdin=subprocess.PIPE,  # it stays open, so the run waits
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(wait_ms / 1000)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stdin is not None
    text = process.stderr.read()
    status = process.wait(60)
    process.stdin.close()
    process.stderr.close()
    if "interrupted" not in text and not re.search(r"/spaseq/(?!__|startup)", text):
        pytest.skip(f"Python had not come to the command line after {wait_ms} ms")
    # Where it interrupted an exec(), Python ends by the signal: a shell has 130 for both.
    assert status in (130, -signal.SIGINT)
    assert text.strip() == "spaseq: interrupted"
