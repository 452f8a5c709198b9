"""Files that are on disk when a function returns, and files that are cut to what was written
before.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from spaseq.errors import RunError


def is_regular(file: TextIO) -> bool:
    """Whether a file can be cut; terminals and pipes cannot."""
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def size_of(file: TextIO) -> int:
    """The size of a file, with what waits to be written."""
    file.flush()
    return os.fstat(file.fileno()).st_size


def cut_to(file: TextIO, size: int) -> None:
    """Cut a file that is open for appending; RunError if it is shorter."""
    if size_of(file) < size:
        raise RunError(f"{file.name} has been changed: it is shorter than it was")
    os.ftruncate(file.fileno(), size)
    file.seek(0, os.SEEK_END)


def sync_data(descriptor: int) -> None:
    """Wait until what was written to a file is on disk."""
    getattr(os, "fdatasync", os.fsync)(descriptor)  # macOS has no fdatasync


def sync_file(path: Path) -> None:
    """Wait until what is in a file is on disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        sync_data(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on disk."""
    if os.name == "nt":  # Windows opens no directories
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file, or leave it as it was, whenever the process or the machine stops.

    Raises:
        OSError: the file cannot be written; the old one is still there.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            sync_data(file.fileno())
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
