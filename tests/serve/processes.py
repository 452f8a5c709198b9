"""`spaseq serve` in a process of its own, which tests may kill."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]

_LISTENING = re.compile(r"listening on (https?://[\w.:\[\]-]+)")


class Command:
    """A server that was started, and serves.

    Attributes:
        url: where it serves.
        lines: its log so far.
    """

    def __init__(self, configuration: Path, *options: str, wait: bool = True) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "spaseq", "serve", str(configuration)),
                *("--listen", "127.0.0.1:0", *options),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        self.lines: list[str] = []
        self.url = ""
        found: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(found,), daemon=True)
        self._reader.start()
        if wait:
            self.url = found.get(timeout=180)
            assert self.url, "".join(self.lines)

    def _read(self, found: queue.Queue[str]) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)
            if listening := _LISTENING.search(line):
                found.put(listening[1])
        found.put("")

    def client(self, **given: object) -> httpx.Client:
        """A client of it."""
        return httpx.Client(base_url=self.url, timeout=30, **given)  # type: ignore[arg-type]

    def kill(self) -> None:
        """End it as a power failure would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; its exit status."""
        self._process.send_signal(number)
        return self.status()

    def status(self) -> int:
        """Its exit status, once it has ended."""
        status = self._process.wait(60)
        self._reader.join(10)
        return status


def spaseq(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "spaseq", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
