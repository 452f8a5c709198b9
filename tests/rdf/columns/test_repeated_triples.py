"""Repeated triples in an event."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.repeated_triples import repeated_rows

TRIPLE = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2))


@given(st.lists(st.lists(TRIPLE, max_size=6), max_size=5))
def test_rows_whose_triple_came_before_in_the_event(events: list[list[tuple[int, ...]]]) -> None:
    start = np.cumsum([0, *map(len, events)])
    flat = np.array([t for event in events for t in event], np.int32).reshape(-1, 3)
    expected = [
        int(start[i]) + j
        for i, event in enumerate(events)
        for j, triple in enumerate(event)
        if triple in event[:j]
    ]
    assert repeated_rows(start, *flat.T).tolist() == expected
