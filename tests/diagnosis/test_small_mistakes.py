"""Mistakes of one GPM over four small events, in every form of pattern."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import spaseq

STREAM = """@prefix : <http://e/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix prov: <http://www.w3.org/ns/prov#> .
:g1 { :o1 a :Report ; :road :r1 ; :speed 30 ; :note "wet" } :g1 prov:generatedAtTime 0 .
:g2 { :o2 a :Report ; :road :r2 ; :speed 20.0 ; :note "dry"@en ; :code "17" }
:g2 prov:generatedAtTime 1000 .
:g3 { :o3 a :Report ; :road :r1 ; :speed 10 ; :by [ :name "Ann" ] } :g3 prov:generatedAtTime 2000 .
:g4 { :o4 a :Closing ; :road :r2 ; :until "2020-01-01T00:00:00Z"^^xsd:dateTime }
:g4 prov:generatedAtTime 3000 .
"""

KB = """@prefix : <http://e/> .
:r1 :street "Mill Street" ; :lanes 2 . :r2 :street "Bridge Road" .
:r3 :street "Old Lane" ; :closed true .
"""

QUERY = """PREFIX : <http://e/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
SELECT * WITHIN 1 HOURS
FROM STREAM S <http://e/s>
FROM NAMED <http://e/kb>
SEQ(A; B) {{
  DEFINE GPM A ON S {{ ?a :road ?road ; :speed ?first }}
  DEFINE GPM B ON S {{
{0}
  }}
}}"""


class Small(NamedTuple):
    """A pattern of B, and its first cause; `at` is the text at the cause's place."""

    pattern: str
    kind: str
    at: str
    term: str | None = None
    suggestion: str | None = None


PREDICATE, CONSTANT = "predicate-never-occurs", "constant-never-occurs"
PATTERN, EMPTY = "pattern-never-matches", "kb-empty"
FALSE, ERROR = "filter-false", "filter-error"

SMALL = (
    # predicates
    Small("?b :sped ?v", PREDICATE, "?b :sped", ":sped", ":speed"),
    Small("?b foaf:name ?v", PREDICATE, "?b foaf", "foaf:name", ":name"),
    Small("?b :by/:nmae ?v", PREDICATE, "?b :by", ":nmae", ":name"),
    Small("?b ^:raod ?v", PREDICATE, "?b ^", ":raod", ":road"),
    Small("?b :raod+ ?v", PREDICATE, "?b :raod", ":raod", ":road"),
    Small("{ ?b :spede ?v } UNION { ?b :spee ?v }", PREDICATE, "?b :spede", ":spede", ":speed"),
    Small("{ SELECT ?b { ?b :sped ?v } }", PREDICATE, "?b :sped", ":sped", ":speed"),
    Small("?b :speed ?v . { ?b :raod ?r }", PREDICATE, "?b :raod", ":raod", ":road"),
    Small("?b :xyzzy ?v", PREDICATE, "?b :xyzzy", ":xyzzy"),
    # constants
    Small("?b a :Reprot", CONSTANT, "?b a", ":Reprot", ":Report"),
    Small("?b :speed 20", CONSTANT, "?b :speed", "20", "20.0"),
    Small('?b :note "dry"', CONSTANT, "?b :note", '"dry"', '"dry"@en'),
    Small("?b :code 17", CONSTANT, "?b :code", "17", '"17"'),
    Small(":o9 :speed ?v", CONSTANT, ":o9 :speed", ":o9"),
    Small("?b :road ?r VALUES ?r { :r7 }", CONSTANT, "VALUES", ":r7"),
    Small("VALUES ?r { :r7 :r8 } ?b :road ?r", CONSTANT, "VALUES", ":r7"),
    # patterns that match alone
    Small("?b :code ?v ; :by ?w", PATTERN, ":by ?w"),
    Small("?b :until ?w ; :road ?r ; :speed ?v", PATTERN, ":speed ?v"),
    Small("?z :until ?w . ?b :speed ?v ; :code ?c", PATTERN, "?z :until"),
    Small("?b :speed ?v ; :road ?v", PATTERN, ":road ?v"),
    Small("?b :speed ?b", PATTERN, "?b :speed"),
    Small("?b :speed ?v MINUS { ?b :road ?r }", PATTERN, "MINUS"),
    # the knowledge base
    Small(
        "?b :road ?r GRAPH <http://e/kb> { ?r :stret ?s }",
        PREDICATE,
        "?r :stret",
        ":stret",
        ":street",
    ),
    Small(
        '?b :road ?r GRAPH <http://e/kb> { ?r :street "Mill street" }',
        *(CONSTANT, "?r :street", '"Mill street"', '"Mill Street"'),
    ),
    Small(
        "?b :road ?r GRAPH <http://e/kb> { ?r :lanes 2 ; :closed true }", PATTERN, ":closed true"
    ),
    Small("?b :road ?r GRAPH <http://e/kb> { ?r :closed true }", EMPTY, "GRAPH", "?r"),
    Small("?b :note ?n GRAPH <http://e/kb> { ?r :street ?n }", EMPTY, "GRAPH", "?n"),
    Small("GRAPH <http://e/kb> { ?r :closed true } ?b :road ?r", EMPTY, "GRAPH", "?r"),
    Small("?b :road ?r GRAPH <http://e/kb> { ?r :lanes ?l FILTER(?l > 3) }", FALSE, "FILTER", "3"),
    # FILTERs
    Small("?b :speed ?v FILTER(?v > 30)", FALSE, "FILTER", "30"),
    Small("?b :speed ?v FILTER(?v > 5 && ?v > 30)", FALSE, "FILTER", "30"),
    Small("?b :speed ?v FILTER(?v > 20) FILTER(?v < 20)", FALSE, "FILTER(?v < 20"),
    Small("?b :speed ?v FILTER(50 < ?v)", FALSE, "FILTER", "50"),
    Small('?b :note ?t FILTER(?t = "wett")', FALSE, "FILTER", '"wett"', '"wet"'),
    Small("?b :road ?r FILTER(?r IN (:r10))", FALSE, "FILTER", ":r10", ":r1"),
    Small("?b :road ?r FILTER(?r = :rr1 || ?r = :rr2)", FALSE, "FILTER"),
    Small("?b :speed ?v FILTER NOT EXISTS { ?b :road ?r }", FALSE, "FILTER"),
    Small('?b :speed ?v FILTER(?v > "5")', ERROR, "FILTER", '"5"', "5"),
    Small(
        "?b :code ?c FILTER(?c > 5)",
        *(ERROR, "FILTER", "?c", "<http://www.w3.org/2001/XMLSchema#double>(?c)"),
    ),
    Small("?b :until ?t FILTER(?t > 5)", ERROR, "FILTER", "5"),
    Small("?b :speed ?speed FILTER(?sped > 5)", ERROR, "FILTER", "?sped", "?speed"),
    Small("?b :speed ?v OPTIONAL { ?b :sped ?w } FILTER(?w > 5)", ERROR, "FILTER", "?w"),
    # evaluated with the bindings of A
    Small("?b :speed ?v OPTIONAL { ?b :code ?first } FILTER(?v > 99)", FALSE, "FILTER", "99"),
    Small("?b :speed ?v MINUS { ?b :road ?road } FILTER(?v > 99)", FALSE, "FILTER", "99"),
)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], dict[str, Path]]:
    folder = tmp_path_factory.mktemp("small")
    (folder / "s.trig").write_text(STREAM)
    (folder / "kb.ttl").write_text(KB)
    return {"S": folder / "s.trig"}, {"http://e/kb": folder / "kb.ttl"}


