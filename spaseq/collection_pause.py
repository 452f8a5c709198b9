"""Less work for Python's garbage collector where there are many objects that know no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
