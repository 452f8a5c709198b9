"""SPARQL 1.2 section 17.2 and 17.3: three-valued logic, effective boolean values, operators."""

from __future__ import annotations

import pytest

from tests.expr.sparql import holds, ntriples, term


@pytest.mark.parametrize(
    ("left", "right", "conjunction", "disjunction"),
    [  # the truth table of section 17.2
        ("true", "true", "true", "true"),
        ("true", "false", "false", "true"),
        ("false", "true", "false", "true"),
        ("false", "false", "false", "false"),
        ("true", "?e", "error", "true"),
        ("?e", "true", "error", "true"),
        ("false", "?e", "false", "error"),
        ("?e", "false", "false", "error"),
        ("?e", "?e", "error", "error"),
    ],
)
def test_logical_connectives(left: str, right: str, conjunction: str, disjunction: str) -> None:
    assert term(f"{left} && {right}") == ntriples(conjunction)
    assert term(f"{left} || {right}") == ntriples(disjunction)
    assert holds(f"{left} && {right}") is (conjunction == "true")
    assert holds(f"{left} || {right}") is (disjunction == "true")


@pytest.mark.parametrize(
    ("operand", "value"),
    [
        ("true", True),
        ('"1"^^xsd:boolean', True),
        ("false", False),
        ('"yes"^^xsd:boolean', None),  # ill-typed
        ('"one"^^xsd:integer', None),
        ('"300"^^xsd:byte', None),
        ("0", False),
        ("0.0", False),
        ("0.0e0", False),
        ('"NaN"^^xsd:double', False),
        ('"NaN"^^xsd:float', False),
        ("-1", True),
        ("0.001", True),
        ('"INF"^^xsd:double', True),
        ('""', False),
        ('""@en', None),
        ('"false"', True),
        ('"x"@en', None),
        ('"x"^^:unknown', None),
        (":iri", None),
        ("?unbound", None),
        ('"2020-01-01T00:00:00Z"^^xsd:dateTime', None),
    ],
)
def test_effective_boolean_value(operand: str, value: bool | None) -> None:
    assert holds(f"{operand} || false") is (value is True)
    assert holds(f"!{operand}") is (value is False)


