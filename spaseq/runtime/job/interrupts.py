"""Signals that end a followed run after its present work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from spaseq.errors import Terminated


@contextmanager
def until_interrupted() -> Iterator[threading.Event]:
    """An event that the first SIGINT (Ctrl-C) or SIGTERM sets; the next SIGINT interrupts at once.

    Raises:
        KeyboardInterrupt: at the end, if there was a SIGINT.
        Terminated: at the end, if there was a SIGTERM first.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked  # only the main thread gets signals
        return
    ending: list[type[KeyboardInterrupt]] = []
    came: SimpleQueue[bool] = SimpleQueue()

    def interrupted(number: int, _frame: object) -> None:
        if ending and number == signal.SIGINT:
            raise KeyboardInterrupt
        ending.append(Terminated if number == signal.SIGTERM else KeyboardInterrupt)
        came.put(True)

    def tell() -> None:
        # Not in the handler: the main thread may hold the lock of the event, as it waits for it.
        while came.get():
            asked.set()

    telling = threading.Thread(target=tell, name="signals", daemon=True)
    telling.start()
    before = {n: signal.signal(n, interrupted) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        came.put(False)
        telling.join()
    if ending:
        raise ending[0]
