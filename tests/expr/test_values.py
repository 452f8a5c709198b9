"""Terms as values: lexical forms, canonical forms, ranges, and the calendar."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.expr import values
from spaseq.expr.aggregates import order_key
from spaseq.expr.numbers import Float, to_float32
from spaseq.expr.temporal import Moment, moment_of_ms, parse_moment
from spaseq.expr.values import BlankNodeValue, IriValue, LangString, Opaque, Value, decode, encode
from spaseq.rdf.terms.term import XSD, literal_text
from spaseq.rdf.terms.times import date_of, days_of


def typed(name: str, lexical: str) -> str:
    return literal_text(lexical, XSD + name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<http://e/a>", IriValue("http://e/a")),
        ("_:b0", BlankNodeValue("b0")),
        ('"a\\"b\\n\\u0000"', 'a"b\n\0'),
        ('"a\\"@en\\""@en-us', LangString('a"@en"', "en-us")),
        ('"x"^^<http://e/t>', Opaque("x", "http://e/t")),
        (typed("integer", "-007"), -7),
        (typed("unsignedByte", "255"), 255),
        (typed("unsignedByte", "256"), Opaque("256", XSD + "unsignedByte")),
        (typed("negativeInteger", "0"), Opaque("0", XSD + "negativeInteger")),
        (typed("long", str(2**63)), Opaque(str(2**63), XSD + "long")),
        (typed("integer", "1.0"), Opaque("1.0", XSD + "integer")),
        (typed("integer", "１"), Opaque("１", XSD + "integer")),  # not an ASCII digit
        (typed("integer", "1_0"), Opaque("1_0", XSD + "integer")),
        (typed("decimal", "+.50"), Decimal("0.5")),
        (typed("decimal", "1."), Decimal(1)),
        (typed("decimal", "1e0"), Opaque("1e0", XSD + "decimal")),
        (typed("double", "1.E2"), 100.0),
        (typed("double", "Infinity"), Opaque("Infinity", XSD + "double")),
        (typed("float", "1e39"), Float("inf")),
        (typed("boolean", "1"), True),
        (typed("boolean", "True"), Opaque("True", XSD + "boolean")),
        (typed("date", "2019-02-29"), Opaque("2019-02-29", XSD + "date")),
        (
            typed("dateTime", "2020-01-01T00:00:60Z"),
            Opaque("2020-01-01T00:00:60Z", XSD + "dateTime"),
        ),
        (
            typed("dateTimeStamp", "2020-01-01T00:00:00"),
            Opaque("2020-01-01T00:00:00", XSD + "dateTimeStamp"),
        ),
        (typed("duration", "P"), Opaque("P", XSD + "duration")),
        (typed("duration", "P1DT"), Opaque("P1DT", XSD + "duration")),
        (typed("dayTimeDuration", "P1M"), Opaque("P1M", XSD + "dayTimeDuration")),
    ],
)
def test_decode(text: str, value: Value) -> None:
    assert decode(text) == value
    assert type(decode(text)) is type(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, typed("boolean", "true")),
        (Decimal("1E3"), typed("decimal", "1000")),
        (Decimal("1.50"), typed("decimal", "1.5")),
        (Decimal("-0.0010"), typed("decimal", "-0.001")),
        (1.0, typed("double", "1.0E0")),
        (1234.5, typed("double", "1.2345E3")),
        (-0.0, typed("double", "-0.0E0")),
        (1e-7, typed("double", "1.0E-7")),
        (5e-324, typed("double", "5.0E-324")),
        (to_float32(0.1), typed("float", "1.0E-1")),
        (float("nan"), typed("double", "NaN")),
        ('a"\\\n', '"a\\"\\\\\\n"'),
        (LangString("a", "en"), '"a"@en'),
        (Opaque("x", "http://e/t"), '"x"^^<http://e/t>'),
        (moment_of_ms(-1), typed("dateTime", "1969-12-31T23:59:59.999Z")),
    ],
)
def test_encode(value: Value, text: str) -> None:
    assert encode(value) == text


@pytest.mark.parametrize(
    ("datatype", "lexical", "canonical"),
    [
        ("dateTime", "2020-01-01T24:00:00", "2020-01-02T00:00:00"),
        ("dateTime", "-0044-03-15T12:00:00.10+00:00", "-0044-03-15T12:00:00.1Z"),
        ("dateTime", "12020-01-01T00:00:00-14:00", "12020-01-01T00:00:00-14:00"),
        ("date", "2020-02-29+05:30", "2020-02-29+05:30"),
        ("time", "24:00:00Z", "00:00:00Z"),
        ("gYear", "2020", "2020"),
        ("gYearMonth", "2020-02Z", "2020-02Z"),
        ("gMonthDay", "--02-29", "--02-29"),
        ("gMonth", "--12", "--12"),
        ("gDay", "---31", "---31"),
        ("duration", "P14M8DT90M0.50S", "P1Y2M8DT1H30M0.5S"),
        ("duration", "-P0D", "PT0S"),
        ("yearMonthDuration", "P0Y", "P0M"),
        ("dayTimeDuration", "-PT36H", "-P1DT12H"),
    ],
)
def test_canonical_times(datatype: str, lexical: str, canonical: str) -> None:
    assert encode(decode(typed(datatype, lexical))) == typed(datatype, canonical)


def test_integers_of_thousands_of_digits() -> None:
    text = typed("integer", "1" + "0" * 3999)
    value = decode(text)
    assert value == 10**3999
    assert encode(value) == text


@given(st.integers(-(10**30), 10**30), st.decimals(allow_nan=False, allow_infinity=False))
def test_numbers_survive(integer: int, decimal: Decimal) -> None:
    assert decode(encode(integer)) == integer
    assert decode(encode(decimal)) == decimal


@given(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False))
def test_floats_survive(double: float, single: float) -> None:
    assert decode(encode(double)) == double
    assert decode(encode(Float(single))) == single


@given(st.text())
def test_strings_survive(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert decode(encode(text)) == text


@given(st.floats(allow_nan=False))
def test_float32_is_the_nearest(double: float) -> None:
    with np.errstate(over="ignore"):
        assert to_float32(double) == float(np.float32(double))


def test_float32_is_rounded_once() -> None:
    above_tie = Decimal("1.000000059604644775390625000001")  # its double is the tie itself
    assert to_float32(above_tie) == 1.0 + 2**-23
    assert to_float32(Decimal(1) + Decimal(2) ** -24) == 1.0
    assert decode(typed("float", f"{above_tie:f}")) == 1 + 2**-23


@given(st.datetimes())
def test_moments_agree_with_datetime(at: datetime) -> None:
    zone = timezone(timedelta(minutes=-330))
    value = parse_moment("dateTime", f"{at.isoformat()}-05:30")
    expected = at.replace(tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)
    assert value.instant * 10**6 == expected // timedelta(microseconds=1)
    assert (value.year, value.month, value.day) == (at.year, at.month, at.day)
    assert (value.hour, value.minute) == (at.hour, at.minute)


@given(st.integers(-(10**8), 10**8))
def test_calendar_is_a_bijection(days: int) -> None:
    assert days_of(*date_of(days)) == days


def test_decoding_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_cache", {})
    monkeypatch.setattr(values, "_CACHE_LIMIT", 10)
    for i in range(35):
        assert decode(typed("integer", str(i))) == i
        assert len(values._cache) <= 10


def test_order_of_terms() -> None:
    in_order = [
        None,
        "_:b",
        "<http://e/a>",
        "<http://e/b>",
        typed("double", "NaN"),
        typed("double", "-INF"),
        typed("integer", "2"),
        typed("decimal", "2.5"),
        typed("integer", "10"),
        '"a"',
        '"b"',
        typed("boolean", "false"),
        typed("boolean", "true"),
        typed("dateTime", "2020-01-01T00:00:00+01:00"),
        typed("dateTime", "2020-01-01T00:00:00"),
        '"a"@en',
        typed("integer", "x"),
    ]
    assert sorted(random.Random(0).sample(in_order, len(in_order)), key=order_key) == in_order
    assert isinstance(decode(in_order[-3] or ""), Moment)
