"""Values of Python as terms (docs/lift.md#run)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from spaseq.lift.cells import Wrong
from spaseq.lift.python_rows import python_cell
from tests.lift.lifting import integer, typed

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
