"""The batch sizer chooses the sizes of a backlog's batches."""

from __future__ import annotations

from spaseq.runtime.arrivals.input_splits import AIM_SECONDS, LEAST_BYTES, BatchSizer


class Watch:
    """A manual clock."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def sizes(most: int, *seconds: float) -> list[int]:
    """The sizes of a backlog's batches, given the seconds that each batch takes."""
    watch = Watch()
    sizer = BatchSizer(most, watch)
    found = [sizer.bytes]
    for each in seconds:
        sizer.begin(sizer.bytes)
        watch.seconds += each
        sizer.begin(sizer.bytes)
        found.append(sizer.bytes)
    return found


def test_batches_become_as_large_as_takes_the_time_aimed_at() -> None:
    half = AIM_SECONDS / 2
    assert sizes(2**40, half, half, AIM_SECONDS) == [LEAST_BYTES * n for n in (1, 2, 4, 4)]
    assert sizes(2**40, 0.0, 0.0) == [LEAST_BYTES * n for n in (1, 4, 16)]
    shrinking = sizes(2**40, 0.0, 0.0, 2 * AIM_SECONDS, 3600.0)
    assert shrinking == [LEAST_BYTES * n for n in (1, 4, 16, 8, 2)]


def test_a_backlog_begins_with_little_input() -> None:
    """A hundred queries may take minutes for what one reads in seconds."""
    assert sizes(2**40) == [LEAST_BYTES]


def test_batches_are_bounded() -> None:
    assert sizes(1000, 0.0, 0.0) == [1000] * 3
    assert sizes(LEAST_BYTES + 1, 0.0, 0.0) == [LEAST_BYTES, LEAST_BYTES + 1, LEAST_BYTES + 1]
    assert sizes(2**40, *[3600.0] * 5)[-1] == LEAST_BYTES


def test_waiting_for_input_says_nothing() -> None:
    watch = Watch()
    sizer = BatchSizer(2**40, watch)
    sizer.begin(None)
    watch.seconds = 3600.0
    sizer.begin(sizer.bytes)
    assert sizer.bytes == LEAST_BYTES
