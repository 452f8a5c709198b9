"""Windows: which first and last events share a window, and when it closes."""

from __future__ import annotations

import pytest

from spaseq.automaton.program.window import Counted, Sliding, Tumbling, Window

BOUNDS: list[tuple[Window, int, int]] = [
    (Sliding(5), 10, 5),
    (Tumbling(5), 14, 10),
    (Tumbling(5), 15, 15),
    (Tumbling(5, origin_ms=2), 11, 7),
    (Tumbling(5, origin_ms=2), -4, -8),
    (Counted(3), 10, 7),
]


@pytest.mark.parametrize(("window", "last", "earliest"), BOUNDS)
def test_a_window_reaches_back_to_its_earliest_event(
    window: Window, last: int, earliest: int
) -> None:
    assert window.earliest(last) == earliest
    assert window.holds(earliest, last)
    assert not window.holds(earliest - 1, last)
    assert window.holds(last, last)


def test_the_close_of_a_window_is_inclusive_if_it_slides() -> None:
    assert Sliding(5).close(10) == 15
    assert Sliding(5).holds(10, 15)
    assert Tumbling(5).close(12) == 15
    assert not Tumbling(5).holds(12, 15)
