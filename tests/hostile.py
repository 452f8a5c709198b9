"""Runs a hostile input in a process with bounds on memory and time, so that it ends without harm.

The bounds guard against hangs and against taking the machine. No test measures speed with them.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

HANGS = -1_000
"""The status of a process that was killed because it ran longer than its bound."""

_LIBRARIES = 1792 << 20
"""Address space of what a run has before its first event: Arrow's allocator reserves 1 GiB, and
libraries, thread stacks and malloc's arenas take 0.7 GiB. Less than a tenth of it is ever used.
"""

_ROOT = Path(__file__).resolve().parent.parent


def run_bounded(
    code_or_args: str | Sequence[str | os.PathLike[str]],
    *,
    memory: int = 1 << 30,
    seconds: float = 30,
    stdin: bytes | IO[bytes] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python code, or `spaseq` with arguments, in a process with bounds.

    A string is Python code; a sequence is the arguments of the command `spaseq`.

    Args:
        memory: most bytes of address space that the process may take on top of what the
            interpreter and the libraries map at their import (`RLIMIT_AS`).
        seconds: the process is killed after this time; its status is then `HANGS`.
        stdin: bytes or an open file; nothing unless given.
        env: variables that are added to the environment.

    Returns:
        The status, and both outputs as text; bytes that are not UTF-8 become surrogates.

    >>> run_bounded("print('a' * 3)").stdout
    'aaa\\n'
    >>> run_bounded("b'a' * 2**33").returncode
    1
    """
    command = _command(code_or_args)
    feed = stdin if isinstance(stdin, bytes) else None
    source: int | IO[bytes] = subprocess.DEVNULL
    if stdin is not None:
        source = subprocess.PIPE if isinstance(stdin, bytes) else stdin
    running = subprocess.Popen(
        command,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd or _ROOT,
        env=os.environ | {"PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1"} | (env or {}),
        start_new_session=True,
        preexec_fn=_limited(memory + _LIBRARIES),
    )
    try:
        out, err = running.communicate(feed, timeout=seconds)
        status = running.returncode
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        out, err = running.communicate()
        status = HANGS
    return subprocess.CompletedProcess(
        command, status, out.decode("utf-8", "surrogateescape"), err.decode(errors="replace")
    )


def _command(code_or_args: str | Sequence[str | os.PathLike[str]]) -> list[str]:
    if isinstance(code_or_args, str):
        return [sys.executable, "-c", code_or_args]
    return [sys.executable, "-m", "spaseq", *(os.fspath(given) for given in code_or_args)]


def _limited(memory: int) -> Callable[[], None]:
    """Sets the bounds in the new process; no core file is written."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return limit
