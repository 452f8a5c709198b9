"""A stream with partitions: late is judged by partition, the stream waits for all of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.runtime.live.partition_clocks import PartitionClocks


def batch(times: list[int]) -> EventBatch:
    events = [(time, f"http://e/{n}", ()) for n, time in enumerate(times)]
    return batch_from_events("http://e/s", events, InstantCounter())


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 12), min_size=1, max_size=5)),
        max_size=8,
    ),
    st.integers(0, 4),
    st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_clocks_agree_with_their_definition(
    batches: list[tuple[int, list[int]]], delay: int, restart: bool
) -> None:
    clocks = PartitionClocks(delay)
    clocks.add(3)
    latest: dict[int, int] = {}
    seen: dict[int, int] = {}
    for partition, times in batches:
        admitted, late = clocks.admit(partition, batch(times))
        kept, lateness = [], []
        for time in times:
            behind = latest.get(partition, time) - delay - time
            latest[partition] = max(time, latest.get(partition, time))
            if behind > 0:
                lateness.append(behind)
            else:
                kept.append((time, seen.get(time, 0)))
                seen[time] = seen.get(time, 0) + 1
        assert list(zip(admitted.time.tolist(), admitted.k.tolist(), strict=True)) == kept
        assert [one.lateness_ms for one in late] == lateness
        expected = min(latest.values()) - delay if len(latest) == 3 else None
        assert clocks.watermark == expected
        if restart:
            clocks = PartitionClocks.of_json(clocks.as_json())


def test_partitions_that_are_added_later_never_move_the_watermark_back() -> None:
    clocks = PartitionClocks(0)
    clocks.admit(0, batch([5, 7, 7]))
    assert clocks.watermark == 7
    clocks.add(2)
    assert clocks.watermark == 7
    admitted, late = clocks.admit(1, batch([6, 7, 20]))
    assert [one.lateness_ms for one in late] == [1]
    assert admitted.k.tolist() == [2, 0]
    assert clocks.watermark == 7
    clocks.admit(0, batch([30]))
    assert clocks.watermark == 20
