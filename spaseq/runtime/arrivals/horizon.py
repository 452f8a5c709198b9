"""How far ahead of all clocks an event of a followed run may be.

One event with a wrong time in the far future would make all later events of its stream late. So
an event that is too far ahead is bad, and moves no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.rdf.terms.times import UNTIMED
from spaseq.records import record

_MOST = 2**63 - 1


@record
class Horizon:
    """The horizon of a stream in a batch.

    An event is behind it if it is later than `start` and than every earlier event of its stream, by
    more than `ahead_ms`.

    Attributes:
        start: the greatest of the time of arrival and the times of the other streams, in ms.
        ahead_ms: how far ahead of that an event may be.
    """

    start: int
    ahead_ms: int

    def admits(self, latest: int | None, times: Int64s) -> Bools:
        """Whether each event is before the horizon (bool[n]).

        Args:
            latest: the greatest time of the stream before these events, in ms.
            times: the events' times, in order of arrival (ms, int64[n]).
        """
        reached = self.start if latest is None else max(self.start, latest)
        earlier = np.maximum.accumulate(np.concatenate([[reached], times]))[:-1]
        most = min(self.ahead_ms, _MOST)
        admitted: Bools = times - earlier <= most
        if admitted.all():  # the usual case
            return admitted
        first = int(np.argmin(admitted))
        reached = int(earlier[first])
        for i, time in enumerate(times[first:].tolist(), first):
            admitted[i] = time - reached <= most
            if admitted[i]:
                reached = max(reached, time)
        return admitted

    def reached(self, latest: int | None, times: Int64s) -> int | None:
        """The greatest time of the stream after these events; arguments as for `admits`."""
        admitted = times[self.admits(latest, times)]
        greatest = int(admitted.max()) if len(admitted) else None
        return max((t for t in (latest, greatest) if t is not None), default=None)

    def as_json(self) -> list[int]:
        """The horizon as JSON values; `of_json` is the inverse."""
        return [self.start, self.ahead_ms]

    @classmethod
    def of_json(cls, value: Sequence[int]) -> Horizon:
        """The inverse of `as_json`."""
        start, ahead_ms = value
        return cls(start, ahead_ms)


def event_horizon(latest: int | None, arrival: int, times: Int64s, ahead_ms: int) -> Horizon:
    """The horizon of events that came together; the first event of a stream starts its clock.

    Args:
        latest: the greatest time of the stream before, ms; None before its first event.
        arrival: when they arrived, ms.
        times: as they were read (ms, int64[n]), `UNTIMED` for events without one.
        ahead_ms: how far ahead an event may be.
    """
    if latest is None and len(times) and times[0] != UNTIMED:
        latest = int(times[0])
    return Horizon(arrival if latest is None else max(arrival, latest), ahead_ms)


def horizons(
    at: int, clocks: Sequence[int | None], times: Sequence[Int64s], ahead_ms: int
) -> list[Horizon]:
    """The horizon of each stream in a batch that arrives at `at` (ms).

    Before the first event of all streams no clock runs, so the earliest first event of a stream
    starts it: simulated streams may lie in the future.

    Args:
        at: the time of arrival.
        clocks: the greatest time of each stream before the batch; None before its first event.
        times: the times of each stream's events in the batch, in order (ms, int64[n]).
        ahead_ms: how far ahead an event may be.
    """
    first = [int(some[0]) for some in times if len(some)]
    if first and all(latest is None for latest in clocks):
        at = max(at, min(first))
    reached = list(clocks)
    found = _of_streams(at, reached, ahead_ms)
    for _ in times:  # a stream that goes on takes the others along
        pairs = zip(clocks, times, strict=True)
        reached = [h.reached(*pair) for h, pair in zip(found, pairs, strict=True)]
        further = _of_streams(at, reached, ahead_ms)
        if further == found:
            break
        found = further
    return found


def _of_streams(at: int, reached: Sequence[int | None], ahead_ms: int) -> list[Horizon]:
    """The horizon of each stream, given how far all have come."""
    others = [
        [t for t in (*reached[:i], *reached[i + 1 :]) if t is not None] for i in range(len(reached))
    ]
    return [Horizon(max([at, *some]), ahead_ms) for some in others]


FAR = Horizon(_MOST // 2, _MOST)
"""A horizon before which all events are; the logs of earlier versions have no other."""
