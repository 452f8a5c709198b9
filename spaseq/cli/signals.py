"""SIGTERM ends a command like an interrupt: outputs are written and temporary files removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spaseq.errors import Terminated


@dataclass(slots=True)
class AskedToEnd:
    """Whether SIGINT or SIGTERM has arrived, and which of them came first."""

    number: int | None = None


@contextmanager
def terminable(asked: AskedToEnd) -> Iterator[None]:
    """SIGINT raises `KeyboardInterrupt`, and `asked` learns of it.

    The first SIGTERM raises `Terminated`; further ones do not disturb the cleaning up. SIGINT stays
    ignored if it is, as below `nohup`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return

    def terminated(number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        asked.number = asked.number or number
        raise Terminated

    def interrupted(number: int, _frame: object) -> None:
        asked.number = asked.number or number
        raise KeyboardInterrupt

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, terminated)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
