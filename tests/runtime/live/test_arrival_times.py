"""Events without a time have that of their arrival, but at least the greatest time before them."""

from __future__ import annotations

import numpy as np

from spaseq.rdf.terms.times import UNTIMED
from spaseq.runtime.arrivals.stream_clock import Horizon
from spaseq.runtime.live.stream_events import arrival_times


def times(*given: int | None, arrival: int, least: int | None = None) -> list[int]:
    """What becomes of times (ms), None for events without one; 100 ms ahead is too far."""
    read = np.array([UNTIMED if time is None else time for time in given], np.int64)
    found = arrival_times(read, arrival, least, Horizon(arrival, 100), least)
    return [int(time) for time in found]


def test_an_event_without_a_time_has_that_of_its_arrival() -> None:
    assert times(None, 20, None, arrival=50) == [50, 20, 50]


def test_an_arrival_is_at_least_the_greatest_time_seen() -> None:
    assert times(None, 80, None, 60, None, arrival=50) == [50, 80, 80, 60, 80]
    assert times(None, arrival=50, least=70) == [70]


def test_a_time_that_is_too_far_ahead_is_not_seen() -> None:
    assert times(151, None, 150, None, arrival=50) == [151, 50, 150, 150]
