"""Times that programs give: Python's, NumPy's and pandas', and text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import UsageError
from spaseq.rdf.terms.program_times import time_ms
from spaseq.rdf.terms.times import LIMIT_MS

MORNING = 1406879400000  # 2014-08-01T07:50:00Z


@pytest.mark.parametrize(
    "when",
    [
        MORNING,
        np.int64(MORNING),
        datetime(2014, 8, 1, 7, 50),
        datetime(2014, 8, 1, 9, 50, tzinfo=timezone(timedelta(hours=2))),
        "2014-08-01T07:50:00Z",
        "2014-08-01T09:50:00+02:00",
        "2014-08-01T07:50:00",
        "2014-08-01 07:50",
        np.datetime64("2014-08-01T07:50"),
        np.datetime64("2014-08-01T07:50:00.000000000"),
        np.datetime64(MORNING // 5, "5ms"),
        np.datetime64(MORNING * 1000, "us"),
        pd.Timestamp("2014-08-01T07:50:00"),
        pd.Timestamp("2014-08-01T09:50:00+02:00"),
        pd.Timestamp(MORNING * 10**6 + 999_999),
    ],
    ids=repr,
)
def test_the_same_time_in_many_forms(when: object) -> None:
    assert time_ms(when) == MORNING  # type: ignore[arg-type]


def test_days_months_and_years() -> None:
    assert time_ms("1970-01-02") == 86_400_000
    assert time_ms(np.datetime64("1970-02")) == 31 * 86_400_000
    assert time_ms(np.datetime64("1971")) == 365 * 86_400_000
    assert time_ms(np.datetime64("1970-01-08", "W")) == 7 * 86_400_000


@given(st.datetimes())
def test_numpy_and_text_agree_with_python(when: datetime) -> None:
    ms = (when.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert time_ms(np.datetime64(when)) == ms
    assert time_ms(when.isoformat()) == ms
    assert time_ms(when.isoformat(" ")) == ms


@pytest.mark.parametrize(
    "when",
    [
        1.5,
        "now",
        "1406879400000",
        "20140801",
        True,
        None,
        LIMIT_MS,
        pd.NaT,
        np.datetime64("NaT"),
        np.timedelta64(5, "s"),
        np.datetime64(2**62, "s"),
        date(2014, 8, 1),
    ],
    ids=repr,
)
def test_what_is_no_time_is_refused(when: object) -> None:
    with pytest.raises(UsageError, match="time"):
        time_ms(when)  # type: ignore[arg-type]


@pytest.mark.parametrize("when", [1406879400.0, np.float64(1406879400.0), np.float32(1.5)])
def test_a_float_is_refused_with_a_hint(when: object) -> None:
    with pytest.raises(UsageError, match=r"float.*round\(t \* 1000\) if it is seconds"):
        time_ms(when)  # type: ignore[arg-type]