EQUAL = [
    ("1", "01"),
    ("1", "1.0"),
    ("1", "1.0e0"),
    ("0.1", "0.1e0"),  # the decimal is promoted to double
    ("1", '"1"^^xsd:byte'),
    ('"0.1"^^xsd:float', '"0.10"^^xsd:float'),
    ("0.1", '"0.1"^^xsd:float'),
    ("-0.0e0", "0.0e0"),
    ("9007199254740993", "9007199254740992.0e0"),  # equal after promotion to double
    ('"a"', '"a"^^xsd:string'),
    ('"a"@en', '"a"@EN'),
    ("true", '"1"^^xsd:boolean'),
    (":a", ":a"),
    ('"x"^^:t', '"x"^^:t'),
    ('"x"^^xsd:integer', '"x"^^xsd:integer'),
    ('"2002-04-02T23:00:00-04:00"^^xsd:dateTime', '"2002-04-03T02:00:00-01:00"^^xsd:dateTime'),
    ('"1999-12-31T24:00:00"^^xsd:dateTime', '"2000-01-01T00:00:00"^^xsd:dateTime'),
    ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-01T00:00:00Z"^^xsd:dateTime'),
    ('"2020-01-01T00:00:00.50Z"^^xsd:dateTime', '"2020-01-01T00:00:00.5Z"^^xsd:dateTimeStamp'),
    ('"2020-01-01Z"^^xsd:date', '"2020-01-01+00:00"^^xsd:date'),
    ('"21:30:00+10:30"^^xsd:time', '"06:00:00-05:00"^^xsd:time'),
    ('"P1Y"^^xsd:duration', '"P12M"^^xsd:yearMonthDuration'),
    ('"P1D"^^xsd:dayTimeDuration', '"PT24H"^^xsd:dayTimeDuration'),
]
DIFFERENT = [
    ('"08:00:00+09:00"^^xsd:time', '"17:00:00-06:00"^^xsd:time'),  # a day apart
    ("1", "2"),
    ("9007199254740993", "9007199254740992"),
    ("9007199254740993", "9007199254740992.0"),
    ("0.1", "0.10000000000000000000000000000000000001"),
    ('"NaN"^^xsd:double', '"NaN"^^xsd:double'),
    ('"1"', "1"),
    ("true", "1"),
    ('"a"', '"a"@en'),
    ('"a"@en', '"a"@de'),
    ('"a"', '"A"'),
    (":a", '"x"^^:t'),
    (":a", "1"),
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01"^^xsd:date'),
    ('"2002-04-02T23:00:00"^^xsd:dateTime', '"2002-04-02T23:00:00+06:00"^^xsd:dateTime'),
    ('"P1M"^^xsd:duration', '"P30D"^^xsd:duration'),
    ('"a"@en', '"a"^^:t'),  # no datatype has language-tagged strings but rdf:langString
    ('"a"@en', '"a"^^xsd:integer'),
    ('"2020-01-01"^^xsd:date', '"2020-01-02Z"^^xsd:date'),
]
UNKNOWN = [
    ('"x"^^:t', '"y"^^:t'),
    ('"x"^^:t', '"x"^^:u'),
    ('"x"^^:t', '"x"'),
    ('"x"^^xsd:integer', "1"),
    ('"300"^^xsd:byte', "300"),
    ('" 1"^^xsd:integer', "1"),
    ('"2020-02-30T00:00:00Z"^^xsd:dateTime', '"2020-03-01T00:00:00Z"^^xsd:dateTime'),
    ('"2020-01-01"^^xsd:date', '"2020-01-01Z"^^xsd:date'),
    ('"2020-01-01"^^xsd:date', '"2020-01-01-10:00"^^xsd:date'),
    ('"10:00:00"^^xsd:time', '"10:00:00Z"^^xsd:time'),
    ("?unbound", "1"),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal(a: str, b: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert term(f"{x} = {y}") == ntriples("true")
        assert term(f"{x} != {y}") == ntriples("false")


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different(a: str, b: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert term(f"{x} = {y}") == ntriples("false")
        assert term(f"{x} != {y}") == ntriples("true")


@pytest.mark.parametrize(("a", "b"), UNKNOWN)
def test_neither_equal_nor_different(a: str, b: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert term(f"{x} = {y}") is None
        assert term(f"{x} != {y}") is None


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("1", "2.5"),
        ("2", "10"),
        ("-1.5e0", "-1"),
        ("1e300", '"INF"^^xsd:double'),
        ("9007199254740992", "9007199254740992.5"),
        ('"B"', '"a"'),
        ('"\ufffd"', '"\U00010000"'),  # by code point
        ("false", "true"),
        ('"2020-01-01T00:00:00+01:00"^^xsd:dateTime', '"2020-01-01T00:00:00"^^xsd:dateTime'),
        ('"-0001-01-01T00:00:00Z"^^xsd:dateTime', '"0001-01-01T00:00:00Z"^^xsd:dateTime'),
        ('"2020-01-31"^^xsd:date', '"2020-02-01"^^xsd:date'),
        ('"PT59S"^^xsd:dayTimeDuration', '"PT1M"^^xsd:dayTimeDuration'),
        ('"P11M"^^xsd:yearMonthDuration', '"P1Y"^^xsd:yearMonthDuration'),
    ],
)
def test_order(low: str, high: str) -> None:
    for text, value in [
        (f"{low} < {high}", "true"),
        (f"{low} <= {high}", "true"),
        (f"{low} > {high}", "false"),
        (f"{low} >= {high}", "false"),
        (f"{high} < {low}", "false"),
        (f"{low} <= {low}", "true"),
        (f"{low} < {low}", "false"),
    ]:
        assert term(text) == ntriples(value), text


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (":a", ":b"),
        ('"a"', "1"),
        ('"a"@en', '"b"@en'),
        ("true", "1"),
        ('"x"^^:t', '"y"^^:t'),
        ('"P1M"^^xsd:duration', '"P30D"^^xsd:duration'),
        ('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-02"^^xsd:date'),
    ],
)
def test_no_order(a: str, b: str) -> None:
    for op in ("<", "<=", ">", ">="):
        assert term(f"{a} {op} {b}") is None


