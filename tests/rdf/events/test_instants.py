"""k is the number of earlier events of the stream with the same time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.events.instants import InstantCounter, SortedRun
from tests.thresholds import Force, forced


def by_definition(times: list[int]) -> list[int]:
    seen: Counter[int] = Counter()
    ks = []
    for time in times:
        ks.append(seen[time])
        seen[time] += 1
    return ks


BATCHES = st.lists(
    st.one_of(
        st.lists(st.integers(0, 30), max_size=12),
        st.builds(lambda a, n: list(range(a, a + n)), st.integers(0, 40), st.integers(0, 20)),
    ),
    max_size=12,
)


@given(BATCHES, st.sampled_from([1, 4, 100]), st.integers(0, 2**12 - 1))
def test_k_in_any_order(batches: list[list[int]], spill: int, singly: int) -> None:
    with forced(f"spilled_rows={spill}"):
        counter = InstantCounter()
        got: list[int] = []
        for i, batch in enumerate(batches):
            if singly >> i & 1:
                got += [counter.next(time) for time in batch]
            else:
                got += counter.assign(np.array(batch, np.int64)).tolist()
    assert got == by_definition([time for batch in batches for time in batch])


def test_files_that_start_over_keep_their_ties(force: Force) -> None:
    force("spilled_rows=64")
    counter = InstantCounter()
    for file in range(3):
        for first in range(0, 1000, 100):
            times = np.arange(first, first + 100)
            assert counter.assign(times).tolist() == [file] * 100


def test_an_ordered_counter_refuses_a_time_that_decreases() -> None:
    counter = InstantCounter(ordered=True)
    assert counter.assign(np.array([5, 5, 6])).tolist() == [0, 1, 0]
    assert counter.next(6) == 1
    with pytest.raises(ValueError, match="time 5 after 6"):
        counter.next(5)


def test_merged_runs_add_up() -> None:
    a, b = SortedRun(), SortedRun()
    a.append(np.array([1, 3]), np.array([10, 30]))
    b.append(np.array([2, 3]), np.array([2, 3]))
    merged = SortedRun.merged(a, b)
    assert merged.counts(np.array([0, 1, 2, 3, 4])).tolist() == [0, 10, 2, 33, 0]
