"""Directories that only their owner can write to, and the lock of a run's directory: one run at a
time uses it.

Caches hold code: kernels, a copy of this package, arrays that kernels index without a check. A user
who can put a file into such a directory can run code as its owner. A directory under a shared one,
such as the temporary directory, may belong to any user.

The operating system releases the lock when the process ends, however it ends. On a file system
without such locks the file names the process that uses the directory; a process that has ended
since does not count.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from spaseq.errors import RunError
from spaseq.records import record


class NotPrivate(OSError):
    """A directory is a link, belongs to another user, or can be written by others."""


def private_directory(path: Path, levels: int = 1) -> Path:
    """The directory, which is created with mode 0700 if missing, like its missing parents.

    Args:
        path: the directory.
        levels: how many of the path's last components must be private, if they exist already.

    Raises:
        NotPrivate: one of them is not; the message says what to do.
        OSError: it cannot be made.
    """
    above = [path, *path.parents][:levels]
    _make(path)
    for directory in reversed(above):
        check_private(directory)
    return path


def check_private(directory: Path) -> None:
    """Check that no other user can put files into a directory.

    Raises:
        NotPrivate: another user can.
        OSError: it does not exist.
    """
    status = os.lstat(directory)
    if stat.S_ISLNK(status.st_mode):
        raise NotPrivate(f"{directory} is a link; name the directory that it leads to")
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{directory} is no directory")
    if not hasattr(os, "geteuid"):  # Windows keeps such directories in the user's profile
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise NotPrivate(f"{directory} belongs to another user (uid {status.st_uid}); remove it")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotPrivate(f"{directory} can be written by other users; run: chmod go-w {directory}")


def _make(path: Path) -> None:
    """Make a directory and the missing ones above it, with mode 0700 from the start."""
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


@dataclass(slots=True)
class _Held:
    """A lock that this process holds, and how often."""

    file: IO[str]
    count: int = 1


_HELD: dict[str, _Held] = {}  # by the directory's real path


@record
class LockOwner:
    """A process, as a lock file names it; `started` distinguishes it from later ones with its
    number.
    """

    pid: int
    host: str
    started: str

    @classmethod
    def here(cls) -> LockOwner:
        """This process."""
        return cls(os.getpid(), socket.gethostname(), _start_of(os.getpid()))

    @property
    def is_alive(self) -> bool:
        """Whether the process is still there; one on another machine is taken to be."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return _start_of(self.pid) == self.started

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def hold(directory: Path) -> None:
    """Take the lock of a directory; this process may take it several times.

    Raises:
        RunError: another process has it.
        OSError: the lock file cannot be made.
    """
    path = os.path.realpath(directory)
    if path in _HELD:
        _HELD[path].count += 1
        return
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(directory / NAME, flags, 0o600), "r+", encoding="utf-8")
    try:
        _take(file, directory)
    except BaseException:
        file.close()
        raise
    _HELD[path] = _Held(file)


def release(directory: Path) -> None:
    """Give the lock back, once for each time it was taken."""
    path = os.path.realpath(directory)
    lock = _HELD.get(path)
    if lock is None:
        return
    lock.count -= 1
    if not lock.count:
        del _HELD[path]
        with suppress(OSError):
            lock.file.truncate(0)
        lock.file.close()


def _take(file: IO[str], directory: Path) -> None:
    owner = _owner(file)
    if not _is_free(file, owner):
        who = "another process" if owner is None else owner
        raise RunError(
            f"checkpoint {directory} is in use by {who}: stop that run, or use another directory"
        )
    file.seek(0)
    file.truncate()
    file.write(json.dumps(asdict(LockOwner.here())))
    file.flush()


def _is_free(file: IO[str], owner: LockOwner | None) -> bool:
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        except OSError:  # the file system has no such locks
            pass
    return owner is None or not owner.is_alive


def _owner(file: IO[str]) -> LockOwner | None:
    """The process that a lock file names, None if it names none."""
    try:
        return LockOwner(**json.loads(file.read()))
    except (OSError, ValueError, TypeError):
        return None


def _start_of(pid: int) -> str:
    """When a process started, in a form that only serves for comparison; "" if unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        return ""
