"""`python -m tests.runtime.forking_runs ARGUMENTS`: forks a `spaseq` run whenever it is asked to.

Each run is a process with everything imported and all kernels loaded. The server reads lines from
stdin: for `start` it forks a run and prints its id, for `wait` it waits for the last run's end and
prints its status as `Popen.returncode` has it. A run stays a zombie until then, so its id belongs
to no other process.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

from spaseq import thresholds
from spaseq.cli.main import COMMANDS, program
from spaseq.compiled.warming import warm
from tests.thresholds.forcing import forced


def serve(arguments: list[str]) -> None:
    """Answer the lines on stdin until it ends."""
    pid = 0
    for line in sys.stdin:
        if line == "start\n":
            pid = os.fork()
            if not pid:
                break
            print(pid, flush=True)
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    else:
        return
    sys.stdin.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also below a `nohup ... &`
    program(arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest
    thresholds.use(forced("memory_rows=100 memory_bytes=0"))  # a small stream is sorted on disk
    warm()
    for command in COMMANDS:
        import_module(f"spaseq.cli.{command}")
    serve(sys.argv[1:])
