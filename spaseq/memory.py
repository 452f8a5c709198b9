"""Memory: how much a process may use, and pauses of Python's garbage collector.

The pauses save time where there are many objects without reference cycles.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Files that state the memory limit of a container, in both versions of control groups."""

_UNKNOWN = 2**31


@cache
def machine_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory of the machine or its container; 2 GB if the system does not report it."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not POSIX
        memory = _UNKNOWN
    for name in _LIMITS:
        try:
            memory = min(memory, int((groups / name).read_text()))
        except (OSError, ValueError):  # no limit is set
            continue
    return memory


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector in this context.

    The collector starts after every few hundred new objects, and examines all new objects. The
    answers of a batch are many objects, and all of them stay.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_kept_for_good = False


def keep_for_good() -> None:
    """Exclude all present objects from garbage collection until the process ends.

    For objects that modules make while they are imported.
    """
    global _kept_for_good
    gc.freeze()
    _kept_for_good = True


def _some_are_kept() -> bool:
    """Whether objects are frozen. Python's own count of frozen objects is slow."""
    return _kept_for_good or gc.get_freeze_count() > 0


def keep_all() -> None:
    """Move all objects to the oldest generation of the collector, without examining them.

    For many objects that stay and have left no garbage: the next collection of young objects would
    take long, and find nothing. Other new objects move with them.
    """
    if not _some_are_kept():  # others stay frozen
        gc.freeze()
        gc.unfreeze()


@contextmanager
def old_objects_kept() -> Iterator[None]:
    """Exclude objects that are older than this context from garbage collection.

    A long run makes enough new objects to start full collections, and most objects are the plans of
    many queries. Plans stay until the run ends.
    """
    if _some_are_kept():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
