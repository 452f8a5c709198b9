"""The join index finds the same pairs as a comparison of all pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.gpm.solutions.joins import KeyIndex

values = st.integers(-2, 3)


@st.composite
def two_tables(draw):
    width = draw(st.integers(0, 4))
    row = st.tuples(*[values] * width)
    return width, draw(st.lists(row, max_size=8)), draw(st.lists(row, max_size=8))


def columns(rows, width, dtype):
    return [np.array([row[i] for row in rows], dtype) for i in range(width)]


@given(two_tables(), st.sampled_from([np.int32, np.int64]))
def test_match_gives_all_pairs_of_equal_rows_in_order_of_the_first(tables, dtype):
    width, left, right = tables
    index = KeyIndex(columns(right, width, dtype), len(right))
    rows, others = index.match(columns(left, width, dtype), len(left))
    found = list(zip(rows.tolist(), others.tolist(), strict=True))
    expected = [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b]
    assert sorted(found) == expected
    assert rows.tolist() == sorted(rows.tolist())
