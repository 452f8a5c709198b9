"""Rows of columns are ordered and made distinct like tuples of their values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.distinct_rows import first_rows, grouped_rows, row_order

VALUE = st.one_of(st.integers(-2, 2), st.sampled_from([-(2**63), 2**63 - 1, 2**40, -(2**40)]))


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[VALUE] * n), max_size=30)))
def test_they_are_in_the_order_of_their_values(rows: list[tuple[int, ...]]) -> None:
    width = len(rows[0]) if rows else 2
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(width)]
    distinct = sorted(set(rows))
    first, which = grouped_rows(columns)
    assert first.tolist() == first_rows(columns).tolist() == [rows.index(row) for row in distinct]
    assert row_order(columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)
    assert which.tolist() == [distinct.index(row) for row in rows]
