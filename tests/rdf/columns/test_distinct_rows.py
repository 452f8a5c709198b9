"""Rows of columns are ordered and made distinct like tuples of their values. Repeated triples in an
event.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.distinct_rows import first_rows, grouped_rows, repeated_rows, row_order

VALUE = st.one_of(st.integers(-2, 2), st.sampled_from([-(2**63), 2**63 - 1, 2**40, -(2**40)]))

TRIPLE = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2))


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[VALUE] * n), max_size=30)))
def test_they_are_in_the_order_of_their_values(rows: list[tuple[int, ...]]) -> None:
    width = len(rows[0]) if rows else 2
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(width)]
    distinct = sorted(set(rows))
    first, which = grouped_rows(columns)
    assert first.tolist() == first_rows(columns).tolist() == [rows.index(row) for row in distinct]
    assert row_order(columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)
    assert which.tolist() == [distinct.index(row) for row in rows]


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
