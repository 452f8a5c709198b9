"""Temporary directories of runs; if the process of one is killed, a later run removes it.

A process holds a lock on each of its directories. The system releases the lock when the process
ends, however it ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: directories of killed processes stay
    fcntl = None  # type: ignore[assignment]

_PREFIX = "spaseq-run-"
_NEW_SECONDS = 60.0
"""A younger directory may be one that its process has not locked yet."""


class ScratchDirectory(tempfile.TemporaryDirectory[str]):
    """A directory `spaseq-run-PURPOSE-PID-...` of this process in the temporary directory.

    Args:
        purpose: a word that the name has.
    """

    def __init__(self, purpose: str) -> None:
        sweep(Path(tempfile.gettempdir()))
        super().__init__(prefix=f"{_PREFIX}{purpose}-{os.getpid()}-", ignore_cleanup_errors=True)
        self._lock = _locked(Path(self.name))

    def cleanup(self) -> None:
        super().cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep(place: Path, new_seconds: float = _NEW_SECONDS) -> None:
    """Remove the directories that processes left when they were killed.

    Args:
        place: the temporary directory.
        new_seconds: directories that changed since are left alone.
    """
    if fcntl is None:
        return
    before = time.time() - new_seconds
    for path in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = path.lstat()
            if status.st_uid != os.geteuid() or status.st_mtime > before or path.is_symlink():
                continue
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


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
