"""The functions of SPARQL 1.1 section 17.4: the specification's examples, and edge cases."""

from __future__ import annotations

import re

import pytest

from spaseq.expr.compile import Options, compile_term
from spaseq.expr.env import DictEnv
from tests.expr.sparql import expression, ntriples, term

TERMS = [
    ("BOUND(?unbound)", "false"),
    ("IF(true, 1, 1/0)", "1"),
    ("IF(false, 1, 1/0)", "error"),
    ("IF(?unbound, 1, 2)", "error"),
    ('IF(1, "01"^^xsd:integer, 2)', '"01"^^xsd:integer'),
    ("COALESCE(?unbound, 1/0, 05)", "05"),
    ("COALESCE(?unbound)", "error"),
    ("COALESCE()", "error"),
    ("sameTerm(1, 01)", "false"),
    ('sameTerm("a", "a"^^xsd:string)', "true"),
    ("sameTerm(1, ?unbound)", "error"),
    ("isIRI(:a)", "true"),
    ("isURI(1)", "false"),
    ("isIRI(?unbound)", "error"),
    ("isLiteral(:a)", "false"),
    ('isLiteral("a"@en)', "true"),
    ("isBlank(:a)", "false"),
    ("isNumeric(12)", "true"),
    ('isNumeric("12")', "false"),
    ('isNumeric("12"^^xsd:nonNegativeInteger)', "true"),
    ('isNumeric("1200"^^xsd:byte)', "false"),
    ("isNumeric(<http://example.com/>)", "false"),
    ("STR(:a)", '"http://example.org/a"'),
    ("STR(010.00)", '"010.00"'),
    ('STR("a\\nb"@en)', '"a\\nb"'),
    ('STR("x"^^xsd:integer)', '"x"'),
    ('LANG("Robert"@EN)', '"en"'),
    ('LANG("Robert")', '""'),
    ("LANG(:a)", "error"),
    ('DATATYPE("1"^^xsd:int)', "xsd:int"),
    ('DATATYPE("a")', "xsd:string"),
    ('DATATYPE("a"@en)', "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"),
    ("DATATYPE(1 + 1.0)", "xsd:decimal"),
    ("DATATYPE(:a)", "error"),
    ('IRI("http://example/")', "<http://example/>"),
    ("IRI(:a)", ":a"),
    ('IRI("not an IRI:")', "error"),
    ('IRI("relative")', "error"),
    ("URI(1)", "error"),
    ('STRDT("123", xsd:integer)', '"123"^^xsd:integer'),
    ('STRDT("007", xsd:integer)', '"007"^^xsd:integer'),
    ('STRDT("x", xsd:string)', '"x"'),
    ('STRDT("x"@en, xsd:string)', "error"),
    ("STRDT(1, xsd:string)", "error"),
    ('STRLANG("chat", "EN-us")', '"chat"@en-us'),
    ('STRLANG("chat", "")', "error"),
    ('STRLANG("chat"@en, "fr")', "error"),
]
STRINGS = [
    ('STRLEN("chat")', "4"),
    ('STRLEN("chat"@en)', "4"),
    ('STRLEN("\U0001f600é")', "2"),
    ("STRLEN(1)", "error"),
    ('SUBSTR("foobar", 4)', '"bar"'),
    ('SUBSTR("foobar"@en, 4)', '"bar"@en'),
    ('SUBSTR("foobar", 4, 1)', '"b"'),
    ('SUBSTR("foobar", 0, 3)', '"fo"'),  # positions 1 and 2 are >= 0 and < 3
    ('SUBSTR("foobar", -3, 5)', '"f"'),
    ('SUBSTR("foobar", 7)', '""'),
    ('SUBSTR("foobar", 2, -1)', '""'),
    ('SUBSTR("foobar", 3, 100)', '"obar"'),
    ('SUBSTR("foobar", "4")', "error"),
    ('UCASE("Straße"@de)', '"STRASSE"@de'),
    ('LCASE("BAR"@en)', '"bar"@en'),
    ("UCASE(:a)", "error"),
    ('STRSTARTS("foobar", "foo")', "true"),
    ('STRSTARTS("foobar"@en, "foo"@en)', "true"),
    ('STRSTARTS("foobar"@en, "foo")', "true"),
    ('STRSTARTS("foobar", "foo"@en)', "error"),
    ('STRSTARTS("foobar"@en, "foo"@de)', "error"),
    ('STRENDS("foobar"@en, "bar")', "true"),
    ('CONTAINS("foobar", "oob")', "true"),
    ('CONTAINS("foobar", "")', "true"),
    ('STRBEFORE("abc", "b")', '"a"'),
    ('STRBEFORE("abc"@en, "bc")', '"a"@en'),
    ('STRBEFORE("abc"@en, "b"@cy)', "error"),
    ('STRBEFORE("abc", "xyz")', '""'),
    ('STRBEFORE("abc"@en, "z"@en)', '""'),
    ('STRBEFORE("abc"@en, "z")', '""'),
    ('STRBEFORE("abc"@en, ""@en)', '""@en'),
    ('STRBEFORE("abc"@en, "")', '""@en'),
    ('STRAFTER("abc", "b")', '"c"'),
    ('STRAFTER("abc"@en, "ab")', '"c"@en'),
    ('STRAFTER("abc"@en, "b"@cy)', "error"),
    ('STRAFTER("abc", "xyz")', '""'),
    ('STRAFTER("abc"@en, "z")', '""'),
    ('STRAFTER("abc"@en, "")', '"abc"@en'),
    ('STRAFTER("abc"@en, "c")', '""@en'),
    ('ENCODE_FOR_URI("Los Angeles/é~_.-"@en)', '"Los%20Angeles%2F%C3%A9~_.-"'),
    ('CONCAT("foo", "bar")', '"foobar"'),
    ('CONCAT("foo"@en, "bar"@en)', '"foobar"@en'),
    ('CONCAT("foo"@en, "bar")', '"foobar"'),
    ('CONCAT("foo"@en, "bar"@de)', '"foobar"'),
    ("CONCAT()", '""'),
    ('CONCAT("a", 1)', "error"),
    ('LANGMATCHES("de-Latn", "DE")', "true"),
    ('LANGMATCHES("deu", "de")', "false"),
    ('LANGMATCHES("de", "de-latn")', "false"),
    ('LANGMATCHES("de", "*")', "true"),
    ('LANGMATCHES("", "*")', "false"),
    ('LANGMATCHES("de"@en, "*")', "error"),
]
NUMBERS = [
    ("ABS(-1)", "1"),
    ("ABS(-1.50)", "1.5"),
    ("ABS(-0.0e0)", '"0.0E0"^^xsd:double'),
    ('ABS("-1"^^xsd:float)', '"1.0E0"^^xsd:float'),
    ('ABS("1")', "error"),
    ("ROUND(2.4999)", '"2"^^xsd:decimal'),
    ("ROUND(2.5)", '"3"^^xsd:decimal'),
    ("ROUND(-2.5)", '"-2"^^xsd:decimal'),
    ("ROUND(-2.5e0)", '"-2.0E0"^^xsd:double'),
    ("ROUND(-0.4e0)", '"-0.0E0"^^xsd:double'),
    ("ROUND(0.49999999999999994e0)", '"0.0E0"^^xsd:double'),
    ("ROUND(4503599627370497e0)", '"4.503599627370497E15"^^xsd:double'),
    ('ROUND("INF"^^xsd:double)', '"INF"^^xsd:double'),
    ("ROUND(7)", "7"),
    ("CEIL(10.5)", '"11"^^xsd:decimal'),
    ("CEIL(-10.5)", '"-10"^^xsd:decimal'),
    ("CEIL(-0.5e0)", '"-0.0E0"^^xsd:double'),
    ("FLOOR(10.5)", '"10"^^xsd:decimal'),
    ("FLOOR(-10.5)", '"-11"^^xsd:decimal'),
    ('FLOOR("0.5"^^xsd:float)', '"0.0E0"^^xsd:float'),
    ("FLOOR(123456789012345678901234567890.5)", '"123456789012345678901234567890"^^xsd:decimal'),
]
JANUARY = '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime'
MOMENTS = [
    (f"YEAR({JANUARY})", "2011"),
    (f"MONTH({JANUARY})", "1"),
    (f"DAY({JANUARY})", "10"),
    (f"HOURS({JANUARY})", "14"),
    (f"MINUTES({JANUARY})", "45"),
    (f"SECONDS({JANUARY})", "13.815"),
    (f"TIMEZONE({JANUARY})", '"-PT5H"^^xsd:dayTimeDuration'),
    (f"TZ({JANUARY})", '"-05:00"'),
    ('TIMEZONE("2011-01-10T14:45:13.815Z"^^xsd:dateTime)', '"PT0S"^^xsd:dayTimeDuration'),
    ('TZ("2011-01-10T14:45:13.815Z"^^xsd:dateTime)', '"Z"'),
    ('TIMEZONE("2011-01-10T14:45:13.815"^^xsd:dateTime)', "error"),
    ('TZ("2011-01-10T14:45:13.815"^^xsd:dateTime)', '""'),
    ('YEAR("2011-01-10")', "error"),
    ('DAY("1999-12-31T24:00:00Z"^^xsd:dateTime)', "1"),
]
HASHES = [
    ('MD5("abc")', '"900150983cd24fb0d6963f7d28e17f72"'),
    ('SHA1("abc")', '"a9993e364706816aba3e25717850c26c9cd0d89d"'),
    (
        'SHA256("abc")',
        '"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"',
    ),
    ('MD5("abc"@en)', "error"),
    ("MD5(1)", "error"),
]


