"""What a live run tells its user: notes of all its threads, and what fails now."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from spaseq.errors import SpaseqError
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.live_engine import EngineLost

T = TypeVar("T")

_PAUSE_S = 0.2  # after a failure


class RunReports:
    """Passes notes on to a job. `problems` are what fails now, by what it is.

    With `endures`, failures are problems, and end nothing.
    """

    def __init__(self, job: Job, endures: bool) -> None:
        self._job, self._endures = job, endures
        self._notes: deque[str] = deque()
        self.problems: dict[str, str] = {}

    def note(self, text: str) -> None:
        """Tell the user something soon; any thread may."""
        self._notes.append(text)

    def tell(self) -> None:
        """Pass on the notes of all threads."""
        while self._notes:
            self._job.on_note(self._notes.popleft())

    def enduring(self, what: str, do: Callable[[], T]) -> T | None:
        """Do something; if it fails, and the run endures that, it is a problem until it goes."""
        try:
            result = do()
        except EngineLost:
            raise
        except SpaseqError as error:
            if not self._endures:
                raise
            if self.problems.get(what) != str(error):
                self._job.on_note(f"{what}: {error}")
            self.problems[what] = str(error)
            time.sleep(_PAUSE_S)
            return None
        self.problems.pop(what, None)
        return result
