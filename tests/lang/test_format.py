"""Canonical text parses to the same tree, and formatting it again changes nothing."""

from __future__ import annotations

import pytest

from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from tests.lang.good_queries import good_queries, query
from tests.oracle.choices import seeded
from tests.oracle.strategies import case
from tests.sizes import sizes

GOOD = dict(good_queries())


def canonical(text: str) -> str:
    """The canonical text of a query, which parses to the same tree and is a fixpoint."""
    tree = parse(text)
    found = format_query(tree)
    again = parse(found)
    assert again == tree
    assert format_query(again) == found
    return found


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_canonical_text_parses_to_the_same_tree_and_is_a_fixpoint(text: str) -> None:
    canonical(text)


@sizes(100, 300, 600)
def test_canonical_texts_of_generated_queries(examples: int) -> None:
    texts = [case(seeded(f"format:{n}")).query for n in range(examples)]
    assert len({canonical(text) for text in texts}) > 0.9 * examples


def test_layout_of_a_whole_query() -> None:
    text = """prefix ex: <http://e/> register stream ex:out as
    select distinct next ?x (count(?y) as ?n) within 1 minute partition by ?x
    after match consume from stream S ex:s from named <http://kb>
    seq(A;B+,[2 SECOND](A|B);B{2,3}+[ , 1 SECOND ]until C;A++[:])
    { define gpm A on S { ?x a ex:C ; ex:p 1, 2 . filter(?x > 1). }
    define gpm B on S, S { ?x ex:p [ ex:q ?y ] optional { ?x ex:r (1 2) } } } having(?n > 1)"""
    assert (
        format_query(parse(text))
        == """\
PREFIX ex: <http://e/>

REGISTER STREAM ex:out AS
SELECT DISTINCT NEXT ?x (COUNT(?y) AS ?n)
WITHIN 1 MINUTES
PARTITION BY (?x)
AFTER MATCH CONSUME
FROM STREAM S ex:s
FROM NAMED <http://kb>
WHERE {
  SEQ(A; B+,[2 SECONDS] (A | B); B{2,3}+[, 1 SECONDS] UNTIL C; A++[:])
  DEFINE GPM A ON S {
    ?x a ex:C ;
      ex:p 1, 2 .
    FILTER(?x > 1)
  }
  DEFINE GPM B ON S, S {
    ?x ex:p [ ex:q ?y ] .
    OPTIONAL {
      ?x ex:r (1 2) .
    }
  }
}
HAVING(?n > 1)
"""
    )


def filter_of(expression: str) -> str:
    lines = format_query(parse(query(pattern=f"FILTER({expression})"))).splitlines()
    return next(line.strip() for line in lines if "FILTER" in line)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("((?x)) + (1 * 2)", "FILTER(?x + 1 * 2)"),
        ("(?x + 1) * 2", "FILTER((?x + 1) * 2)"),
        ("?x - (1 - 2)", "FILTER(?x - (1 - 2))"),
        ("(?x - 1) - 2", "FILTER(?x - 1 - 2)"),
        ("(?x || ?y) && ?z", "FILTER((?x || ?y) && ?z)"),
        ("?x || (?y && ?z)", "FILTER(?x || ?y && ?z)"),
        ("!(?x) && !(?x = 1)", "FILTER(!?x && !(?x = 1))"),
        ("-(5)", "FILTER(-(5))"),
        ("-5", "FILTER(-5)"),
        ("regex(?x, 'a')", 'FILTER(REGEX(?x, "a"))'),
        ("'5'^^xsd:integer", "FILTER(5)"),
        ("'x'^^xsd:integer", 'FILTER("x"^^xsd:integer)'),
    ],
)
def test_brackets_only_where_they_change_the_meaning(written: str, canonical: str) -> None:
    assert filter_of(written) == canonical


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("?s :p [ :q 1 ]", "?s :p [ :q 1 ] ."),
        ("?s :p _:x . _:x :q 1", "?s :p [ :q 1 ] ."),
        ("_:x :q 1 . ?s :p _:x", "_:b0 :q 1 . ?s :p _:b0 ."),
        ("?s :p _:x, _:x", "?s :p _:b0, _:b0 ."),
        ("?s :p _:x . ?s :q _:y . _:y :r _:x", "?s :p _:b0 ; :q [ :r _:b0 ] ."),
        ("?s :p _:x . FILTER(?s = 1) _:x :q 1", "?s :p _:b0 . FILTER(?s = 1) _:b0 :q 1 ."),
        ("?s :p (1 (2) [ :q 3 ])", "?s :p (1 (2) [ :q 3 ]) ."),
        ("?s :p _:l . _:l rdf:first 1 ; rdf:rest ()", "?s :p (1) ."),
        ("?s :p _:l . _:l rdf:first 1 ; rdf:rest _:l", None),
        ("(1) :p ?o . (2) .", "(1) :p ?o . (2) ."),
        ("[ :p 1 ] :q 2 . [ :p 3 ] .", "[] :p 1 ; :q 2 . [] :p 3 ."),
    ],
)
def test_blank_nodes_are_brackets_only_where_that_gives_the_same_triples(
    written: str, canonical: str | None
) -> None:
    tree = parse(query(pattern=written))
    text = format_query(tree)
    assert parse(text) == tree
    body = " ".join(text.partition("ON S {")[2].rsplit("}", 2)[0].split())
    if canonical is None:
        assert "(" not in body
    else:
        assert body == canonical


def test_the_longest_namespace_names_an_iri_if_the_rest_is_a_valid_name() -> None:
    prologue = "PREFIX e: <http://e/> PREFIX ns: <http://e/ns#>"
    pattern = "<http://e/ns#a> <http://e/ns#b/c> <http://e/ns>"
    text = format_query(parse(query(prologue=prologue, pattern=pattern)))
    assert "ns:a <http://e/ns#b/c> e:ns ." in text


def test_line_separators_inside_strings_survive_indentation() -> None:
    tree = parse(query(pattern=':s :p "a\u2028b\x0bc\x85d"'))
    assert parse(format_query(tree)) == tree


def test_a_query_that_was_formatted_needs_no_assumed_prefix() -> None:
    from spaseq.errors import QueryText
    from spaseq.lang.parser import parse_source

    text = query(pattern="?s ?p '1'^^xsd:byte")
    assert [d.code for d in parse_source(QueryText(text)).diagnostics] == ["assumed-prefix"]
    assert parse_source(QueryText(format_query(parse(text)))).diagnostics == ()
