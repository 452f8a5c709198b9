"""Retries: the pauses before further attempts, and the HTTP statuses of passing failures."""

from __future__ import annotations

FIRST_PAUSE, MOST_PAUSE = 0.5, 30.0
"""Seconds before the second attempt, and the maximum before later ones."""

_PASSING = frozenset({408, 425, 429})
"""HTTP statuses below 500 that ask the client to try later."""


def may_pass(status: int) -> bool:
    """Whether the same request may succeed later, given the HTTP status of the answer.

    >>> may_pass(503), may_pass(429), may_pass(404)
    (True, True, False)
    """
    return status >= 500 or status in _PASSING


class BackOff:
    """Exponential back-off: each pause is twice as long as the one before.

    Args:
        first_s: seconds before the second attempt; None: `FIRST_PAUSE`.
        most_s: the longest pause in seconds; None: `MOST_PAUSE`.

    Attributes:
        failures: number of failed attempts since the last success.

    >>> back_off = BackOff()
    >>> [back_off.failed() for _ in range(8)]
    [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    >>> back_off.succeeded()
    >>> back_off.failed()
    0.5
    """

    __slots__ = ("_first_s", "_most_s", "failures")

    def __init__(self, first_s: float | None = None, most_s: float | None = None) -> None:
        self._first_s = FIRST_PAUSE if first_s is None else first_s
        self._most_s = MOST_PAUSE if most_s is None else most_s
        self.failures = 0

    def failed(self) -> float:
        """Record a failed attempt; return the seconds to wait before the next."""
        self.failures += 1
        doublings = min(self.failures - 1, 64)
        return min(self._first_s * 2.0**doublings, self._most_s)

    def succeeded(self) -> None:
        """Record a success: the next pause is the shortest again."""
        self.failures = 0
