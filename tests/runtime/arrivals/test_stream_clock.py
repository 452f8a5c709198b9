"""Lateness and instants of a followed stream (docs/meaning.md#instants; lateness per stream)."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.runtime.arrivals.stream_clock import StreamClock


def events(*times: int, first: int = 0) -> EventBatch:
    """Events with one triple each; the IRI contains the event's number."""
    n = len(times)
    codes = np.arange(n, dtype=np.int32)
    return EventBatch(
        "http://s",
        np.array(times, np.int64),
        np.zeros(n, np.int32),
        EventNames.of([f"http://e/{first + i}" for i in range(n)]),
        np.arange(n + 1, dtype=np.int64),
        codes,
        codes,
        codes,
        [f"<http://t/{first + i}>" for i in range(n)],
    )


def admitted(clock: StreamClock, batch: EventBatch) -> tuple[list[tuple[object, ...]], list[str]]:
    kept, late = clock.admit(batch)
    rows = [
        (kept.graph[i], int(kept.time[i]), int(kept.k[i]), kept.terms[kept.s[kept.start[i]]])
        for i in range(len(kept))
    ]
    return rows, [str(e.event) for e in late]


def test_an_event_is_late_if_it_is_behind_the_greatest_time_before_it_by_more_than_the_delay() -> (
    None
):
    clock = StreamClock(delay_ms=10)
    rows, late = admitted(clock, events(100, 90, 89, 120, 109, 110))
    assert late == ["http://e/2", "http://e/4"]
    assert [r[:3] for r in rows] == [
        ("http://e/0", 100, 0),
        ("http://e/1", 90, 0),
        ("http://e/3", 120, 0),
        ("http://e/5", 110, 0),
    ]
    assert clock.watermark == 110


def test_lateness_is_the_distance_to_the_watermark() -> None:
    _, late = StreamClock(delay_ms=10).admit(events(100, 50))
    assert [(e.time, e.lateness_ms) for e in late] == [(50, 40)]


def test_a_stream_without_events_has_no_watermark() -> None:
    assert StreamClock(delay_ms=0).watermark is None


@given(
    st.lists(st.integers(0, 12), max_size=30),
    st.integers(0, 5),
    st.lists(st.integers(0, 30), max_size=4),
)
def test_where_batches_are_cut_makes_no_difference(
    times: list[int], delay: int, cuts: list[int]
) -> None:
    whole = admitted(StreamClock(delay), events(*times))
    clock, rows, late = StreamClock(delay), [], []
    edges = [0, *sorted(min(c, len(times)) for c in cuts), len(times)]
    for start, end in pairwise(edges):
        part = admitted(clock, events(*times[start:end], first=start))
        rows += part[0]
        late += part[1]
        clock = StreamClock.of_json(json.loads(json.dumps(clock.as_json())))
    assert (rows, late) == whole


@given(
    st.lists(st.integers(0, 12), max_size=30),
    st.integers(0, 5),
    st.integers(0, 30),
    st.none() | st.integers(0, 8),
)
def test_a_part_needs_no_more_of_the_clock_than_is_handed_to_it(
    times: list[int], delay: int, cut: int, floor: int | None
) -> None:
    clock = StreamClock(delay)
    if floor is not None:
        clock.raise_to(floor)
    whole = admitted(StreamClock.of_json(clock.as_json()), events(*times))
    first, rest = np.array(times[:cut], np.int64), np.array(times[cut:], np.int64)
    one = admitted(clock.before(first), events(*first.tolist()))
    clock.pass_over(first)
    two = admitted(clock.before(rest), events(*rest.tolist(), first=len(first)))
    assert (one[0] + two[0], one[1] + two[1]) == whole


def test_a_stream_that_was_idle_is_late_behind_the_time_that_the_others_had_reached() -> None:
    clock = StreamClock(delay_ms=10)
    assert admitted(clock, events(100))[1] == []
    clock.raise_to(500)
    assert clock.watermark == 500
    rows, late = admitted(clock, events(499, 500, 505))
    assert late == ["http://e/0"]
    assert [r[1] for r in rows] == [500, 505]
    assert clock.watermark == 500
