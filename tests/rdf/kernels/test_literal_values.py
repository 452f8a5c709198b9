"""The kernels read the same numbers and times as the exact parsers, or none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.expr.doubles import double_of
from spaseq.rdf.kernels import PAD
from spaseq.rdf.kernels.date_times import NO_TIME
from spaseq.rdf.lines.arenas import ArenaPool, BufferTerms, ReadArena
from spaseq.rdf.lines.statements import LineChunk, StatementReader
from spaseq.rdf.terms.number_kinds import DATE_TIME, DOUBLE, EXACT, FLOAT, OTHER, SHORT, UNKNOWN
from spaseq.rdf.terms.term import XSD, literal_text
from spaseq.rdf.terms.times import parse_time


def table(texts: list[str]) -> BufferTerms:
    """A table in which the given distinct texts have the first codes."""
    arena = ReadArena(1)
    arena.buffer[:PAD] = 10
    return StatementReader(True, ArenaPool(1), tuple(texts)).read(LineChunk(arena, 0, 0)).terms


def numbers_of(texts: list[str]) -> list[tuple[float, int]]:
    values, kinds = table(texts).numbers(np.arange(len(texts), dtype=np.int32))
    return list(zip(values.tolist(), kinds.tolist(), strict=True))


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (
        a == b and math.copysign(1, a) == math.copysign(1, b)
    )


DATATYPES = [
    *("integer", "decimal", "double", "float", "long", "int", "short", "byte", "boolean", "date"),
    *("dateTime", "dateTimeStamp", "integers", "doubl", "time", "dateTimes", "unsignedByte", ""),
]
DIGITS = st.text("0123456789", max_size=20)
LEXICAL = st.one_of(
    st.integers().map(str),
    st.integers(-(2**54), 2**54).map(str),
    st.floats().map(repr),
    st.floats(width=32).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.builds("{}{}.{}{}{}".format, st.sampled_from(["", "+", "-"]), DIGITS, DIGITS,
              st.sampled_from(["", "e", "E", "e+", "E-"]), st.integers(0, 30)),
    st.text("0123456789.+-eE INFa", max_size=8),
)  # fmt: skip
DATES = st.builds(
    "{}-{:02}-{:02}{}{:02}:{:02}:{}{}{}".format,
    st.sampled_from(
        ["2014", "1970", "2000", "1900", "1969", "0001", "0000", "9999", "10000", "-1"]
    ),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from(["T", "T", "T", "t", " "]),
    st.integers(0, 25),
    st.integers(0, 61),
    st.sampled_from(["00", "59", "60", "30", "7"]),
    st.sampled_from(["", ".5", ".25", ".123", ".1239", ".", ".000", ".x"]),
    st.sampled_from(
        ["", "Z", "z", "+02:00", "-14:00", "+14:01", "+00:60", "+1:00", "-05:30", "ZZ"]
    ),
)
LITERALS = st.builds(
    lambda lexical, name: literal_text(lexical, XSD + name if name else "http://e/double"),
    LEXICAL | DATES,
    st.sampled_from(DATATYPES),
) | st.sampled_from(["<http://e/1>", "_:b", '"1"', '"1"@en', f'"1"^^<{XSD}>', '"a\\"b"'])


@settings(max_examples=300)
@given(st.lists(LITERALS, min_size=1, max_size=50, unique=True))
def test_numbers_are_those_of_the_exact_parsers(texts: list[str]) -> None:
    for text, (value, kind) in zip(texts, numbers_of(texts), strict=True):
        if kind != UNKNOWN:
            expected = double_of(text)
            assert (kind, text) == (expected[1], text)
            assert same(value, expected[0]), text


def times_of(texts: list[str]) -> list[int]:
    """The times that the tokenizer reads in literals; NO_TIME if it is not sure."""
    data = "".join(f"<a:g> <a:t> {text} .\n" for text in texts).encode()
    arena = ReadArena(len(data))
    arena.buffer[: len(data) + PAD] = np.frombuffer(data + b"\n" * PAD, np.uint8)
    reader = StatementReader(True, ArenaPool(1), ("<a:t>",), has_time=True)
    statements = reader.read(LineChunk(arena, 0, len(data)))
    return statements.time.tolist()


@settings(max_examples=300)
@given(st.lists(LITERALS, min_size=1, max_size=50))
def test_times_are_those_of_the_parser(texts: list[str]) -> None:
    for text, time in zip(texts, times_of(texts), strict=True):
        if time != NO_TIME:
            assert (text, time) == (text, parse_time(text))


@pytest.mark.parametrize(
    ("lexical", "name", "value", "kind"),
    [
        ("46", "integer", 46.0, EXACT),
        ("-0", "integer", 0.0, EXACT),
        ("9007199254740991", "integer", 2.0**53 - 1, EXACT),
        ("-2147483648", "int", -(2.0**31), EXACT),
        ("0.5", "decimal", 0.5, EXACT),
        ("0.10", "decimal", 0.1, SHORT),
        ("12.5e-3", "double", 0.0125, DOUBLE),
        ("-0.0", "double", -0.0, DOUBLE),
        ("0.1", "float", float(np.float32(0.1)), FLOAT),
        ("1970-01-01T00:00:01.5Z", "dateTime", 1.5, DATE_TIME),
        ("1970-01-01T02:00:00+02:00", "dateTimeStamp", 0.0, DATE_TIME),
        ("9007199254740993", "integer", math.nan, UNKNOWN),
        ("2147483648", "int", math.nan, UNKNOWN),
        ("1e3", "decimal", math.nan, UNKNOWN),
        ("INF", "double", math.nan, UNKNOWN),
    ],
)
def test_what_is_decided(lexical: str, name: str, value: float, kind: int) -> None:
    [(found, is_kind)] = numbers_of([literal_text(lexical, XSD + name)])
    assert is_kind == kind
    assert same(found, value)


def test_terms_that_come_again_have_the_same_number() -> None:
    texts = [*(f'"{i}"^^<{XSD}integer>' for i in range(9)), '"x"', f'"1e400"^^<{XSD}double>']
    expected = [*((float(i), EXACT) for i in range(9)), (math.nan, OTHER), (math.nan, UNKNOWN)]
    codes = [10, 3, -1, 3, 9, 0, -1, 10, 9, 8, 3]
    terms = table(texts)
    for _ in range(2):
        values, kinds = terms.numbers(np.array(codes, np.int32))
        for code, value, kind in zip(codes, values.tolist(), kinds.tolist(), strict=True):
            value_of, kind_of = expected[code] if code >= 0 else (math.nan, OTHER)
            assert kind == kind_of
            assert same(value, value_of)


def test_what_is_no_number() -> None:
    texts = ["<http://e/1>", "_:b", '"1"', '"1"@en', '"1"^^<http://e/double>']
    assert [kind for _, kind in numbers_of(texts)] == [OTHER] * 5
    _, kinds = table(texts).numbers(np.array([-1], np.int32))
    assert kinds.tolist() == [OTHER]


def test_years_are_read_in_the_proleptic_calendar() -> None:
    texts = [f'"{y:04}-02-28T23:59:59.999Z"^^<{XSD}dateTime>' for y in range(1, 10000)]
    assert times_of(texts) == [parse_time(text) for text in texts]
