"""How much memory a process may use."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""The files of a container's limit, of both versions of control groups."""

_UNKNOWN = 2**31


@cache
def machine_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes of memory of the machine or its container; 2 GB if the system does not tell."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not POSIX
        memory = _UNKNOWN
    for name in _LIMITS:
        try:
            memory = min(memory, int((groups / name).read_text()))
        except (OSError, ValueError):  # there is no such limit
            continue
    return memory
