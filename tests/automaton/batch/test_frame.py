"""Rows that are in order already are recognised, so that nothing sorts them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.automaton.batch.kernels.measures import is_rising

SMALL = st.integers(0, 2)
ROWS = st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL, SMALL)

Row: TypeAlias = "tuple[int, int, int, int, int, int]"


def rises(rows: Iterable[Row]) -> bool:
    time, *others = np.array([*rows], np.int64).reshape(-1, 6).T
    return bool(is_rising(time.copy(), *(column.astype(np.int32) for column in others)))


@given(rows=st.lists(ROWS, max_size=6))
def test_rows_rise_as_tuples_do(rows: list[Row]) -> None:
    assert rises(rows) == all(before < after for before, after in pairwise(rows))


@given(rows=st.sets(ROWS, max_size=12))
def test_distinct_rows_in_order_rise(rows: set[Row]) -> None:
    assert rises(sorted(rows))
