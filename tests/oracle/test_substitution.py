"""Bindings of earlier steps in every construct of SPARQL: the engine against the oracle.

`spaseq.algebra.substitution` defines substitution. The oracle puts the values into rdflib's
algebra, event by event; the engine mostly joins afterwards.
"""

from __future__ import annotations

import random

import pytest

from spaseq.compile import compile_query
from tests.oracle.agreement import Tally, compare
from tests.oracle.draw_events import KB, NS, STREAMS, Arrivals, knowledge, number, term
from tests.oracle.strategies import Case
from tests.sizes import first_of, sizes

A = "?x ex:v ?a"
PATTERNS = {
    "OPTIONAL": "?s ex:v ?v OPTIONAL { ?s ex:w ?a }",
    "OPTIONAL of a subject": "?s ex:v ?v OPTIONAL { ?x ex:w ?w }",
    "a FILTER inside OPTIONAL": "?s ex:v ?v OPTIONAL { ?s ex:w ?w FILTER(?w > ?a) }",
    "OPTIONAL inside OPTIONAL": "?s ex:v ?v OPTIONAL { ?s ex:w ?w OPTIONAL { ?s ex:u ?a } }",
    "BOUND of what OPTIONAL binds": "?s ex:v ?v OPTIONAL { ?s ex:w ?a } FILTER(BOUND(?a))",
    "MINUS by an object": "?s ex:v ?v MINUS { ?s ex:w ?a }",
    "a FILTER inside MINUS": "?s ex:v ?v MINUS { ?s ex:w ?w FILTER(?w < ?a) }",
    "a FILTER inside UNION": "{ ?s ex:v ?v FILTER(?v > ?a) } UNION { ?s ex:w ?v }",
    "BIND": "?s ex:v ?v BIND(?v - ?a AS ?e)",
    "BIND of a bound variable": "?s ex:v ?v BIND(?v + 1 AS ?a)",
    "VALUES with UNDEF": "?s ex:v ?v VALUES (?a ?z) { (1 UNDEF) (UNDEF 2) }",
    "NOT EXISTS": "?s ex:v ?v FILTER NOT EXISTS { ?s ex:w ?a }",
    "EXISTS with a FILTER": "?s ex:v ?v FILTER EXISTS { ?s ex:w ?w FILTER(?w > ?a) }",
    "EXISTS inside OPTIONAL": "?s ex:v ?v OPTIONAL { ?s ex:w ?w FILTER EXISTS { ?s ex:u ?a } }",
    "EXISTS and a look back": "?s ex:v ?v FILTER(EXISTS { ?s ex:w 1 } || ?v < ?a)",
    "a path of length zero": "?s ex:v ?v . ?x ex:u* ?y",
    "a sub-SELECT that projects it": "?s ex:v ?v "
    "{ SELECT ?a ?t { ?t ex:w ?w OPTIONAL { ?t ex:u ?a } } }",
    "a sub-SELECT with LIMIT": "{ SELECT ?x ?y { ?x ex:v ?y } ORDER BY ?x ?y LIMIT 1 }",
    "an operand of an aggregate": "?s ex:v ?v "
    "{ SELECT ?a (SUM(?w + ?a) AS ?t) { ?r ex:v ?w } GROUP BY ?a }",
    "an ORDER BY": "{ SELECT ?a ?y { ?s ex:v ?y } ORDER BY (ABS(?y - ?a)) ?y LIMIT 1 }",
    "a path of length zero in the knowledge base": "?s ex:v ?v . GRAPH ex:kb { ?x ex:u* ?y }",
    "TIMESTAMP inside OPTIONAL": "?s ex:v ?v OPTIONAL { ?s ex:w ?w "
    'FILTER(TIMESTAMP(A) > "1970-01-01T00:00:01Z"^^xsd:dateTime) }',
    "a FILTER's group apart": "{ ?s ex:v ?v FILTER(?v > ?a) } OPTIONAL { ?s ex:w ?a }",
    "the knowledge base": "?s ex:v ?v . ?s ex:k ?k "
    "OPTIONAL { GRAPH ex:kb { ?k ex:limit ?l FILTER(?l > ?a) } }",
    "GRAPH with a variable": "?s ex:v ?v OPTIONAL { GRAPH ?g { ?k ex:limit ?a } }",
}
SEQUENCES = ["A ; B", "A : B", "A , B", "A ; B! ; C", "B! ; A", "A ; B!", "(A AND B)", "(A & B)"]
MORE = {
    "PREV inside OPTIONAL": (
        "A ; B+",
        "?s ex:v ?v OPTIONAL { ?s ex:w ?w FILTER(?w > PREV(?v)) }",
    ),
    "PREV inside BIND": ("A ; B+", "?s ex:v ?v BIND(?v - PREV(?v) AS ?e)"),
    "an aggregate inside EXISTS": (
        "A+ ; B",
        "?s ex:v ?v FILTER EXISTS { ?s ex:w ?w FILTER(?w >= COUNT(?a)) }",
    ),
    "the last value of a group variable": ("A+ ; B", "?s ex:v ?v BIND(?v - ?a AS ?e)"),
    "another step of the repetition": ("(A ; B)+", "?s ex:v ?v OPTIONAL { ?s ex:w ?a }"),
    "OPTIONAL in a repetition": ("A ; B+", "?s ex:v ?v OPTIONAL { ?s ex:w ?w }"),
}


