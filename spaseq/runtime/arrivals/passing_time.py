"""The watermarks of silent streams.

A stream that takes its times from the clock advances with the clock. A stream whose events bring
their times advances when it is idle: as fast as the clock from its last event on, and at least as
far as the other streams of its queries. Then it holds back no query, and its later events are
judged by its own watermark alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from spaseq.options import FileSourceSettings
from spaseq.records import record
from spaseq.runtime.arrivals.stream_clock import StreamClock

Key = TypeVar("Key", bound=tuple[object, ...])
"""The key of a partition: its stream first."""


@record
class PlaceTime:
    """The time of a partition.

    Attributes:
        watermark: ms; None if it has none.
        reached: its time according to the clock, ms; None if the clock does not tell now.
        is_idle: whether it is silent, and so holds back no query.
    """

    watermark: int | None
    reached: int | None = None
    is_idle: bool = False


@record
class Watched:
    """Queries that wait for time.

    Attributes:
        groups: the streams of queries whose answers become final together.
        waited: the streams that block some answer or state.
    """

    groups: Collection[frozenset[object]]
    waited: Collection[object]


def passed(places: Mapping[Key, PlaceTime], watched: Watched) -> dict[Key, int]:
    """The watermarks (ms) that rise, by partition."""
    risen = {
        key: place.reached
        for key, place in places.items()
        if place.reached is not None and key[0] in watched.waited
    }
    if any(place.is_idle for place in places.values()):
        least = _least(places, risen, watched)
        for key, place in places.items():
            if place.is_idle and (to := least.get(key[0])) is not None and key[0] in watched.waited:
                risen[key] = max(to, risen.get(key, to))
    return {key: to for key, to in risen.items() if _is_behind(places[key].watermark, to)}


def _least(
    places: Mapping[Key, PlaceTime], risen: Mapping[Key, int], watched: Watched
) -> dict[object, int]:
    """By stream: the greatest watermark (ms) of a query of it without idle streams."""
    marks: dict[object, int] = {}
    for group in watched.groups:
        group_places = {key: place for key, place in places.items() if key[0] in group}
        mark = _of_group(group_places, risen)
        if mark is not None:
            for iri in group:
                marks[iri] = max(mark, marks.get(iri, mark))
    return marks


def _of_group(places: Mapping[Key, PlaceTime], risen: Mapping[Key, int]) -> int | None:
    """The watermark (ms) of a query without idle partitions; if all are idle, the greatest one."""
    idle = [_after(place, risen.get(key)) for key, place in places.items() if place.is_idle]
    busy = [_after(place, risen.get(key)) for key, place in places.items() if not place.is_idle]
    if busy:
        known = [mark for mark in busy if mark is not None]
        return min(known) if len(known) == len(busy) else None
    return max((mark for mark in idle if mark is not None), default=None)


def _after(place: PlaceTime, risen: int | None) -> int | None:
    known = (place.watermark, risen)
    return max((mark for mark in known if mark is not None), default=None)


def _is_behind(watermark: int | None, to: int) -> bool:
    return watermark is None or watermark < to


def raise_silent(
    clocks: Sequence[tuple[StreamClock, bool]], at: int, before: int, settings: FileSourceSettings
) -> bool:
    """Raise the watermarks of idle partitions of streams that belong together.

    Args:
        clocks: the clock of each partition, and whether it is idle.
        at: the time, ms since the epoch.
        before: the time of the last call.
        settings: the rules of time. Time advances with the clock while a window of `horizon_ms` may
            be open.

    Returns:
        Whether a watermark has risen.
    """
    latest = max((clock.latest for clock, _ in clocks if clock.latest is not None), default=None)
    marks = [clock.watermark for clock, _ in clocks]
    beat, horizon = settings.heartbeat_ms, settings.horizon_ms
    waits = latest is not None and any(m is None or m <= latest + horizon for m in marks)
    ticks = horizon > 0 and waits and at // beat > before // beat
    places = {
        (number,): PlaceTime(
            clock.watermark, clock.after_silence(at) if is_idle and ticks else None, is_idle
        )
        for number, (clock, is_idle) in enumerate(clocks)
    }
    together = frozenset(range(len(clocks)))
    risen = passed(places, Watched({together}, together))
    for (number,), to in risen.items():
        clocks[number][0].raise_to(to)
    return bool(risen)
