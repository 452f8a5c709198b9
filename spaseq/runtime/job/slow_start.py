"""Says what a run does while nothing has come of it yet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_FIRST_S = 10.0  # the next note comes after twice the time, and so on


@contextmanager
def telling(
    note: Callable[[str], None], doing: Callable[[], str | None], first_s: float = _FIRST_S
) -> Iterator[None]:
    """Give notes from a thread within this context, ever more rarely.

    Args:
        note: takes each.
        doing: what the run does now; None once there is nothing more to tell.
        first_s: seconds to the first note.
    """
    over = threading.Event()

    def tell() -> None:
        wait_s = first_s
        while not over.wait(wait_s):
            text = doing()
            if text is None:
                return
            note(text)
            wait_s *= 2

    thread = threading.Thread(target=tell, name="slow start", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
