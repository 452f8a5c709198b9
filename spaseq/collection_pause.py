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
