"""A server in a process of its own, for benchmarks of what it does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(configuration: Path) -> Iterator[tuple[int, str]]:
    """Start `spaseq serve` on loopback; its process, and its URL. It is killed at the end."""
    command = [sys.executable, "-m", "spaseq", "serve", str(configuration)]
    command += ["--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = (re.search(r"listening on (\S+)", line) for line in server.stderr)
            yield server.pid, next(match[1] for match in found if match)
        finally:
            server.kill()
