"""Chooses the size of batches while a backlog is read, so that each takes some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_BYTES = 512 * 2**20
LEAST_BYTES = 16 * 2**20

AIM_SECONDS = 4.0
"""The time a batch is to take. An empty one takes some tenths of a second already, and answers
come only at the end of a batch."""

_MOST_CHANGE = 4.0  # factor between two batches


class BatchSizer:
    """How many bytes of each stream the next batch of a backlog reads.

    Args:
        most: the most bytes that a batch reads.
        now: seconds, from a clock that never goes back.
    """

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._begun: tuple[float, float] | None = None  # when the last batch began, and its limit
        self.bytes = min(most, FIRST_BYTES)

    def begin(self, size: float | None) -> None:
        """The last batch has ended and the next one begins.

        Args:
            size: the next batch's limit in bytes; None if it leaves no backlog, so that its
                duration says nothing.
        """
        now = self._now()
        if self._begun is not None:
            since, before = self._begun
            change = AIM_SECONDS / max(now - since, AIM_SECONDS / _MOST_CHANGE)
            wanted = before * max(change, 1 / _MOST_CHANGE)
            self.bytes = min(max(int(wanted), LEAST_BYTES), self._most)
        self._begun = None if size is None else (now, size)
