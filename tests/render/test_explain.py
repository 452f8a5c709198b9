"""What `explain` says of patterns over lifted rows."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.lift.lift_checks import compiled_lift
from spaseq.render.lift_text import lift_text
from tests.lift.lifting import PREFIXES

LIFT = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ ?e a ?k ; :v ?v ; :tag ?w ; :tag ?x }}
                        ?e prov:generatedAtTime ?t }}
WHERE {{ BIND(IRI(CONCAT("http://e/n/", STR(?id))) AS ?e) BIND(STR(?kind) AS ?k)
         FILTER(?v > 3 && 9 >= ?x) }}"""


def said(pattern: str, lift: str = LIFT, **options: object) -> list[str]:
    query = f"""{PREFIXES}SELECT ?a WITHIN 1 HOURS FROM STREAM S <http://e/s>
        SEQ(A) {{ DEFINE GPM A ON S {{ {pattern} }} }}"""
    plan = compile_query(query, options=CompileOptions(**options))
    first, *lines = lift_text(plan, [("http://e/s", compiled_lift(lift))]).splitlines()
    assert first == "stream S"
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("?a :v ?b", "1 triple pattern from ?id, ?v"),
        ("?a :v ?b ; a 'x'", "2 triple patterns from ?id, ?kind, ?v"),
        ("?a :tag ?b", "1 triple pattern from ?id, ?w, ?x in 2 ways"),
        ("?a :other ?b", "no row matches"),
        ("?a :v+ ?b", "triples are made for a path"),
        (
            "?a ?b ?c . ?a ?d ?e . ?a ?f ?g",
            "triples are made: the template matches in too many ways",
        ),
        (
            "?a :v ?b OPTIONAL { ?a :tag 7 }",
            "1 triple pattern from ?id, ?v; 1 triple pattern from ?id, ?w, ?x in 2 ways",
        ),
    ],
)
def test_how_a_pattern_is_evaluated(pattern: str, words: str) -> None:
    assert said(pattern)[0] == f"A: {words}"


def test_a_triple_term_is_read_from_its_fields() -> None:
    lift = LIFT.replace(":tag ?w", ":says <<( ?e :tag ?w )>>")
    assert said("?e :says ?t", lift)[1] == "read: ?id, ?kind, ?t, ?v, ?w, ?x"


def test_what_is_read() -> None:
    assert said("?a :v ?b")[1:] == [
        "read: ?id, ?kind, ?t, ?v, ?x",
        "not read from Parquet if no row can be bad by them: ?w",
        "row groups of Parquet are left out by ?v > 3 && ?x <= 9",
    ]


def test_when_triples_are_made() -> None:
    (words, *_) = said("?a :v ?b", disable=["virtual-triples"])
    assert words == "A: triples are made: the rule virtual-triples is disabled"
    lift = LIFT.replace("?e a ?k", "[] a ?k")
    assert (
        said("?a :v ?b", lift)[0]
        == "A: triples are made: blank nodes, or triple terms with variables"
    )
