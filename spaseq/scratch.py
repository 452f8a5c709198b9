"""Temporary directories of runs; a later run removes the directories of killed processes.

A process holds a lock on each of its directories. The system releases the lock when the process
ends, however it ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: directories of killed processes stay
    fcntl = None  # type: ignore[assignment]

_PREFIX = "spaseq-run-"
_NEW_SECONDS = 60.0
"""A younger directory may belong to a process that has not locked it yet."""


class ScratchDirectory(tempfile.TemporaryDirectory[str]):
    """A directory `spaseq-run-PURPOSE-PID-...` of this process in the temporary directory.

    Args:
        purpose: a word for the directory's name.
    """

    def __init__(self, purpose: str) -> None:
        sweep(Path(tempfile.gettempdir()))
        prefix = f"{_PREFIX}{purpose}-{os.getpid()}-"
        with _signals_wait():
            super().__init__(prefix=prefix, ignore_cleanup_errors=True)
            self._lock = _locked(Path(self.name))

    def cleanup(self) -> None:
        with _signals_wait():
            super().cleanup()
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None


def sweep(directory: Path, new_seconds: float = _NEW_SECONDS) -> None:
    """Remove the directories of killed processes.

    Args:
        directory: the temporary directory.
        new_seconds: directories that changed within this time stay.
    """
    if fcntl is None:
        return
    before = time.time() - new_seconds
    for path in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = path.lstat()
            if status.st_uid != os.geteuid() or status.st_mtime > before or path.is_symlink():
                continue
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block.

    A handler that raises between the creation of a directory and its registration for removal, or
    during its removal, would leave it behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    arrived: list[int] = []
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    raising = {n: handler for n, handler in handlers.items() if callable(handler)}

    def arrives(number: int, _frame: object) -> None:
        arrived.append(number)

    for number in raising:
        signal.signal(number, arrives)
    try:
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        for late in arrived:
            raising[signal.Signals(late)](late, None)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of a directory; None if another process holds it."""
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
