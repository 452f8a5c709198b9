"""Output files that are cut to an earlier size, because a part of them is written again."""

from __future__ import annotations

import os
import stat
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
