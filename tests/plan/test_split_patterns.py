"""Patterns over graphs that change, split into what reads the event and what is joined with it."""

from __future__ import annotations

import pytest

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import possible
from spaseq.compile import compile_query
from spaseq.plan.split_patterns import split

G, H = "http://e/g", "http://e/h"


def pattern_of(text: str) -> n.Pattern:
    """The algebra of a GPM."""
    query = f"""PREFIX : <http://e/>
        SELECT * FROM STREAM S <http://e/s> FROM NAMED <{G}> FROM NAMED <{H}>
        WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {text} }} }}"""
    return compile_query(query).patterns.gpms[0].pattern


@pytest.mark.parametrize(
    ("text", "own", "triples", "conditions"),
    [
        ("?d :is ?x GRAPH :g { ?d :owner ?o }", {"d", "x"}, 1, 0),
        ("GRAPH :g { ?d :owner ?o . ?o :in ?z }", set(), 2, 0),
        ("?d :is ?x GRAPH :h { ?d :owner ?o }", {"d", "x", "o"}, 0, 0),
        ("?d :is ?x GRAPH :g { ?d :owner ?o } FILTER (?o != ?x && ?x > 1)", {"d", "x"}, 1, 1),
        ("?d :is ?x GRAPH :g { ?d :owner ?o FILTER (?o != :eve) }", {"d", "x"}, 1, 1),
        ("?d :is ?x GRAPH :g { ?d :owner ?o } OPTIONAL { ?d :at ?y }", {"d", "x", "y"}, 1, 0),
        ("?d :is ?x GRAPH :g { ?d :owner ?o } MINUS { ?d :off ?y }", {"d", "x"}, 1, 0),
        ("?d :is ?x GRAPH :g { ?d :owner ?o } BIND (?x + 1 AS ?y)", {"d", "x", "y"}, 1, 0),
    ],
)
def test_joins_with_triple_patterns_are_split(
    text: str, own: set[str], triples: int, conditions: int
) -> None:
    found = split(pattern_of(text), [G])
    assert found is not None
    assert possible(found.own) == own
    assert len(found.triples) == triples
    assert len(found.conditions) == conditions


@pytest.mark.parametrize(
    "text",
    [
        "?d :is ?x OPTIONAL { GRAPH :g { ?d :owner ?o } } OPTIONAL { ?d :at ?o }",
        "?d :is ?x OPTIONAL { GRAPH :g { ?d :owner ?o } } GRAPH :g { ?d :has ?o }",
        "?d :is ?x OPTIONAL { GRAPH :g { ?d :owner ?o } ?d :at ?y }",
        "?d :is ?x OPTIONAL { GRAPH :g { ?d :owner ?o } FILTER (?o = RAND()) }",
        "?d :is ?x MINUS { GRAPH :g { ?d :owner ?o } }",
        "?d :is ?x FILTER NOT EXISTS { GRAPH :g { ?d :owner+ ?o } }",
        "?d :is ?x GRAPH :g { ?d :has ?o } { ?d :at ?y FILTER EXISTS { GRAPH :g { ?y ?p ?o } } }",
        "?d :is ?x FILTER EXISTS { GRAPH :g { ?d :owner ?o } ?o :at ?y }",
        "?d :is ?x GRAPH :g { ?d :owner+ ?o }",
        "?d :is ?x GRAPH ?g { ?d :owner ?o }",
        "{ ?d :is ?x } UNION { GRAPH :g { ?d :owner ?x } }",
        "?d :is ?x OPTIONAL { ?d :at ?o } GRAPH :g { ?d :owner ?o }",
        "?d :is ?x GRAPH :g { ?d :owner ?o } OPTIONAL { ?d :at ?o }",
        "?d :is ?x GRAPH :g { ?d :owner ?o } BIND (?o AS ?y)",
        "?d :is ?x GRAPH :g { ?d :owner ?o } FILTER (?o = RAND())",
    ],
)
def test_patterns_that_a_further_triple_could_change_are_not(text: str) -> None:
    assert split(pattern_of(text), [G]) is None


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("?d :is ?x OPTIONAL { GRAPH :g { ?d :owner ?o } }", ["optional"]),
        (
            "?d :is ?x OPTIONAL { GRAPH :g { ?d :owner ?o } } FILTER (!BOUND(?o))",
            ["optional", "filter"],
        ),
        ("?d :is ?x FILTER NOT EXISTS { GRAPH :g { ?d :owner ?o } }", ["not exists"]),
        (
            "GRAPH :g { ?d :has ?o } { ?d :at ?y FILTER EXISTS { GRAPH :g { ?y ?p ?z } } }",
            ["exists"],
        ),
    ],
)
def test_what_looks_into_graphs_after_the_join_is_a_step(text: str, kinds: list[str]) -> None:
    found = split(pattern_of(text), [G])
    assert found is not None
    assert [step.kind for step in found.steps] == kinds
