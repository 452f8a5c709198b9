"""Casts by datatype IRI (SPARQL 1.1 section 17.5, XPath functions 3.1 section 19)."""

from __future__ import annotations

import pytest

from tests.expr.sparql import ntriples, term


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("xsd:string(:a)", '"http://example.org/a"'),
        ("xsd:string(01)", '"1"'),
        ("xsd:string(1.50)", '"1.5"'),
        ("xsd:string(1100e0)", '"1100"'),
        ("xsd:string(0.1e0)", '"0.1"'),
        ("xsd:string(1e6)", '"1.0E6"'),
        ("xsd:string(0.0000001e0)", '"1.0E-7"'),
        ("xsd:string(-0e0)", '"-0"'),
        ('xsd:string("INF"^^xsd:float)', '"INF"'),
        ('xsd:string("1"^^xsd:boolean)', '"true"'),
        ("xsd:string(?unbound)", "error"),
        ('xsd:integer(" 12 ")', "12"),
        ('xsd:integer("+07")', "7"),
        ('xsd:integer("1.0")', "error"),
        ("xsd:integer(-1.9)", "-1"),
        ("xsd:integer(1.9e0)", "1"),
        ("xsd:integer(true)", "1"),
        ('xsd:integer("NaN"^^xsd:double)', "error"),
        ('xsd:integer("INF"^^xsd:double)', "error"),
        ("xsd:integer(:a)", "error"),
        ('xsd:integer("1"@en)', "error"),
        ("xsd:byte(127)", '"127"^^xsd:byte'),
        ("xsd:byte(128)", "error"),
        ('xsd:unsignedInt("-1")', "error"),
        ("xsd:int(1.5) + 1", "2"),
        ('xsd:decimal("01.10")', "1.1"),
        ('xsd:decimal("1e0")', "error"),
        ("xsd:decimal(0.5e0)", "0.5"),
        ("xsd:decimal(0.1e0)", "0.1"),
        ('xsd:decimal(xsd:float("0.1"))', "0.1"),
        ("xsd:decimal(-0e0)", '"0"^^xsd:decimal'),
        ("xsd:decimal(3)", '"3"^^xsd:decimal'),
        ("xsd:decimal(false)", '"0"^^xsd:decimal'),
        ('xsd:decimal("INF"^^xsd:double)', "error"),
        ('xsd:double("1")', '"1.0E0"^^xsd:double'),
        ('xsd:double("-INF")', '"-INF"^^xsd:double'),
        ('xsd:double("inf")', "error"),
        ("xsd:double(true)", '"1.0E0"^^xsd:double'),
        ("xsd:double(0.1)", '"1.0E-1"^^xsd:double'),
        ("xsd:float(0.1e0)", '"1.0E-1"^^xsd:float'),
        ('xsd:double("0.1"^^xsd:float)', '"1.0000000149011612E-1"^^xsd:double'),
        ("xsd:float(1e39)", '"INF"^^xsd:float'),
        ('xsd:boolean("true")', "true"),
        ('xsd:boolean("TRUE")', "error"),
        ("xsd:boolean(0.0)", "false"),
        ('xsd:boolean("NaN"^^xsd:double)', "false"),
        ("xsd:boolean(-2)", "true"),
        ('xsd:dateTime("2011-01-10T14:45:13.50Z")', '"2011-01-10T14:45:13.5Z"^^xsd:dateTime'),
        ('xsd:dateTime("2011-02-30T00:00:00")', "error"),
        ("xsd:dateTime(1)", "error"),
        (
            'xsd:dateTime("2011-01-10-05:00"^^xsd:date)',
            '"2011-01-10T00:00:00-05:00"^^xsd:dateTime',
        ),
        ('xsd:date("2011-01-10T23:00:00-05:00"^^xsd:dateTime)', '"2011-01-10-05:00"^^xsd:date'),
        ('xsd:time("2011-01-10T23:00:00-05:00"^^xsd:dateTime)', '"23:00:00-05:00"^^xsd:time'),
        ('xsd:dayTimeDuration("P1Y2DT3H"^^xsd:duration)', '"P2DT3H"^^xsd:dayTimeDuration'),
        ('xsd:gYear("2011")', '"2011"^^xsd:gYear'),
    ],
)
def test_cast(text: str, result: str) -> None:
    assert term(text) == ntriples(result)
