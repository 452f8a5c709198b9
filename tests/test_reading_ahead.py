"""Reading ahead: an interrupt ends the wait for a thread, whichever thread the signal comes to."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from spaseq.reading_ahead import read_ahead


@pytest.mark.usefixtures("interruptible")
def test_a_signal_that_does_not_wake_the_main_thread_is_noticed() -> None:
    """As if it had arrived just before the main thread began to wait."""
    ended, patient = threading.Event(), list[bool]()

    def read(item: int) -> int:
        time.sleep(0.5)  # the main thread waits by then
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        patient.append(ended.wait(20))
        return item

    try:
        with pytest.raises(KeyboardInterrupt):
            next(read_ahead(read, iter([1]), 2))
        assert not patient
    finally:
        ended.set()
