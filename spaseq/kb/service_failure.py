"""Failed requests to SPARQL endpoints, and the count of repeated ones."""

from __future__ import annotations

from spaseq.measures import ProcessCount


class ServiceFailure(Exception):
    """A failed request; `again` says that a repeated request may succeed."""

    def __init__(self, reason: str, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class RetryCount(ProcessCount):
    """Counts the requests that this process repeats after a failure."""
