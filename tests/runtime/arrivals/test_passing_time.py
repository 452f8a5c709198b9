"""How far the time of silent streams comes; S, T and U are streams, one partition each."""

from __future__ import annotations

from spaseq.options import FileSourceSettings
from spaseq.runtime.arrivals.passing_time import PlaceTime, Watched, passed, raise_silent
from spaseq.runtime.arrivals.stream_clock import StreamClock

S, T, U = ("S", 0), ("T", 0), ("U", 0)


def watched(*groups: str) -> Watched:
    """Queries that wait, each with its streams."""
    return Watched({frozenset(group) for group in groups}, {iri for own in groups for iri in own})


def test_the_clock_moves_what_something_waits_for() -> None:
    places = {S: PlaceTime(None, 100), T: PlaceTime(90, 100), U: PlaceTime(90, 100)}
    assert passed(places, watched("ST")) == {S: 100, T: 100}


def test_a_watermark_never_goes_back() -> None:
    assert passed({S: PlaceTime(100, 100), T: PlaceTime(101, 100)}, watched("ST")) == {}


def test_an_idle_stream_comes_as_far_as_its_query_without_it() -> None:
    places = {S: PlaceTime(10, is_idle=True), T: PlaceTime(50), U: PlaceTime(70)}
    assert passed(places, watched("STU")) == {S: 50}
    assert passed(places, watched("ST", "SU")) == {S: 70}
    assert passed(places, watched("S", "TU")) == {}


def test_an_idle_stream_goes_on_with_the_clock_too() -> None:
    places = {S: PlaceTime(10, 60, is_idle=True), T: PlaceTime(50)}
    assert passed(places, watched("ST")) == {S: 60}
    assert passed({S: PlaceTime(10, 60, is_idle=True)}, watched("S")) == {S: 60}


def test_if_all_are_idle_the_one_that_is_furthest_takes_the_others_along() -> None:
    places = {S: PlaceTime(None, is_idle=True), T: PlaceTime(50, 55, is_idle=True)}
    assert passed(places, watched("ST")) == {S: 55, T: 55}


def test_nobody_goes_past_a_stream_that_has_brought_nothing_and_is_not_idle() -> None:
    places = {S: PlaceTime(None), T: PlaceTime(50, is_idle=True), U: PlaceTime(70)}
    assert passed(places, watched("STU")) == {}


def test_an_idle_partition_comes_as_far_as_the_others_of_its_stream() -> None:
    places = {S: PlaceTime(10, is_idle=True), ("S", 1): PlaceTime(70)}
    assert passed(places, watched("S")) == {S: 70}


def test_time_goes_on_in_a_batch_each_heartbeat_while_a_window_may_be_open() -> None:
    settings = FileSourceSettings(heartbeat_ms=1000, horizon_ms=4000)
    clock = StreamClock(0, latest=500, reached_at=100_000)

    def passes(before: int, at: int) -> int | None:
        raise_silent([(clock, True)], at, before, settings)
        return clock.watermark

    assert passes(102_100, 102_900) == 500  # no second has begun
    assert passes(102_900, 103_100) == 500 + 3100
    assert passes(103_100, 104_700) == 500 + 4700  # the window is closed
    assert passes(104_700, 109_000) == 500 + 4700


def test_without_a_window_time_goes_on_with_other_streams_only() -> None:
    one, other = StreamClock(0, latest=500, reached_at=0), StreamClock(0, latest=900)
    assert raise_silent([(one, True), (other, False)], 9000, 0, FileSourceSettings())
    assert one.watermark == 900
