"""How large the batches of a backlog are."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_BYTES = 512 * 2**20
LEAST_BYTES = 16 * 2**20

AIM_SECONDS = 4.0
"""A batch costs some tenths of a second whatever is in it, but its answers come only at its end."""

_MOST_CHANGE = 4.0  # times as large, or as small


class BatchSizer:
    """Bytes of each stream that the next batch of a backlog is to take, so that it takes a while.

    Args:
        most: the most that a batch takes.
        now: seconds, of a clock that does not go back.
    """

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._begun: tuple[float, float] | None = None  # when a batch of so many bytes began
        self.bytes = min(most, FIRST_BYTES)

    def begin(self, size: float | None) -> None:
        """The batch before has ended, and the next one begins; `size` is how many bytes it was let,
        None if there were no more."""
        now = self._now()
        if self._begun is not None:
            since, before = self._begun
            change = AIM_SECONDS / max(now - since, AIM_SECONDS / _MOST_CHANGE)
            wanted = before * max(change, 1 / _MOST_CHANGE)
            self.bytes = min(max(int(wanted), LEAST_BYTES), self._most)
        self._begun = None if size is None else (now, size)