Given = tuple[dict[str, Path], dict[str, Path]]


@pytest.mark.parametrize("small", SMALL, ids=lambda s: s.pattern)
def test_the_first_cause_is_the_mistake(small: Small, given: Given) -> None:
    query = QUERY.format(small.pattern)
    report = spaseq.why(query, *given)
    assert report.answers == 0
    cause = report.causes[0]
    assert (cause.kind, cause.gpm, cause.step) == (small.kind, "B", 2), cause
    assert cause.line == 9
    assert cause.column is not None
    assert query.splitlines()[8][cause.column - 1 :].startswith(small.at)
    assert (cause.term, cause.suggestion) == (small.term, small.suggestion), cause
    assert report.as_text() and report.as_json()


RIGHT = (
    "?b :speed ?v",
    "?b :speed ?v FILTER(?v < ?first)",
    "?b :speed ?v OPTIONAL { ?b :sped ?w }",
    "?b :speed ?v MINUS { ?b :sped ?w }",
    "{ ?b :sped ?v } UNION { ?b :speed ?v }",
    "?b :road ?r GRAPH <http://e/kb> { ?r :street ?s OPTIONAL { ?r :nothing ?n } }",
    "?b :road ?road FILTER(?first > 20)",
    "?b :speed ?v FILTER(!BOUND(?nothing))",
    "?b ?p ?o FILTER(?o = 10)",
    "?b :road ?r { SELECT ?b (COUNT(*) AS ?n) { ?b ?p ?o } GROUP BY ?b }",
    "?b :road ?r BIND(1 / 0 AS ?x)",
    "?b :sped? ?v . ?b :road ?r",
)


@pytest.mark.parametrize("pattern", RIGHT)
def test_a_right_pattern_has_no_cause(pattern: str, given: Given) -> None:
    report = spaseq.why(QUERY.format(pattern), *given)
    assert report.answers > 0
    assert report.causes == ()


def test_a_filter_over_an_earlier_step_is_no_cause_of_the_gpm(given: Given) -> None:
    report = spaseq.why(QUERY.format("?b :speed ?v FILTER(?v > ?first)"), *given)
    assert report.answers == 0
    assert not [c for c in report.causes if c.kind in (FALSE, ERROR)]


def test_entailment(given: Given, tmp_path: Path) -> None:
    ontology = tmp_path / "o.ttl"
    ontology.write_text(
        "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        ":speed rdfs:subPropertyOf :measure . :Report rdfs:subClassOf :Message ."
    )
    options = {"ontology": ontology, "entailment": "rdfs"}
    right = spaseq.why(QUERY.format("?b a :Message ; :measure ?v"), *given, **options)
    assert right.answers > 0 and right.causes == ()
    wrong = spaseq.why(QUERY.format("?b a :Mesage ; :measure ?v"), *given, **options)
    assert [(c.kind, c.term) for c in wrong.causes] == [(CONSTANT, ":Mesage")]
