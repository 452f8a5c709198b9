"""Carries answers from the answer log to an output, in a thread: a slow output holds nobody up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from spaseq.connectors.base import NotTaken, pauses
from spaseq.logs.segment_log import LogReader, SegmentLog
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.live_directory import LiveDirectory
from spaseq.runtime.live.outlets import Outlet

_BYTES = 2**20  # of answers that are sent at once


class Delivery:
    """Sends what the answer log has and the output has not.

    Args:
        directory: keeps how far the answers have gone.
        log: the answers.
        outlet: the output; this object opens and closes it.
        on_note: told when the output is away, and when it is back; called in the thread.
        on_end: called in the thread if it fails; see `failure`.
    """

    def __init__(
        self,
        directory: LiveDirectory,
        log: SegmentLog,
        outlet: Outlet,
        on_note: Callable[[str], None],
        on_end: Callable[[], None],
    ) -> None:
        self._directory, self._outlet = directory, outlet
        self._on_note, self._on_end = on_note, on_end
        self.failure: BaseException | None = None
        before = directory.sent()
        known = before.get("output") == outlet.name
        outlet.begin(before["state"] if known else None)
        self.next = int(before.get("next", log.first))
        self._reader = LogReader(log, self.next)
        self._state: dict[str, Any] = {}
        self._told = False
        self._more, self._stop = threading.Event(), threading.Event()
        self._patience = threading.Event()  # set: no further attempts
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Say that the log has grown."""
        self._more.set()

    def close(self, seconds: float) -> None:
        """Send what is left, for at most some seconds, and close the output.

        Raises:
            RunError: the output has failed.
        """
        self._stop.set()
        self._more.set()
        self._thread.join(seconds)
        self._patience.set()
        self._thread.join()
        self._reader.close()
        self._outlet.close()
        self.check()

    def check(self) -> None:
        """RunError if the output has failed."""
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not (self._stop.is_set() and self._patience.is_set()):
                self._more.clear()
                if not self._send_some():
                    if self._stop.is_set():
                        return
                    self._more.wait()
        except BaseException as error:
            self.failure = error
            self._on_end()

    def _send_some(self) -> bool:
        """Send the next answers; whether there were any."""
        found = self._reader.read(_BYTES)
        before, together = self.next, self._outlet.together
        for begin in range(0, len(found), together):
            some = found[begin : begin + together]
            state = self._taken([LoggedAnswer.of_bytes(record) for _, record in some])
            if state is None:
                break
            self.next, self._state = some[-1][0] + 1, state
        if self.next > before:
            self._directory.save_sent(
                {"output": self._outlet.name, "next": self.next, "state": self._state}
            )
        if self._outlet.refused and not self._told:
            self._told = True
            self._on_note(f"{self._outlet.name} refuses answers; see {self._directory.failed}")
        return bool(found)

    def _taken(self, answers: list[LoggedAnswer]) -> dict[str, Any] | None:
        """What the output says when it has taken answers; None if the run ends before it does."""
        attempt, tries = 0, pauses()
        while True:
            try:
                state = dict(self._outlet.send(answers))
                break
            except NotTaken as error:
                if attempt == 0:
                    self._on_note(f"{error}; trying again")
                if self._patience.wait(tries[min(attempt, len(tries) - 1)]):
                    return None
                attempt += 1
        if attempt:
            self._on_note(f"{self._outlet.name} takes answers again")
        return state