def test_nan_is_not_in_any_order() -> None:
    for op in ("<", "<=", ">", ">=", "="):
        assert term(f'"NaN"^^xsd:double {op} 1') == ntriples("false")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1 + 2", "3"),
        ("9223372036854775807 + 1", "9223372036854775808"),
        ("123456789012345678901234567890 * 10", "1234567890123456789012345678900"),
        ('"1"^^xsd:byte + "1"^^xsd:long', "2"),
        ("1 + 0.50", '"1.5"^^xsd:decimal'),
        ("0.1 + 0.2", "0.3"),
        ("0.1e0 + 0.2e0", '"3.0000000000000004E-1"^^xsd:double'),
        ("1.5 * 2", '"3"^^xsd:decimal'),
        ("1 / 2", "0.5"),
        ("6 / 2", '"3"^^xsd:decimal'),
        ("1 / 3", "0.3333333333333333333333333333"),
        ("1 / 0", "error"),
        ("1.0 / 0.0", "error"),
        ("1e0 / 0", '"INF"^^xsd:double'),
        ("-1e0 / 0", '"-INF"^^xsd:double'),
        ("0e0 / 0", '"NaN"^^xsd:double'),
        ("1 / -0.0e0", '"-INF"^^xsd:double'),
        ("1e308 * 10", '"INF"^^xsd:double'),
        ('"1.5"^^xsd:float + 1', '"2.5E0"^^xsd:float'),
        ('"0.1"^^xsd:float + 0.1', '"2.0E-1"^^xsd:float'),
        ('"3e38"^^xsd:float * 10', '"INF"^^xsd:float'),
        ('"1"^^xsd:float + 1e0', '"2.0E0"^^xsd:double'),
        ("1e3 - 0", '"1.0E3"^^xsd:double'),
        ("-(1)", '"-1"^^xsd:integer'),
        ("-(0.0)", '"0"^^xsd:decimal'),
        ("-(0e0)", '"-0.0E0"^^xsd:double'),
        ('-("INF"^^xsd:float)', '"-INF"^^xsd:float'),
        ('+"01"^^xsd:byte', "1"),
        ('+"a"', "error"),
        ("-:a", "error"),
        ('"1" + 1', "error"),
        ("true + 1", "error"),
        ('"x"^^xsd:integer + 1', "error"),
        ("?unbound + 1", "error"),
        ("10 - 3 - 2", "5"),
        ("2 + 3 * 4 - 6 / 3", '"12"^^xsd:decimal'),
    ],
)
def test_arithmetic(text: str, result: str) -> None:
    assert term(text) == ntriples(result)


@pytest.mark.parametrize(
    ("text", "result"),
    [  # XPath functions 3.1 sections 8.4 and 9.7
        (
            '"2020-01-31T10:00:00Z"^^xsd:dateTime - "2020-01-30T09:00:00.5Z"^^xsd:dateTime',
            '"P1DT59M59.5S"^^xsd:dayTimeDuration',
        ),
        (
            '"2020-01-31T10:00:00Z"^^xsd:dateTime + "PT14H"^^xsd:dayTimeDuration',
            '"2020-02-01T00:00:00Z"^^xsd:dateTime',
        ),
        (
            '"2020-01-31T10:00:00+01:00"^^xsd:dateTime + "P1M"^^xsd:yearMonthDuration',
            '"2020-02-29T10:00:00+01:00"^^xsd:dateTime',
        ),
        ('"2020-03-01"^^xsd:date - "PT1H"^^xsd:dayTimeDuration', '"2020-02-29"^^xsd:date'),
        ('"23:30:00"^^xsd:time + "PT1H"^^xsd:dayTimeDuration', '"00:30:00"^^xsd:time'),
        (
            '"P1D"^^xsd:dayTimeDuration - "PT36H"^^xsd:dayTimeDuration',
            '"-PT12H"^^xsd:dayTimeDuration',
        ),
        ('"P1M"^^xsd:yearMonthDuration + "P1D"^^xsd:dayTimeDuration', "error"),
        ('"2020-01-01"^^xsd:date - "2020-01-01T00:00:00"^^xsd:dateTime', "error"),
    ],
)
def test_arithmetic_on_times(text: str, result: str) -> None:
    assert term(text) == ntriples(result)


@pytest.mark.parametrize(
    ("text", "result"),
    [  # the examples of section 17.4.1.9 and 17.4.1.10
        ('2 IN (<http://example/iri>, "str", 2.0)', "true"),
        ("2 IN (1, 2, 3)", "true"),
        ("2 IN ()", "false"),
        ('2 IN (<http://example/iri>, "str", 2.0, ?unbound)', "true"),
        ("2 IN (1/0, 2)", "true"),
        ("2 IN (2, 1/0)", "true"),
        ("2 IN (3, 1/0)", "error"),
        ("2 NOT IN ()", "true"),
        ("2 NOT IN (1/0, 2)", "false"),
        ("2 NOT IN (3, 1/0)", "error"),
        ("2 NOT IN (1, 3)", "true"),
        ("?unbound IN (1)", "error"),
        ("?unbound IN ()", "error"),
    ],
)
def test_membership(text: str, result: str) -> None:
    assert term(text) == ntriples(result)
