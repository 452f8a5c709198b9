"""What a process counts while it works for a run: requests sent again, and bad geometries."""

from __future__ import annotations

from spaseq.kb.service_failure import RetryCount
from spaseq.places.bad_geometries import BadGeometryCount
from spaseq.runtime.job.job import Stats


class ProcessCounts:
    """The counts since the last call of `add_to`, or since this object was made."""

    def __init__(self) -> None:
        self._requests, self._geometries = RetryCount(), BadGeometryCount()

    def add_to(self, stats: Stats) -> None:
        """Add them to the counts of a run or task."""
        stats.repeated += self._requests.take()
        stats.bad_geometries += self._geometries.take()
