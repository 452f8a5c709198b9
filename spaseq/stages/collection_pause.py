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


_NEW = 20_000
"""New objects after which the collector looks at them, in a run of many queries."""


def count_as_old() -> None:
    """Let all objects count as old, because many have been made that stay for long.

    Else the collector looks at each of them three times before it finds that they stay. It looks at
    old objects when enough new ones have grown old.
    """
    if not gc.get_freeze_count():  # else the program itself keeps objects from the collector
        gc.freeze()
        gc.unfreeze()


def look_at_all() -> None:
    """The collector looks at all objects now, because many have been made that stay for long.

    It does so whenever there are a quarter more old objects than at the last time. For the plans of
    a thousand queries that takes half a second, better now than in the midst of events.
    """
    if gc.isenabled() and not gc.get_freeze_count():
        gc.collect()


def hide_for_good() -> None:
    """The collector never again looks at the objects that there are now, because they stay.

    They still go when nobody refers to them. Only cyclic garbage among them would stay, too.
    """
    gc.freeze()


@contextmanager
def collection_of_new_only() -> Iterator[None]:
    """The collector looks only at objects that are made in this context, and at no older ones.

    The plans of many queries are a million objects, which all outlive a run. To look at them takes
    the collector half a second. Older cyclic garbage waits for the end of the context. The stages
    of many queries are many new objects, so it looks after every `_NEW` of them only. If objects
    have been frozen already, by the program that uses this one or by a run that is not over,
    nothing is changed.
    """
    if gc.get_freeze_count():
        yield
        return
    often = gc.get_threshold()
    gc.set_threshold(often[0] and max(_NEW, often[0]), *often[1:])
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*often)
