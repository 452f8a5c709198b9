"""Memory: how much a process may use, and less work for Python's garbage collector where there are
many objects that know no cycles.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def collection_paused() -> Iterator[None]:
    """No cyclic garbage is looked for in this context.

    The collector starts after every few hundred new objects, and looks at all that have not yet
    survived. Answers of a batch are many objects, and all of them stay.
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
    """Let the collector not look at the objects of now until the process ends.

    For what modules have made while they were imported.
    """
    global _kept_for_good
    gc.freeze()
    _kept_for_good = True


def _some_are_kept() -> bool:
    """Whether objects are frozen. To count them, as Python does, takes long if they are many."""
    return _kept_for_good or gc.get_freeze_count() > 0


def keep_all() -> None:
    """Let the collector take all objects for old, without looking at them.

    For many objects that stay and have left no garbage: its next look at new objects would take
    long, and find nothing. What else is new is looked at with the old objects.
    """
    if not _some_are_kept():  # others stay frozen
        gc.freeze()
        gc.unfreeze()


@contextmanager
def old_objects_kept() -> Iterator[None]:
    """The collector does not look at objects that are older than this context.

    A long run makes enough new objects for a look at all, and the plans of many queries are most of
    these. They stay until the run ends.
    """
    if _some_are_kept():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
