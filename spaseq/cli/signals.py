"""SIGTERM ends a command like an interrupt: outputs are written and temporary files removed."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from spaseq.early_signals import end_at_once
from spaseq.errors import Terminated


@dataclass(slots=True)
class AskedToEnd:
    """Whether SIGINT or SIGTERM has arrived, and which of them came first."""

    number: int | None = None

    def keeps(self, record: logging.LogRecord) -> bool:
        """Whether a log record is written.

        py4j logs a call that a signal interrupts, with a traceback. One line says that already.
        """
        return self.number is None or "while sending command" not in str(record.msg)


Handlers: TypeAlias = Callable[[Mapping[int, Any]], Mapping[int, Any]]
"""From the signal handlers before a command to those after it, each by the signal's number."""


def restored(before: Mapping[int, Any]) -> Mapping[int, Any]:
    """The handlers before a command."""
    return before


def at_exit(before: Mapping[int, Any]) -> Mapping[int, Any]:
    """Handlers of a process that only removes its temporary files: the second signal ends it."""
    came: list[int] = []

    def ending(number: int, _frame: object) -> None:
        if came:
            os._exit(128 + number)
        came.append(number)

    return dict.fromkeys(before, ending)


@contextmanager
def terminable(asked: AskedToEnd, then: Handlers = restored) -> Iterator[None]:
    """SIGINT raises `KeyboardInterrupt`, and `asked` learns of it.

    The first SIGTERM raises `Terminated`; further ones do not disturb the cleaning up. SIGINT stays
    ignored if it is, as below `nohup`. `then` gives the handlers of the time after.
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

    before: dict[int, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, terminated)}
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, end_at_once):
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupted)
    root = logging.getLogger()
    root.addFilter(asked.keeps)
    try:
        yield
    finally:
        root.removeFilter(asked.keeps)
        for number, handler in then(before).items():
            signal.signal(number, handler)
