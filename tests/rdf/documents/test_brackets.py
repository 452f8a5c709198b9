"""The short cut to the brackets of a document finds what the scan finds."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.documents.brackets import Brackets, syntax_of
from spaseq.rdf.inputs.formats import Format

HEAD = "@prefix : <a:> .\n:s :p "
TURTLE_PARTS = [
    *("\"'#<>[]()\n\r ,1a|"),
    *('"""', "'''", '""', '\\"', "\\'", "\\\\", "\\n", "[]", "()", "[ :p ", "{|", "|}"),
    *("<a:b>", "<a:(>", "<a:'>", "<a:#>", '"x"', "'y'", '"["', "'('", '"<"', "'>'", ":a\\(b"),
    *("<<( :a :p ", " )>>", '# "[\n', "# '\r", "# <\n"),
]
XML_HEAD = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<rdf:Description><e:p rdf:parseType="Literal">'
)
XML_END = "</e:p></rdf:Description></rdf:RDF>"
XML_PARTS = [
    *("<e:a>", "</e:a>", "<e:a/>", '<e:a e:x="', '"', "'", ">", "/>", '">', "b", "\n", ' e:z="'),
    *("<e:a e:y='>'>", '<e:a e:x="/>">', '<e:a e:x="<">', '<e:a e:x="</"/>', "<e:a e:x='\"'>"),
    *("<e:a e:x = '\"' e:y='/>'>", '<e:a e:x="1" e:y="2">', "<!-- <e:a> -->", "<?b <e:a> ?>"),
]


def assert_same(form: Format, text: bytes) -> None:
    """The short cut finds the brackets that the scan finds in the same text."""
    found = syntax_of(form).of(text)
    assert found.signs == syntax_of(form).scanned(text[: found.end]).signs


def accepted(text: bytes, form: ox.RdfFormat) -> bool:
    try:
        return sum(1 for _ in ox.parse(text, form)) >= 0
    except (SyntaxError, ValueError):
        return False


@given(st.lists(st.lists(st.sampled_from(TURTLE_PARTS), min_size=1, max_size=4), max_size=6))
def test_turtle_that_the_parser_accepts_has_the_same_brackets(values: list[list[str]]) -> None:
    """Each value alone, and all that the parser accepts together."""
    good = []
    for value in map("".join, values):
        text = f"{HEAD}{value}\n.\n".encode()
        if accepted(text, ox.RdfFormat.TURTLE):
            assert_same(Format.TURTLE, text)
            good.append(value)
    assert_same(Format.TURTLE, f"{HEAD}{' , '.join([*good, '1'])} .\n:s :p [\n] .\n".encode())


@given(st.lists(st.sampled_from(XML_PARTS), max_size=8), st.integers(0, 3))
def test_xml_that_the_parser_accepts_has_the_same_brackets(parts: list[str], ends: int) -> None:
    text = (XML_HEAD + "".join(parts) + "</e:a>" * ends + XML_END).encode()
    if accepted(text, ox.RdfFormat.RDF_XML):
        assert_same(Format.RDFXML, text)


@pytest.mark.parametrize(
    "lines",
    [
        ':s :p "<" , [ [ ] ] , ">" .\n',
        ':s :p "a" , "[" , <a:b> , "(" , ( ) .\n',
        ":s :p 'it''s' , \"'\" , ( ) , \"'\" .\n",
        '# don\'t\n:s :p ( "can\'t" ) . # "\n',
        ":s :p <a:(b)> , <a:#c> , <a:'> , ( 1 ) , <a:'> .\n",
        ':s :p "\\"" , ( "\\\\" ) , :a\\(b , "\\\\\\"(" .\n',
        ':s :p """a\n( """ , ( ) .\n',
        ':s :p "" , ( "" ) , "a""" .\n',
        ":s :p 1 {| :q ( ) |} .\n",
        ":s :p <<( :a :p <<( :b :p 1 )>> )>> .\n",
        '# <\n:s :p ( <a:b> ) . # >\r[ ] :p 1 . # "\r( ) :p 1 .\n',
    ],
)
def test_quotes_comments_iris_and_escapes_hide_no_bracket(lines: str) -> None:
    assert_same(Format.TURTLE, lines.encode())


def test_a_line_has_all_its_brackets_and_the_next_waits() -> None:
    text = b'<a> <b#c> ( "(" "it\'s" [ ] ) . # (\n<a> <b> ('
    assert syntax_of(Format.TRIG).of(text) == Brackets(b"(())", text.index(b"\n") + 1)


def test_elements_with_elements_in_them_count() -> None:
    text = b'<a b="c"><d/></a><e>it\'s</e><f><g></g></f>text<'
    assert syntax_of(Format.RDFXML).of(text) == Brackets(b"()()", text.index(b"text"))
