"""Canonical text agrees with pyoxigraph, and conversions round-trip."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import isnan

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.terms.term import (
    CDT_LIST,
    LANG_STRING,
    XSD,
    XSD_STRING,
    Term,
    bnode_text,
    from_pyoxigraph,
    from_rdflib,
    iri_text,
    list_items,
    list_lexical,
    literal_text,
    scoped_term,
    split_literal,
)

LEXICAL = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.text(
    '"\\\n\r\t\b\f\x00\x0b\x7f\uffff@^<>', max_size=6
)
DATATYPE = st.sampled_from([XSD_STRING, XSD + "integer", XSD + "double", "http://e/type"])
LANGUAGE = st.sampled_from(["en", "EN", "de-AT", "zh-Hant-TW", "x-private"])


def literal(lexical: str, datatype: str) -> Term:
    return Term(literal_text(lexical, XSD + datatype))


@given(LEXICAL, DATATYPE)
def test_typed_literals_are_written_as_pyoxigraph_writes_them(lexical: str, datatype: str) -> None:
    theirs = ox.Literal(lexical, datatype=ox.NamedNode(datatype))
    assert literal_text(lexical, datatype) == from_pyoxigraph(theirs)


@given(LEXICAL, LANGUAGE)
def test_tagged_literals_are_written_as_pyoxigraph_writes_them(lexical: str, tag: str) -> None:
    assert literal_text(lexical, language=tag) == str(ox.Literal(lexical, language=tag))


def test_every_character_is_escaped_as_pyoxigraph_escapes_it() -> None:
    characters = [*map(chr, range(0x300)), *map(chr, range(0xFFF0, 0x10010))]
    different = [c for c in characters if literal_text(c) != str(ox.Literal(c))]
    assert different == []


@given(LEXICAL, DATATYPE)
def test_a_typed_literal_is_split_into_what_it_was_made_of(lexical: str, datatype: str) -> None:
    assert split_literal(literal_text(lexical, datatype)) == (lexical, datatype, None)


@given(LEXICAL, LANGUAGE)
def test_a_tagged_literal_is_split_into_what_it_was_made_of(lexical: str, tag: str) -> None:
    split = split_literal(literal_text(lexical, language=tag))
    assert split == (lexical, LANG_STRING, tag.lower())


def test_escapes_beyond_the_canonical_ones_are_read() -> None:
    assert split_literal(r'"\u0041\U0001F600\'"')[0] == "A\U0001f600'"


@pytest.mark.parametrize("text", ["<http://e/a>", "_:b", "", '"'])
def test_only_literals_are_split(text: str) -> None:
    with pytest.raises(ValueError, match="not a literal"):
        split_literal(text)


@given(LEXICAL, DATATYPE)
def test_literals_go_through_rdflib_unchanged(lexical: str, datatype: str) -> None:
    text = literal_text(lexical, datatype)
    assert from_rdflib(Term(text).to_rdflib()) == text


def test_rdflib_does_not_normalise_the_lexical_form() -> None:
    assert str(literal("01", "integer").to_rdflib()) == "01"


@pytest.mark.parametrize("text", ["<http://e/é>", "_:b.1", '"chat"@fr-ca', '"a"'])
def test_other_terms_go_through_rdflib_unchanged(text: str) -> None:
    assert from_rdflib(Term(text).to_rdflib()) == text


def test_what_rdflib_has_for_iri_blank_node_and_string() -> None:
    assert Term("<http://e/a>").to_rdflib() == rdflib.URIRef("http://e/a")
    assert Term("_:b").to_rdflib() == rdflib.BNode("b")
    assert Term('"a"').to_rdflib() == rdflib.Literal("a")


@pytest.mark.parametrize("iri", ["http://e/a b", "http://e/<", "a\\b", "http://e/\n"])
def test_what_no_iri_can_hold_is_refused(iri: str) -> None:
    with pytest.raises(ValueError, match="not an IRI"):
        iri_text(iri)


@pytest.mark.parametrize("label", ["", "a b", "a.", "-a"])
def test_what_no_label_can_be_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="invalid"):
        bnode_text(label)


def test_a_malformed_language_tag_is_refused() -> None:
    with pytest.raises(ValueError, match="language tag"):
        literal_text("a", language="e n")


@pytest.mark.parametrize(
    ("lexical", "datatype", "value"),
    [
        ("16", "integer", 16),
        ("+016", "long", 16),
        ("-1", "byte", -1),
        ("1.50", "decimal", Decimal("1.50")),
        (".5", "decimal", Decimal("0.5")),
        ("1e3", "double", 1000.0),
        ("-INF", "float", float("-inf")),
        ("true", "boolean", True),
        ("0", "boolean", False),
        (" 7 ", "integer", 7),
        ("2014-08-01", "date", date(2014, 8, 1)),
        ("2014-08-01T07:50:00", "dateTime", datetime(2014, 8, 1, 7, 50)),
        ("2014-08-01T24:00:00Z", "dateTime", datetime(2014, 8, 2, tzinfo=UTC)),
        (
            "2014-08-01T07:50:00.1234567-05:30",
            "dateTime",
            datetime(2014, 8, 1, 7, 50, 0, 123456, timezone(-timedelta(hours=5, minutes=30))),
        ),
    ],
)
def test_python_values(lexical: str, datatype: str, value: object) -> None:
    got = literal(lexical, datatype).to_python()
    assert got == value
    assert type(got) is type(value)


def test_nan_is_a_float() -> None:
    assert isnan(literal("NaN", "double").to_python())


@pytest.mark.parametrize(
    ("lexical", "datatype"),
    [
        ("x", "integer"),
        ("1_0", "integer"),
        ("٣", "integer"),
        ("1e3", "decimal"),
        ("nan", "double"),
        ("infinity", "double"),
        ("yes", "boolean"),
        ("2014-02-30", "date"),
        ("12014-02-03T00:00:00Z", "dateTime"),
        ("P1D", "duration"),
    ],
)
def test_a_form_without_a_python_value_stays_as_it_is(lexical: str, datatype: str) -> None:
    assert literal(lexical, datatype).to_python() == lexical


def test_python_values_of_what_is_no_typed_literal() -> None:
    assert Term("<http://e/a>").to_python() == "http://e/a"
    assert Term("_:b").to_python() == "_:b"
    assert Term('"chat\\n"@fr').to_python() == "chat\n"


@pytest.mark.parametrize(
    ("text", "json"),
    [
        ("<http://e/a>", {"type": "uri", "value": "http://e/a"}),
        ("_:b", {"type": "bnode", "value": "b"}),
        ('"a\\"b"', {"type": "literal", "value": 'a"b'}),
        ('"a"@en', {"type": "literal", "value": "a", "xml:lang": "en"}),
        (
            f'"1"^^<{XSD}integer>',
            {"type": "literal", "value": "1", "datatype": XSD + "integer"},
        ),
    ],
)
def test_sparql_json(text: str, json: dict[str, str]) -> None:
    assert Term(text).to_sparql_json() == json


def test_a_term_is_its_text_and_tells_its_kind() -> None:
    term = Term("<http://e/a>")
    assert term == "<http://e/a>"
    assert type(term.n3()) is str
    assert [Term(t).kind for t in ("<a:b>", "_:b", '"x"')] == ["iri", "bnode", "literal"]


def test_an_answers_blank_node_depends_on_stream_instant_and_label() -> None:
    ours = scoped_term("http://e/s", 1000, 0, "_:b")
    assert ours == scoped_term("http://e/s", 1000, 0, "_:b")
    assert str(ox.BlankNode(ours[2:])) == ours
    assert len(ours) == len("_:b") + 16
    others = {
        scoped_term("http://e/t", 1000, 0, "_:b"),
        scoped_term("http://e/s", 1001, 0, "_:b"),
        scoped_term("http://e/s", 1000, 1, "_:b"),
        scoped_term("http://e/s", 1000, 0, "_:c"),
    }
    assert len(others | {ours}) == 5


ITEM = (
    st.none()
    | st.builds(literal_text, LEXICAL, DATATYPE)
    | st.builds(lambda x, t: literal_text(x, language=t), LEXICAL, LANGUAGE)
    | st.sampled_from(["<http://e/a,b]>", "_:b1", '"null"', '"], ["'])
)


@given(st.lists(ITEM, max_size=5))
def test_a_list_literal_is_split_into_its_items(items: list[str | None]) -> None:
    text = literal_text(list_lexical(items), CDT_LIST)
    assert list_items(split_literal(text)[0]) == items


@pytest.mark.parametrize("lexical", ["", "1", "[", '["a",]', '["a" "b"]', "[a]"])
def test_what_is_no_list_is_refused(lexical: str) -> None:
    with pytest.raises(ValueError, match="not a list"):
        list_items(lexical)


def test_the_python_value_of_a_list_is_a_list() -> None:
    items = [literal_text("1", XSD + "integer"), None, "<http://e/a>"]
    term = Term(literal_text(list_lexical(items), CDT_LIST))
    assert term.to_python() == [1, None, "http://e/a"]
