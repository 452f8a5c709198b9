"""When heartbeats are due; both clocks are the test's."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import MessageOptions, StreamOptions
from spaseq.runtime.arrivals.passing_time import Watched
from spaseq.runtime.arrivals.stream_clock import StreamClock
from spaseq.runtime.live.heartbeats import Heartbeats, Place, RunClock
from spaseq.runtime.live.intakes import LiveStream
from spaseq.sources.broker_stream import POSTED, BrokerStream


def stream(
    iri: str, time: str | None = None, delay_ms: int = 0, idle_ms: int | None = None
) -> LiveStream:
    """A stream that is posted."""
    options = StreamOptions(iri, (), messages=MessageOptions(time=time))
    return LiveStream(
        iri, BrokerStream(options, POSTED), FileSourceSettings(delay_ms=delay_ms, idle_ms=idle_ms)
    )


@dataclass
class Run:
    """Streams of a run, and its clocks in seconds; one query reads all streams, and waits."""

    streams: list[LiveStream]
    wall: float = 1000.0
    now: float = 0.0
    since: float | None = 0.0

    def __post_init__(self) -> None:
        clock = RunClock(lambda: self.wall)
        self.clock = clock
        self.beats = Heartbeats(self.streams, clock, lambda: self.now)
        iris = {stream.iri for stream in self.streams}
        self.watched = Watched({frozenset(iris)}, iris)

    def pass_(self, seconds: float) -> None:
        """Let time pass."""
        self.wall, self.now = self.wall + seconds, self.now + seconds

    def due(self, clocks: dict[Place, StreamClock]) -> dict[Place, int]:
        """The heartbeats that are due; the clocks follow."""
        found = self.beats.due(clocks, self.watched, lambda _: self.since)
        for place, to in found.items():
            clocks[place].raise_to(to)
        return found


S = ("s", 0)


def test_a_stream_that_takes_the_clock_has_a_heartbeat_each_interval() -> None:
    run, clocks = Run([stream("s", "arrival", delay_ms=300)]), {S: StreamClock(300)}
    assert run.due(clocks) == {S: 999_700}  # it has had no event
    assert run.due(clocks) == {}
    run.pass_(0.9)
    assert run.due(clocks) == {}
    run.pass_(0.2)
    assert run.due(clocks) == {S: 1_000_800}
    run.watched = Watched((), ())
    run.pass_(5)
    assert run.due(clocks) == {}


def test_heartbeats_and_arrivals_stand_still_until_the_clock_has_caught_up() -> None:
    run, clocks = Run([stream("s", "arrival")]), {S: StreamClock(0)}
    assert run.due(clocks) == {S: 1_000_000}
    assert run.clock.problem() == ""
    run.pass_(1)
    run.wall = 400.0
    assert run.due(clocks) == {}
    assert run.clock.arrival("s") == 1_000_000
    assert "600.0 s" in run.clock.problem()
    run.pass_(1)
    run.wall = 1002.0
    assert run.due(clocks) == {S: 1_002_000}
    assert run.clock.problem() == ""


def test_an_idle_stream_goes_on_from_its_last_event() -> None:
    run = Run([stream("s", delay_ms=50, idle_ms=2000)])
    clocks = {S: StreamClock(50, latest=5000, reached_at=1_000_000)}
    run.beats.hear([S])
    run.pass_(1.9)
    assert run.due(clocks) == {}
    run.pass_(0.1)
    run.since = None
    assert run.due(clocks) == {}
    run.pass_(1)
    run.since = 0.0
    assert run.due(clocks) == {S: 5000 + 3000 - 50}
    run.beats.hear([S])
    run.pass_(1)
    assert run.due(clocks) == {}


def test_a_source_that_was_away_has_as_long_as_ever_to_bring_what_waited_for_it() -> None:
    """Without that, the heartbeat is ahead of the events that its broker kept meanwhile."""
    run = Run([stream("s", idle_ms=2000)])
    clocks = {S: StreamClock(0, latest=5000, reached_at=1_000_000)}
    run.beats.hear([S])
    run.since = None
    run.pass_(60)
    run.since = run.now
    assert run.due(clocks) == {}
    run.pass_(1.9)
    assert run.due(clocks) == {}
    run.pass_(0.1)
    assert run.due(clocks) == {S: 5000 + 62_000}


def test_a_stream_that_is_never_idle_has_no_heartbeats() -> None:
    run, clocks = Run([stream("s")]), {S: StreamClock(0, latest=5000, reached_at=1_000_000)}
    run.pass_(1e6)
    assert not run.beats.may_be_due
    assert run.due(clocks) == {}


def test_a_stream_that_has_brought_nothing_is_idle_from_its_start_on() -> None:
    run = Run([stream("s", idle_ms=2000), stream("t")])
    t = ("t", 0)
    clocks = {S: StreamClock(0), t: StreamClock(0, latest=70)}
    run.pass_(1.9)
    assert run.due(clocks) == {}
    run.pass_(0.2)
    assert run.due(clocks) == {S: 70}
