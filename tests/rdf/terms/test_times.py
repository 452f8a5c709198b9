"""Times of events by docs/meaning.md#events-and-streams and XML Schema part 2. Times that programs
give: Python's, NumPy's and pandas', and text.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import UsageError
from spaseq.rdf.terms.times import LIMIT_MS, format_time, parse_time, time_literal, time_ms

XSD = "http://www.w3.org/2001/XMLSchema#"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MORNING = 1406879400000  # 2014-08-01T07:50:00Z


def typed(lexical: str, datatype: str = "dateTime") -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


@pytest.mark.parametrize(
    ("lexical", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),  # without a zone it is UTC
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T10:00:00-14:00", 0),
        ("2014-08-01T07:50:00Z", 1406879400000),
        ("2014-08-01T07:50:00.5Z", 1406879400500),
        ("2014-08-01T07:50:00.1239999", 1406879400123),  # truncated to ms
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1970-01-01T24:00:00Z", 86_400_000),
        ("1970-01-01T24:00:00.000", 86_400_000),
        ("2012-02-29T00:00:00Z", 1330473600000),
        ("0001-01-01T00:00:00Z", -62135596800000),
        ("0000-12-31T24:00:00Z", -62135596800000),
        ("12014-01-01T00:00:00Z", 316958054400000),
    ],
)
def test_times(lexical: str, ms: int) -> None:
    assert parse_time(typed(lexical)) == ms


@pytest.mark.parametrize(
    "text",
    [
        typed("yesterday"),
        typed("2014-08-01"),
        typed("2014-13-01T00:00:00Z"),
        typed("2013-02-29T00:00:00Z"),
        typed("1900-02-29T00:00:00Z"),
        typed("2014-08-00T00:00:00Z"),
        typed("2014-08-01T25:00:00Z"),
        typed("2014-08-01T24:00:01Z"),
        typed("2014-08-01T24:00:00.001Z"),
        typed("2014-08-01T24:01:00Z"),
        typed("2014-08-01T00:60:00Z"),
        typed("2014-08-01T00:00:60Z"),
        typed("2014-08-01T00:00:0²Z"),
        typed("2014-08-01T00:00:00.Z"),
        typed("2014-08-01T00:00:00+14:01"),
        typed("2014-08-01T00:00:00+01:60"),
        typed("02014-08-01T00:00:00Z"),
        typed("2014-08-01T00:00:00", "dateTimeStamp"),  # a dateTimeStamp must have a zone
        typed("1e3", "integer"),
        typed("1.0", "decimal"),
        typed("5", "double"),
        typed(str(LIMIT_MS), "integer"),
        typed("9" * 30, "integer"),
        '"2014-08-01T00:00:00Z"',
        "<http://e/a>",
        "_:b",
    ],
)
def test_no_times(text: str) -> None:
    assert parse_time(text) is None


@pytest.mark.parametrize("datatype", ["long", "integer", "int", "unsignedLong"])
def test_integers_are_milliseconds(datatype: str) -> None:
    assert parse_time(typed("1500", datatype)) == 1500


def test_a_stamp_with_a_zone() -> None:
    assert parse_time(typed("1970-01-01T00:00:01+00:00", "dateTimeStamp")) == 1000


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_agree_with_pythons_calendar(when: datetime) -> None:
    ms = (when - EPOCH) // timedelta(milliseconds=1)
    assert parse_time(typed(when.isoformat().replace("+00:00", "Z"))) == ms
    assert time_ms(when) == ms


@given(st.integers(-LIMIT_MS + 1, LIMIT_MS - 1))
def test_a_formatted_time_is_read_back(ms: int) -> None:
    assert parse_time(time_literal(ms)) == ms


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1406879400000, "2014-08-01T07:50:00Z"),
        (1406879400050, "2014-08-01T07:50:00.050Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62167219200001, "-0001-12-31T23:59:59.999Z"),
    ],
)
def test_formatting(ms: int, text: str) -> None:
    assert format_time(ms) == text


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


def test_a_truth_value_of_an_older_numpy_is_no_time() -> None:
    """NumPy 1.26 calls its type `bool_`, which has an `__index__`."""
    truth = type("bool_", (), {"__index__": lambda self: 1})()
    with pytest.raises(UsageError, match="a time is a datetime"):
        time_ms(truth)


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
