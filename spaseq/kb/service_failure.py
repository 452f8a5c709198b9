"""Failed requests to SPARQL endpoints, and the count of repeated ones."""

from __future__ import annotations

from typing import ClassVar


class ServiceFailure(Exception):
    """A failed request; `again` says that a repeated request may succeed."""

    def __init__(self, reason: str, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class RetryCount:
    """Counts the requests that this process repeats after a failure."""

    total: ClassVar[int] = 0

    def __init__(self) -> None:
        self._before = self.total

    def take(self) -> int:
        """The number since the last call, or since this object was made."""
        found, self._before = self.total - self._before, self.total
        return found
