"""Filtering columns of codes gives the same result as filtering row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.expr.columns import TermRows, extend_column, filter_rows
from spaseq.expr.compile import compile_filter, compile_term
from spaseq.expr.doubles import double_of, doubles_of
from spaseq.expr.env import DictEnv
from tests.expr.sparql import expression, ntriples
from tests.thresholds import forced

TERMS = [
    t
    for text in [
        *("1", "01", "2", "-3", "9007199254740993", "9007199254740992", "0.1", "0.10", "1.5"),
        *("9007199254740992.5", "0.1e0", "1e0", "9007199254740992.0e0", '"NaN"^^xsd:double'),
        *('"INF"^^xsd:double', "-0.0e0", "0", '"0.1"^^xsd:float', '"16777217"^^xsd:float'),
        *("16777217", f"1{'0' * 400}", '"x"^^xsd:integer', '"a"', '"b"@en', ":a", "true"),
        '"2020-01-01T00:00:00Z"^^xsd:dateTime',
        '"2020-01-01T00:00:00.1Z"^^xsd:dateTime',
        '"2020-01-01T00:00:00.10000000001Z"^^xsd:dateTime',
        '"2020-01-01T01:00:00+01:00"^^xsd:dateTime',
        '"2020-01-01"^^xsd:date',
    ]
    if (t := ntriples(text)) is not None
]
CODES = st.integers(-1, len(TERMS) - 1)
FILTERS = [
    *(f"?a {op} ?b" for op in ("=", "!=", "<", "<=", ">", ">=")),
    *(f"?a {op} 0.1" for op in ("=", "!=", "<", "<=", ">", ">=")),
    *(f"9007199254740993 {op} ?b" for op in ("=", "!=", "<", "<=", ">", ">=")),
    '?a < "2020-01-01T00:00:00.1Z"^^xsd:dateTime',
    '?a = "a"',
    "?a = ?missing",
    "?a < ?b && ?b < 2 && BOUND(?c)",
    "!BOUND(?c) || ?a = ?c",
    "BOUND(?missing)",
    "?a + ?b > ?c",
    "1 < 2",
    "?a",
    "isNumeric(?a) && (?b = ?c && ?a > 0)",
]


@given(
    st.sampled_from(FILTERS),
    st.lists(st.tuples(CODES, CODES, CODES), max_size=40),
)
def test_same_as_row_by_row(text: str, rows: list[tuple[int, int, int]]) -> None:
    expr = expression(text)
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    columns = {v: table[:, i] for i, v in enumerate("abc")}
    test = compile_filter(expr)
    expected = [
        test(DictEnv({v: TERMS[c] for v, c in zip("abc", row, strict=True) if c >= 0}))
        for row in rows
    ]
    assert filter_rows(expr, TermRows.of(columns, TERMS)).tolist() == expected


@given(st.lists(st.tuples(CODES, CODES), max_size=40))
def test_extended_column_same_as_row_by_row(rows: list[tuple[int, int]]) -> None:
    expr = expression("COALESCE(?a + ?b, STR(?a))")
    table = np.array(rows, dtype=np.int32).reshape(-1, 2)
    columns = {v: table[:, i] for i, v in enumerate("ab")}
    results, which = extend_column(expr, TermRows.of(columns, TERMS))
    term = compile_term(expr)
    expected = [
        term(DictEnv({v: TERMS[c] for v, c in zip("ab", row, strict=True) if c >= 0}))
        for row in rows
    ]
    assert [results[i] for i in which] == expected


NUMBERS = [
    f'"{text}"^^<http://www.w3.org/2001/XMLSchema#{kind}>'
    for text in ("0", "-0", "7", "007", "-12", "1.5", "0.10", "-3.000001", ".5", "2.", "0.0000001")
    for kind in ("integer", "decimal", "int", "double")
]
NUMBERS += [
    f'"{text}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    for text in ("999999999.999999", "-999999999.999999", "1000000000.5", "1234567.1234567", "-0.1")
]
ANY_NUMBER = st.integers(-1, len(NUMBERS) - 1)


@pytest.mark.parametrize("sum_of", ["?a + ?b", "?a - ?b", "COALESCE(?a - ?b, <no:sum>)"])
@given(rows=st.lists(st.tuples(ANY_NUMBER, ANY_NUMBER), min_size=1, max_size=60))
def test_sums_of_numbers_of_any_kind(sum_of: str, rows: list[tuple[int, int]]) -> None:
    """Whole numbers and decimals are added in one go, the others one by one."""
    expr = expression(sum_of)
    table = np.array(rows, dtype=np.int32)
    columns = {v: table[:, i] for i, v in enumerate("ab")}
    with forced("summed_rows=1"):
        results, which = extend_column(expr, TermRows.of(columns, NUMBERS))
    term = compile_term(expr)
    assert [results[i] for i in which] == [
        term(DictEnv({v: NUMBERS[c] for v, c in zip("ab", row, strict=True) if c >= 0}))
        for row in rows
    ]


def test_numbers_that_are_read_together_are_those_of_each_by_itself() -> None:
    codes = np.arange(len(NUMBERS), dtype=np.int32)
    with forced("summed_rows=1"):
        together = doubles_of(codes, NUMBERS)
    found = zip(together.value.tolist(), together.kind.tolist(), strict=True)
    assert [*map(str, found)] == [str(double_of(number)) for number in NUMBERS]  # NaN is not NaN


def test_rows_without_columns() -> None:
    assert filter_rows(expression("1 < 2"), TermRows({}, [], 3)).tolist() == [True] * 3
    assert filter_rows(expression("?x < 2"), TermRows({}, [], 2)).tolist() == [False] * 2


def test_volatile_expressions_are_evaluated_per_row() -> None:
    column = np.zeros(50, dtype=np.int32)
    results, which = extend_column(
        expression("CONCAT(?a, STRUUID())"), TermRows.of({"a": column}, ['"x"'])
    )
    assert len({results[i] for i in which}) == 50


@pytest.mark.parametrize("wide", [3, 6])
def test_combinations_beyond_64_bits(wide: int) -> None:
    terms = [f'"{i}"' for i in range(3_000_000)]
    names = "abcdef"[:wide]
    last = np.array([0, len(terms) - 1, 0, -1] * 10, dtype=np.int32)
    columns = dict.fromkeys(names, last)
    expr = expression(" || ".join(f"?{v} != '0'" for v in names))
    assert (
        filter_rows(expr, TermRows.of(columns, terms)).tolist() == [False, True, False, False] * 10
    )
