"""Files that outlive a power failure: replaced whole, and on disk when the call returns."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def sync_data(descriptor: int) -> None:
    """Wait until what was written to a file is on disk."""
    getattr(os, "fdatasync", os.fsync)(descriptor)  # macOS has no fdatasync


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
