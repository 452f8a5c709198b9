"""Events that are too far ahead of all clocks are bad, and honest replays never are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.arrivals.arrived_batch import FileSlice, read_slice
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.stream_clock import FAR, Horizon, horizons
from spaseq.sources.files import GrowingFiles

DAY = 86_400_000
NOW = 1_700_000_000_000
YEAR_9999 = 253_370_764_800_000
YEAR_2100 = 4_102_444_800_000


def times(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@given(
    st.integers(-20, 20),
    st.integers(0, 10),
    st.none() | st.integers(-20, 20),
    st.lists(st.integers(-30, 60), max_size=20),
)
def test_each_event_is_compared_with_all_before_it(
    start: int, ahead: int, latest: int | None, given_times: list[int]
) -> None:
    reached = start if latest is None else max(start, latest)
    expected = []
    for time in given_times:
        expected.append(time <= reached + ahead)
        if expected[-1]:
            reached = max(reached, time)
    assert Horizon(start, ahead).admits(latest, times(*given_times)).tolist() == expected


@given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1), max_size=8), st.integers(0, 2**70))
def test_times_and_durations_at_the_bounds(values: list[int], ahead: int) -> None:
    assert FAR.admits(None, times(*values)).all()
    (horizon,) = horizons(NOW, [None], [times(*values)], ahead)
    assert len(horizon.admits(None, times(*values))) == len(values)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
    return tmp_path


def put(place: Path, name: str, *values: int) -> None:
    directory = place / name
    number = len(list(directory.iterdir()))
    lines = [
        f'<http://e/s> <http://e/p> "o" <http://e/{name}{time}> .\n<http://e/{name}{time}> '
        f'<http://www.w3.org/ns/prov#generatedAtTime> "{time}"'
        "^^<http://www.w3.org/2001/XMLSchema#long> .\n"
        for time in values
    ]
    (directory / f"{number:03}.nq").write_text("".join(lines))


class Followed:
    """A log over two streams; each batch is planned and read at once."""

    def __init__(self, place: Path, now: float = NOW, ahead: int = DAY) -> None:
        self.options = [StreamOptions(f"http://{n}", (str(place / n),)) for n in ("A", "B")]
        streams = [GrowingFiles.at(options) for options in self.options]
        settings = FileSourceSettings(max_ahead_ms=ahead)
        self.now = now
        self.log = FileSourceLog(place / "log", streams, settings, wall=lambda: self.now / 1000)
        self.number = 0

    def batch(self) -> tuple[list[int], list[int], list[BadInput]]:
        """The times of the events in time, of the late ones, and the bad input."""
        self.number = self.log.plan_batch(self.number)
        return self.read(self.number)

    def read(self, number: int) -> tuple[list[int], list[int], list[BadInput]]:
        found, late, bad = list[int](), list[int](), list[BadInput]()
        batch = self.log.batch(number)
        for options, stream in zip(self.options, batch.streams, strict=True):
            for piece in stream.slices:
                copy = FileSlice.of_json(piece.as_json())
                for events, lateness in read_slice(copy, options, batch.at, bad.append):
                    found += events.time[lateness == 0].tolist()
                    late += events.time[lateness > 0].tolist()
        return found, late, bad

    def latest(self) -> list[int | None]:
        return [clock.latest for clock in self.log.clocks(self.number)]


def test_one_event_from_the_year_9999_makes_no_other_late(place: Path) -> None:
    followed = Followed(place)
    put(place, "A", NOW - 5000, YEAR_9999, NOW - 4000)
    found, late, bad = followed.batch()
    assert (found, late) == ([NOW - 5000, NOW - 4000], [])
    assert [(b.file, b.text) for b in bad] == [
        (str(place / "A" / "000.nq"), f"<http://e/A{YEAR_9999}>")
    ]
    assert bad[0].reason.startswith("event at 9999-01-01T00:00:00Z, more than 86400000 ms ahead")
    put(place, "A", NOW - 3000)
    assert followed.batch()[:2] == ([NOW - 3000], [])
    assert followed.latest() == [NOW - 3000, None]


def test_it_may_be_the_first_event_of_its_stream_if_another_stream_runs(place: Path) -> None:
    followed = Followed(place)
    put(place, "A", YEAR_9999, NOW - 4000)
    put(place, "B", NOW - 5000)
    found, late, bad = followed.batch()
    assert (found, late, len(bad)) == ([NOW - 4000, NOW - 5000], [], 1)


def test_a_replay_of_history_is_never_hit(place: Path) -> None:
    followed = Followed(place)
    history = [0, 40 * DAY, 365 * DAY, 9000 * DAY, NOW]
    put(place, "A", *history)
    put(place, "B", 8000 * DAY)
    found, late, bad = followed.batch()
    assert (found, late, bad) == ([*history, 8000 * DAY], [], [])


def test_simulated_streams_lie_in_the_future(place: Path) -> None:
    followed = Followed(place)
    simulated = [YEAR_2100 + i * DAY // 2 for i in range(10)]
    put(place, "A", *simulated)
    put(place, "B", simulated[-1], simulated[-1] + 10)  # far behind the first event of A
    assert followed.batch() == ([*simulated, simulated[-1], simulated[-1] + 10], [], [])
    put(place, "A", simulated[-1] + DAY, YEAR_9999)
    found, late, bad = followed.batch()
    assert (found, late, len(bad)) == ([simulated[-1] + DAY], [], 1)


def test_a_stream_that_was_silent_catches_up_with_the_others(place: Path) -> None:
    followed = Followed(place)
    put(place, "A", YEAR_2100)
    put(place, "B", YEAR_2100)
    followed.batch()
    put(place, "A", *(YEAR_2100 + i * DAY for i in range(10)))
    put(place, "B", YEAR_2100 + 9 * DAY)
    assert followed.batch()[2] == []


def test_the_duration_can_be_set(place: Path) -> None:
    put(place, "A", NOW, NOW + 2 * DAY, NOW + DAY)
    assert len(Followed(place).batch()[2]) == 1
    for path in (place / "log").iterdir():
        path.unlink()
    assert Followed(place, ahead=2 * DAY).batch()[2] == []


def test_a_batch_that_is_run_again_has_the_same_verdicts(place: Path) -> None:
    followed = Followed(place)
    put(place, "A", NOW, NOW + 5 * DAY, NOW + DAY, NOW + 2 * DAY)
    first = followed.batch()
    assert [len(part) for part in first] == [3, 0, 1]
    resumed = Followed(place, now=NOW + 30 * DAY, ahead=10 * DAY)  # later, with another setting
    assert resumed.batch() == first
    assert resumed.latest() == followed.latest() == [NOW + 2 * DAY, None]
    put(place, "A", NOW + 5 * DAY)
    assert resumed.batch()[2] == []  # by now, that time has come


def test_a_log_of_an_earlier_version_has_no_horizon(place: Path) -> None:
    followed = Followed(place)
    put(place, "A", NOW)
    followed.batch()
    (piece,) = followed.log.batch(1).streams[0].slices
    assert FileSlice.of_json(piece.as_json()[:-1]).horizon == FAR
