"""The reading positions of a live run's engine in the logs, and points from which to read again.

A query that begins in the past reads from a `PastPoint`, with the clocks of that point. The state
of the queries can be rebuilt from a `ReplayPoint`. The logs are kept from the last point before all
events that the state depends on (`arrivals/log_depth.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from spaseq.errors import UsageError
from spaseq.logs.stream_log import Entry, StreamLog
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.arrivals.log_depth import Reach, depths
from spaseq.runtime.live.partition_clocks import PartitionClocks


class LogReading:
    """Reads the logs of all streams, each from a position on."""

    def __init__(self, logs: Mapping[str, StreamLog], places: Mapping[str, int]) -> None:
        """`places` are the first positions, by stream IRI; 0 where there is none."""
        self._logs = logs
        self._readers = {iri: log.reader(places.get(iri, 0)) for iri, log in logs.items()}

    @property
    def places(self) -> dict[str, int]:
        """The next record to read of each log."""
        return {iri: reader.next for iri, reader in self._readers.items()}

    def ends(self) -> dict[str, int]:
        """The next record to be written of each log."""
        return {iri: log.log.end for iri, log in self._logs.items()}

    def lag(self, iri: str) -> int:
        """Number of unread records of a stream's log."""
        return self._logs[iri].log.end - self._readers[iri].next

    def waits(self, ends: Mapping[str, int] | None = None) -> bool:
        """Whether there are unread records, up to the ends of the logs or to given ends."""
        given = self.ends() if ends is None else ends
        return any(self._readers[iri].next < end for iri, end in given.items())

    def entries(
        self, most_bytes: int, until: Mapping[str, int] | None
    ) -> Iterator[tuple[str, list[Entry]]]:
        """(stream, its next entries) of about `most_bytes`, where there are some.

        With `until`, no log is read beyond its position there.
        """
        for iri, reader in self._readers.items():
            end = None if until is None else until.get(iri, reader.next)
            entries = reader.read(most_bytes, end)
            if entries:
                yield iri, entries

    def close(self) -> None:
        """Close the files that are read."""
        for reader in self._readers.values():
            reader.close()


class HistoryGone(UsageError):
    """Requested records may have been dropped from a log."""


class PastPoint(NamedTuple):
    """A point from which a query can read the past.

    Attributes:
        places: the next record of each stream's log, by IRI.
        streams: the result of `LiveEngine.streams_as_json` there.
    """

    places: Mapping[str, int]
    streams: list[Any]

    def latest(self, iri: str) -> int | None:
        """The greatest time (ms) of a stream's events before the point; None if there is none."""
        clocks = dict(self.streams[0])
        return PartitionClocks.of_json(clocks[iri]).latest if iri in clocks else None


P = TypeVar("P", bound=tuple[Any, ...])


class Points(list[P]):
    """The points that a run keeps, the oldest first; older ones are farther apart."""

    most: ClassVar[int]
    """Maximum number of points."""

    def add(self, point: P) -> None:
        """Record a point after all others."""
        self.append(point)
        if len(self) > self.most:
            half = len(self) // 2
            self[:half] = self[:half:2]

    def as_values(self) -> list[Any]:
        """The points as JSON values."""
        return [list(point) for point in self]


class PastPoints(Points[PastPoint]):
    """The points from which queries can read the past."""

    most = 64

    def drop(self, firsts: Mapping[str, int]) -> None:
        """Drop the points before the first record of each log."""
        self[:] = [
            point
            for point in self
            if all(point.places.get(iri, 0) >= first for iri, first in firsts.items())
        ]

    def before(self, since: int, iris: Collection[str]) -> PastPoint | None:
        """The last point before all events of some streams from a time (ms) on; None if there is
        none.
        """
        last: PastPoint | None = None
        for point in self:  # times only grow
            latest = [point.latest(iri) for iri in iris]
            if all(time is None or time < since for time in latest):
                last = point
        return last


class ReplayPoint(NamedTuple):
    """A point between two batches; all values can be written as JSON.

    Attributes:
        places: the next record of each stream's log, by IRI.
        streams: the result of `LiveEngine.streams_as_json` there.
        accepted: number of events of each stream before it, by IRI.
        changes: the next change of queries to take effect.
        endpoints: the next record of the log of endpoints.
        queries: the result of `ChangingQueries.as_values` there.
        failed: the titles of queries that had failed, each with the reason.
        graphs: the graphs that queries maintain, or did; no log has them.
        endless: the titles of queries whose open windows may have begun at any event before; None
            if that is not known, as in points of earlier versions.
    """

    places: Mapping[str, int]
    streams: list[Any]
    accepted: Mapping[str, int]
    changes: int
    endpoints: int
    queries: list[Any]
    failed: list[Any]
    graphs: Sequence[str] = ()
    endless: Sequence[str] | None = None

    @property
    def is_begin(self) -> bool:
        """Whether no event came before."""
        return not any(self.accepted.values())

    @property
    def lost_graphs(self) -> Sequence[str]:
        """The graphs that cannot be rebuilt from here: earlier events have changed them."""
        return () if self.is_begin else self.graphs

    @property
    def lacks_nothing(self) -> bool:
        """Whether the state of any query at the point can be rebuilt from here."""
        return self.is_begin or not (self.graphs or self.endless is None or self.endless)

    @property
    def watermarks(self) -> dict[str, int | None]:
        """The watermark (ms) of each stream there."""
        clocks = self.streams[0] if self.streams else []
        return {iri: PartitionClocks.of_json(value).watermark for iri, value in clocks}

    def is_before(self, reach: Reach) -> bool:
        """Whether the state of a query depends only on events after the point."""
        past = PastPoint(self.places, self.streams)
        return reach.is_after({iri: past.latest(iri) for iri in reach.accepted}, self.accepted)


BEGIN = ReplayPoint({}, [], {}, 0, 0, [], [])
"""Before all events."""


def reaches(
    plans: Sequence[QueryPlan],
    watermarks: Mapping[str, int | None],
    accepted: Mapping[str, int],
) -> list[Reach]:
    """The reaches of the states of queries.

    Args:
        plans: the queries.
        watermarks: of the streams of the run, by IRI (ms).
        accepted: number of events of each of these streams.
    """
    return [depth.reach(watermarks, accepted) for depth in depths(plans, watermarks)]


class ReplayPoints(Points[ReplayPoint]):
    """The points from which the state can be rebuilt."""

    most = 32

    @property
    def first(self) -> ReplayPoint | None:
        """The point from which the state can be rebuilt."""
        return self[0] if self else None

    def drop(self, needed: Sequence[Reach]) -> None:
        """Drop the points before the last one from which all queries can be rebuilt."""
        for number in range(len(self) - 1, 0, -1):
            if all(self[number].is_before(reach) for reach in needed):
                del self[:number]
                return
