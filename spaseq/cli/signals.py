"""SIGTERM ends a command like an interrupt: outputs are written and temporary files removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from spaseq.errors import Terminated


@contextmanager
def terminable() -> Iterator[None]:
    """The first SIGTERM raises `Terminated`; further ones do not disturb the cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return

    def terminated(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
