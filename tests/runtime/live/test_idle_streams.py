"""Idle partitions rise to what the others have reached; the wall clock is the test's."""

from __future__ import annotations

from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.live.idle_streams import IdleStreams


def test_an_idle_partition_rises_to_the_least_of_the_others() -> None:
    now = [0.0]
    idle = IdleStreams({"s": 1000, "t": 1000}, lambda: now[0])
    a, b, c = ("s", 0), ("s", 1), ("t", 0)
    clocks = {a: StreamClock(0, 50), b: StreamClock(0, 70), c: StreamClock(0)}
    assert idle.risen(clocks) == {}
    now[0] = 0.9
    idle.hear([a, b])
    assert idle.risen(clocks) == {}
    now[0] = 1.1
    assert idle.risen(clocks) == {c: 50}
    assert clocks[c].floor is None  # the decision is logged first
    clocks[c].raise_to(50)
    assert idle.risen(clocks) == {}
    now[0] = 1.5
    idle.hear([b, c])
    now[0] = 2.0
    assert idle.risen(clocks) == {}  # a is idle, and is the least
    now[0] = 9.0
    assert idle.risen(clocks) == {a: 70, c: 70}  # all are idle


def test_nothing_is_idle_unless_it_is_asked_for() -> None:
    idle = IdleStreams({"s": None}, lambda: 1e9)
    idle.hear([("s", 0)])
    assert idle.risen({("s", 0): StreamClock(0, 5), ("t", 0): StreamClock(0)}) == {}