def query(sequence: str, pattern: str) -> str:
    return f"""PREFIX ex: <{NS}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        SELECT * WITHIN 4 SECONDS FROM STREAM S <{STREAMS[0]}> FROM NAMED <{KB}>
        WHERE {{ SEQ({sequence})
        DEFINE GPM A ON S {{ {A} }} DEFINE GPM B ON S {{ {pattern} }}
        DEFINE GPM C ON S {{ ?c ex:u ?d }} }}"""


def arrivals(seed: int) -> Arrivals:
    """Five events of up to four triples over two subjects and three numbers."""
    choices = random.Random(seed)
    rows: Arrivals = []
    for i in range(5):
        triples = []
        for _ in range(choices.randint(1, 4)):
            subject = term(choices.choice(["o1", "o2"]))
            if choices.random() < 0.2:
                triples.append((subject, term("k"), term(choices.choice(["k1", "k2"]))))
            else:
                value = number(choices.choice("012"))
                triples.append((subject, term(choices.choice("vvwu")), value))
        rows.append((1000 * (i // 2 + i % 2), f"{NS}event/{i}", list(dict.fromkeys(triples))))
    return sorted(rows, key=lambda row: row[0])


def check(sequence: str, pattern: str, seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        streams = {STREAMS[0]: arrivals(seed)}
        example = Case(query(sequence, pattern), frozenset(), streams, knowledge())
        wrong = compare(example, tally, random.Random(seed))
        assert wrong is None, f"{wrong.kind}\n{wrong.text}"
    assert not tally.too_big
    return tally


@sizes(1, 2)
@pytest.mark.parametrize("name", first_of([*PATTERNS], 8))
def test_substituted(name: str, examples: int) -> None:
    for number_, sequence in enumerate(SEQUENCES):
        check(sequence, PATTERNS[name], range(10 * number_, 10 * number_ + examples))


@sizes(2, 12)
@pytest.mark.parametrize("name", MORE)
def test_look_back(name: str, examples: int) -> None:
    assert check(*MORE[name], range(examples)).answered["(all)"]


@sizes(3, 5)
@pytest.mark.parametrize("name", first_of([*PATTERNS], 8))
def test_the_cases_have_answers(name: str, examples: int) -> None:
    assert check("A : B", PATTERNS[name], range(100, 100 + examples)).answered["(all)"]


def test_what_can_be_joined_afterwards_is() -> None:
    alone = "?s ex:v ?v { SELECT (COUNT(*) AS ?n) { ?t ex:w ?a } }"
    plain = [alone, "?x ex:w ?v", "?x ex:v ?v MINUS { ?x ex:w ?w }", "?s ex:v ?v FILTER(?v > ?a)"]
    for pattern in plain:
        assert all(
            g.correlation is None for g in compile_query(query("A ; B", pattern)).patterns.gpms
        )
    joined = {"BIND", "BIND of a bound variable", "VALUES with UNDEF"}
    for pattern in (p for name, p in PATTERNS.items() if name not in joined):
        plan = compile_query(query("A ; B", pattern))
        assert [g.name for g in plan.patterns.gpms if g.correlation is not None] == ["B"]


@pytest.mark.parametrize("sequence", ["B? ; A", "(B ; A)? : A", "(A ; B? | C) : A"])
def test_a_step_that_does_not_repeat_has_none_of_its_own_values_before(sequence: str) -> None:
    plan = compile_query(query(sequence, PATTERNS["OPTIONAL"].replace("?a", "?b")))
    assert all(gpm.correlation is None for gpm in plan.patterns.gpms)
    assert check(sequence, PATTERNS["OPTIONAL"].replace("?a", "?b"), range(4)).answered["(all)"]
