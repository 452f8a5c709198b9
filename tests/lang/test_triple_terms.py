"""Triple terms, reified triples, reifiers and annotations as triples (SPARQL 1.2 section 4.4)."""

from __future__ import annotations

import pytest

from spaseq.algebra.groups import translate_group
from spaseq.algebra.remote import pattern_text
from spaseq.errors import QueryText
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse, parse_source

HEAD = """PREFIX : <http://e/> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) { DEFINE GPM A ON S { """


def query(pattern: str, head: str = HEAD) -> str:
    return f"{head}{pattern} }} }}"


def pattern_of(pattern: str) -> ast.GroupGraphPattern:
    return parse(query(pattern)).gpms[0].pattern


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("<< ?s :p ?o ~ ?r >> :q 1", "?r rdf:reifies <<( ?s :p ?o )>> ; :q 1"),
        ("<< ?s :p ?o >> :q 1", "_:r rdf:reifies <<( ?s :p ?o )>> . _:r :q 1"),
        ("<< ?s :p ?o ~ >>", "[] rdf:reifies <<( ?s :p ?o )>>"),
        (":x :y << ?s :p ?o ~ ?r >>", ":x :y ?r . ?r rdf:reifies <<( ?s :p ?o )>>"),
        (
            "<< << ?s :p ?o ~ ?i >> :q 1 ~ ?r >>",
            "?r rdf:reifies <<( ?i :q 1 )>> . ?i rdf:reifies <<( ?s :p ?o )>>",
        ),
        ("?s :p ?o ~ ?r", "?s :p ?o . ?r rdf:reifies <<( ?s :p ?o )>>"),
        (
            "?s :p ?o ~ ?r {| :q 1 |}",
            "?s :p ?o . ?r rdf:reifies <<( ?s :p ?o )>> . ?r :q 1",
        ),
        (
            "?s :p ?o ~ ?r ~ ?t {| :q 1 |} {| :q 2 |}",
            "?s :p ?o . ?r rdf:reifies <<( ?s :p ?o )>> . ?t rdf:reifies <<( ?s :p ?o )>> ; :q 1 . "
            "_:n rdf:reifies <<( ?s :p ?o )>> . _:n :q 2",
        ),
        (
            "?s :p ?o {| :q 1 {| :x 2 |} |}",
            "?s :p ?o . _:a rdf:reifies <<( ?s :p ?o )>> . _:a :q 1 . "
            "_:b rdf:reifies <<( _:a :q 1 )>> . _:b :x 2",
        ),
        (
            "?s :p ?o ~ ?r, 7 ~ ?t ; :q ?z",
            "?s :p ?o . ?r rdf:reifies <<( ?s :p ?o )>> . ?s :p 7 . "
            "?t rdf:reifies <<( ?s :p 7 )>> . ?s :q ?z",
        ),
    ],
)
def test_shorter_forms_are_triples(short: str, long: str) -> None:
    triples = [t for block in pattern_of(short).elements for t in block.triples]
    assert triples == [t for block in pattern_of(long).elements for t in block.triples]


@pytest.mark.parametrize(
    "pattern",
    [
        "<< ?s :p ?o ~ ?r >> :q 1 .",
        "<< ?s :p ?o >> :q 1 .",
        "?x :q <<( _:b1 ?p <<( :a a \"x\"@ar--rtl )>> )>> .",
        "?s :p ?o .\n    << ?s :p ?o >> :q 1 .",
        "VALUES ?t { <<( :a :p 1 )>> }",
    ],
)  # fmt: skip
def test_canonical_text(pattern: str) -> None:
    text = format_query(parse(query(pattern)))
    written = text.partition("DEFINE GPM A ON S {\n    ")[2].partition("\n  }")[0]
    assert written.replace("_:b0", "_:b1") == pattern
    assert format_query(parse(text)) == text


def test_endpoints_are_asked_about_triple_terms() -> None:
    group = pattern_of("?r rdf:reifies <<( ?s :p <<( ?x :q 1 )>> )>>")
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert pattern_text(translate_group(group)) == (
        "?r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> "
        f"<<( ?s <http://e/p> <<( ?x <http://e/q> {one} )>> )>> ."
    )


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("?s :p+ ?o {| :q 1 |}", "only a triple whose predicate is an IRI or a variable can have"),
        ("?s ?p <<( :a :b/:c :d )>>", "one predicate, not a path"),
        ("?s ?p << :a :b (1) >>", "a list cannot stand in << >>"),
        ("?s ?p 'x'@en--up", "a base direction is --ltr or --rtl"),
        ("?s ?p ?o BIND(<< ?s ?p ?o >> AS ?t)", "here write a triple term, <<( )>>"),
        ("VALUES ?t { <<( <<( :a :b :c )>> :b :c )>> }", "cannot be the subject of another one"),
        ("?s ?p :\\u0061", "only in a string or an IRI"),
    ],
)
def test_what_is_refused(pattern: str, message: str) -> None:
    errors = parse_source(QueryText(query(pattern), "q")).errors
    assert any(message in error.message for error in errors), errors


def test_versions() -> None:
    parsed = parse_source(QueryText(query("?s ?p ?o", f'VERSION "1.2" {HEAD}'), "q"))
    assert not parsed.diagnostics and parsed.query
    assert format_query(parsed.query).startswith('VERSION "1.2"\n')
    parsed = parse_source(QueryText(query("?s ?p ?o", f'VERSION "9" {HEAD}'), "q"))
    assert [each.code for each in parsed.diagnostics] == ["unknown-version"]
