"""Numbers of events of equal time across parts of a stream that overlap."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.runtime.arrivals import tie_numbering
from spaseq.runtime.arrivals.tie_numbering import PartTimes, TieMerge, TieTable, after


def events(times: list[int]) -> EventBatch:
    """Events without triples."""
    size, none = len(times), np.empty(0, np.int32)
    k, start = np.zeros(size, np.int32), np.zeros(size + 1, np.int64)
    time = np.array(times, np.int64)
    return EventBatch("s", time, k, EventNames.none(size), start, none, none, none, ListedTerms([]))


def solutions(times: list[int]) -> SolutionBatch:
    """A solution for each event of a part, numbered as if there were no other parts."""
    time, zeros = np.array(times, np.int64), np.zeros(len(times), np.int32)
    k = InstantCounter().assign(time)
    return SolutionBatch(zeros, time, k, zeros, EventNames.of([None] * len(times)), {})


def test_a_table_keeps_its_times_and_counts_as_bytes() -> None:
    times, counts = np.array([-5, 0, 2**40, 2**62]), np.array([1, 7, 1, 2**33])
    again = TieTable.of(TieTable(3, 4, times, counts).data())
    assert (again.stream, again.part) == (3, 4)
    assert again.times.tolist() == times.tolist()
    assert again.counts.tolist() == counts.tolist()


def test_equal_steps_take_few_bytes() -> None:
    every_second = np.arange(0, 65_536_000, 1000)
    ones = np.ones(len(every_second), np.int64)
    assert len(TieTable(0, 0, every_second, ones).data()) < 1000


def test_streams_do_not_mix() -> None:
    merge, one = TieMerge(), np.ones(1, np.int64)
    merge.add(TieTable(0, 0, 5 * one, one))
    merge.add(TieTable(1, 1, 5 * one, one))
    assert merge.ties() == {}


PARTS = st.lists(st.lists(st.lists(st.integers(-4, 12), max_size=9), max_size=3), max_size=4)


@pytest.mark.parametrize("size", [1, 3, 2**16])
@given(parts=PARTS)
def test_events_are_numbered_by_part(size: int, parts: list[list[list[int]]]) -> None:
    before = tie_numbering._TABLE_TIMES, tie_numbering._ENOUGH
    tie_numbering._TABLE_TIMES = tie_numbering._ENOUGH = size
    try:
        tables = []
        for number, batches in enumerate(parts):
            watched = PartTimes(0, number)
            assert len([*watched.watch(iter(map(events, batches)))]) == len(batches)
            tables += watched.tables()
        merge = TieMerge()
        for table in sorted(tables, key=lambda t: int(t.times[0])):
            merge.add(table)
        ties = merge.ties()
    finally:
        tie_numbering._TABLE_TIMES, tie_numbering._ENOUGH = before
    seen = Counter[int]()
    for number, batches in enumerate(parts):
        times = [time for batch in batches for time in batch]
        own = solutions(times)
        numbered = after(replace(own, k=-1 - own.k), ties.get(number), ["s"])
        for time, k in zip(times, numbered.k.tolist(), strict=True):
            assert k == seen[time]
            seen[time] += 1
