"""Directories that only their owner can write to.

Caches hold code: kernels, a copy of this package, arrays that kernels index without a check. If
somebody else can put a file into such a directory, they run their code as this user. A directory
under a shared one, such as the temporary directory, may have been made by anybody.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotPrivate(OSError):
    """A directory is a link, belongs to somebody else, or can be written by others."""


def private_directory(path: Path, levels: int = 1) -> Path:
    """The directory, which is made with mode 0700 if it is missing, as are those above it.

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
    """Check that nobody else can put files into a directory.

    Raises:
        NotPrivate: somebody can.
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
