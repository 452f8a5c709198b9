"""Rows that are in order already are recognised, so that nothing sorts them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.automaton.batch.frame import _rising

SMALL = st.integers(0, 2)


@given(rows=st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=2, max_size=6))
def test_rows_rise_as_tuples_do(rows: list[tuple[int, int, int]]) -> None:
    rising = all(before < after for before, after in pairwise(rows))
    assert _rising([*np.array(rows, np.int64).T]) == rising


@given(rows=st.sets(st.tuples(SMALL, SMALL, SMALL), min_size=2, max_size=12))
def test_distinct_rows_in_order_rise(rows: set[tuple[int, int, int]]) -> None:
    assert _rising([*np.array(sorted(rows), np.int64).T])
