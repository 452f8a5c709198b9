"""Values of Python as terms (docs/lift.md#run)."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.lift.cells import Wrong
from spaseq.lift.lift_plan import Fields
from spaseq.lift.python_rows import dict_blocks
from spaseq.lift.python_values import python_cell
from tests.lift.lifting import integer, typed
from tests.sizes import sizes

VIENNA = dt.timezone(dt.timedelta(hours=1))


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (None, None),
        (pd.NaT, None),
        (pd.NA, None),
        (True, typed("true", "boolean")),
        (np.bool_(False), typed("false", "boolean")),
        (7, integer(7)),
        (np.int8(7), integer(7)),
        (0.1, typed("1.0E-1", "double")),
        (float("nan"), typed("NaN", "double")),
        (np.float32(0.1), typed("1.0E-1", "float")),
        (Decimal("10.50"), typed("10.5", "decimal")),
        ("x", '"x"'),
        (dt.datetime(2020, 1, 1, 0, 0, 0, 500), typed("2020-01-01T00:00:00.0005Z", "dateTime")),
        (dt.datetime(2020, 1, 1, tzinfo=VIENNA), typed("2019-12-31T23:00:00Z", "dateTime")),
        (pd.Timestamp(1, unit="ns"), typed("1970-01-01T00:00:00Z", "dateTime")),
        (dt.date(2020, 1, 1), typed("2020-01-01", "date")),
        (dt.time(1, 2, 3, 40), typed("01:02:03.00004", "time")),
        (dt.timedelta(seconds=-1.5), typed("-PT1.5S", "dayTimeDuration")),
        (UUID(int=0), '"00000000-0000-0000-0000-000000000000"'),
    ],
)
def test_term(value: Any, term: str | None) -> None:
    assert python_cell(value) == term


@pytest.mark.parametrize(
    "value",
    [b"x", "\ud800", {"a": 1}, object(), 10**5000, Decimal("1E+999999"), Decimal("NaN")],
    ids=lambda value: type(value).__name__,
)
def test_no_term(value: Any) -> None:
    assert isinstance(python_cell(value), Wrong)


VALUES = st.one_of(
    st.none(),
    st.sampled_from(["x", "", "\ud800", True, 7, 2**63, 1.5, math.nan, pd.NaT, [1], {"b": 1}]),
    st.sampled_from([Decimal("1.50"), UUID(int=1), dt.date(2020, 1, 1), np.int8(3), 10**5000]),
    st.datetimes(timezones=st.sampled_from([None, dt.UTC, VIENNA])),
    st.text(),
    st.integers(),
    st.floats(),
)
FIELDS = Fields(
    frozenset("abc"), frozenset(), frozenset({"t", "b_x"}), frozenset("abc"), frozenset()
)


@sizes(100, 200, 3000)
def test_dicts_as_columns_give_what_they_give_one_by_one(examples: int) -> None:
    kinds = (st.text(), st.integers(), st.floats(), st.booleans(), VALUES)

    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.data())
    def check(data: Any) -> None:
        keys = data.draw(st.sampled_from([["a", "c"], ["a", "b", "c", "d"], ["a", "t"], ["a", 3]]))
        own = [kinds[data.draw(st.integers(0, 4))] for _ in keys]
        row = st.tuples(*(st.tuples(kind, st.booleans()) for kind in own))
        given_rows = data.draw(st.lists(row, min_size=1, max_size=6))
        rows = [
            {key: value for key, (value, there) in zip(keys, cells, strict=True) if there}
            for cells in given_rows
        ] * 64
        read = []
        for columns in (True, False):
            reports: list[Any] = []
            cells = []
            for block in dict_blocks(
                rows, FIELDS, lambda *report, to=reports: to.append(report), 1, columns
            ):
                columns_of_block = {name: block.cells(name) for name in block.columns}
                places = block.lines.tolist(), block.numbers.tolist()
                cells.append((*places, columns_of_block))
            read.append((cells, reports))
        assert read[0] == read[1]

    check()


def test_plain_dicts_are_a_table() -> None:
    rows = [{"a": 1, "b": "x", "c": 1 if n % 2 else 0.5, "d": object()} for n in range(100)]
    blocks = [*dict_blocks(rows, FIELDS, lambda *_: None, columns=True)]
    assert [block.is_table for block in blocks] == [True]
