"""Points in the logs of streams from which they can be read again, with the clocks as they were."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from spaseq.errors import UsageError
from spaseq.runtime.live.partition_clocks import PartitionClocks

MOST = 64
"""How many points are kept; older ones are farther apart."""


class HistoryGone(UsageError):
    """What is asked for may have been dropped from a log."""


class PastPoint(NamedTuple):
    """A point.

    Attributes:
        places: the next record of each stream's log, by IRI.
        streams: what `LiveEngine.streams_as_json` gave there.
    """

    places: Mapping[str, int]
    streams: list[Any]

    def latest(self, iri: str) -> int | None:
        """The greatest time (ms) of all events of a stream before the point; None if none is."""
        clocks = dict(self.streams[0])
        return PartitionClocks.of_json(clocks[iri]).latest if iri in clocks else None


class PastPoints:
    """The points that a run keeps, the oldest first."""

    def __init__(self, values: Collection[tuple[Mapping[str, int], list[Any]]] = ()) -> None:
        """`values` are what `as_values` gave."""
        points = (PastPoint(dict(places), streams) for places, streams in values)
        self._points: list[PastPoint] = [*points]

    def add(self, point: PastPoint) -> None:
        """Take note of a point after all others."""
        self._points.append(point)
        if len(self._points) > MOST:
            half = len(self._points) // 2
            self._points = [*self._points[:half:2], *self._points[half:]]

    def drop(self, firsts: Mapping[str, int]) -> None:
        """Forget the points before what the logs still have: the first record of each."""
        self._points = [
            point
            for point in self._points
            if all(point.places.get(iri, 0) >= first for iri, first in firsts.items())
        ]

    def before(self, since: int, iris: Collection[str]) -> PastPoint | None:
        """The last point before all events of some streams from a time (ms) on; None if none is."""
        found: PastPoint | None = None
        for point in self._points:  # times only grow
            latest = [point.latest(iri) for iri in iris]
            if all(time is None or time < since for time in latest):
                found = point
        return found

    def as_values(self) -> list[Any]:
        """The points as values that a state can have."""
        return [(dict(point.places), point.streams) for point in self._points]
