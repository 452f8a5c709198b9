"""SIGINT and SIGTERM while the command line is being imported. It imports nothing of spaseq."""

import os
import signal

_MESSAGES = {signal.SIGINT: b"spaseq: interrupted\n", signal.SIGTERM: b"spaseq: terminated\n"}


def end_at_once(number: int, _frame: object) -> None:
    """End the process, which has nothing to clean up yet. An import would not survive an error."""
    try:
        os.write(2, _MESSAGES[signal.Signals(number)])
    finally:
        os._exit(128 + number)


def end_at_signals() -> None:
    """Let SIGINT and SIGTERM end the process at once, unless they are ignored or handled."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end_at_once)