@pytest.mark.parametrize(("text", "result"), TERMS + STRINGS + NUMBERS + MOMENTS + HASHES)
def test_function(text: str, result: str) -> None:
    assert term(text) == ntriples(result)


def test_blank_nodes() -> None:
    assert term("isBlank(?b)", b="_:b") == ntriples("true")
    assert term("STR(?b)", b="_:b") is None
    assert term("BNODE()") != term("BNODE()")
    assert re.fullmatch(r"_:[A-Za-z0-9]+", term("BNODE()") or "")


def test_relative_iris_are_resolved_against_the_base() -> None:
    run = compile_term(expression('IRI("../b#c")'), Options(base="http://e/x/y/z"))
    assert run(DictEnv()) == "<http://e/x/b#c>"


def test_now_is_the_time_of_the_environment() -> None:
    run = compile_term(expression("NOW()"))
    assert run(DictEnv(now_ms=1_500)) == ntriples('"1970-01-01T00:00:01.5Z"^^xsd:dateTime')
    assert run(DictEnv(now_ms=-1)) == ntriples('"1969-12-31T23:59:59.999Z"^^xsd:dateTime')
    assert run(DictEnv()) is None  # an error: there is neither an event nor a match


def test_random_values() -> None:
    assert term("?r >= 0 && ?r < 1", r=term("RAND()") or "") == ntriples("true")
    assert term("DATATYPE(RAND())") == ntriples("xsd:double")
    uuid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert re.fullmatch(f"<urn:uuid:{uuid}>", term("UUID()") or "")
    assert re.fullmatch(f'"{uuid}"', term("STRUUID()") or "")
    assert term("UUID() = UUID()") == ntriples("false")
