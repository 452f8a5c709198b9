"""Signals that end a followed run: it completes what it is doing first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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

    def interrupted(number: int, _frame: object) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        ending.append(Terminated if number == signal.SIGTERM else KeyboardInterrupt)
        asked.set()

    before = {n: signal.signal(n, interrupted) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if ending:
        raise ending[0]
