"""Group graph patterns to algebra: the examples of SPARQL 1.1 section 18.2.3, and paths."""

from __future__ import annotations

import pytest

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import certain, possible
from spaseq.lang import ast
from tests.algebra.text import group_of, shown


@pytest.mark.parametrize(
    ("group", "algebra"),
    [
        ("{}", "Z"),
        ("{ ?s ?p ?o }", "BGP(?s ?p ?o)"),
        ("{ ?s :p1 ?v1 ; :p2 ?v2 }", "BGP(?s :p1 ?v1 . ?s :p2 ?v2)"),
        ("{ {?s :p1 ?v1} UNION {?s :p2 ?v2} }", "Union(BGP(?s :p1 ?v1), BGP(?s :p2 ?v2))"),
        (
            "{ {?s :p1 ?v1} UNION {?s :p2 ?v2} UNION {?s :p3 ?v3} }",
            "Union(Union(BGP(?s :p1 ?v1), BGP(?s :p2 ?v2)), BGP(?s :p3 ?v3))",
        ),
        (
            "{ ?s :p1 ?v1 OPTIONAL {?s :p2 ?v2} }",
            "LeftJoin(BGP(?s :p1 ?v1), BGP(?s :p2 ?v2), true)",
        ),
        (
            "{ ?s :p1 ?v1 OPTIONAL {?s :p2 ?v2} OPTIONAL {?s :p3 ?v3} }",
            "LeftJoin(LeftJoin(BGP(?s :p1 ?v1), BGP(?s :p2 ?v2), true), BGP(?s :p3 ?v3), true)",
        ),
        (
            "{ ?s :p1 ?v1 OPTIONAL {?s :p2 ?v2 FILTER(?v1 < 3)} }",
            "LeftJoin(BGP(?s :p1 ?v1), BGP(?s :p2 ?v2), ?v1 < 3)",
        ),
        (
            "{ {?s :p1 ?v1} UNION {} OPTIONAL {?s :p3 ?v3} }",
            "LeftJoin(Union(BGP(?s :p1 ?v1), Z), BGP(?s :p3 ?v3), true)",
        ),
        (
            "{ ?s :p1 ?v1 FILTER(?v1 < 3) OPTIONAL {?s :p3 ?v3} }",
            "Filter(?v1 < 3, LeftJoin(BGP(?s :p1 ?v1), BGP(?s :p3 ?v3), true))",
        ),
        (
            "{ ?s :p ?v . { SELECT DISTINCT ?s {?s :q ?o} } }",
            "Join(BGP(?s :p ?v), Distinct(Project(BGP(?s :q ?o), s)))",
        ),
        ("{ ?s :p ?v . BIND(?v AS ?v2) ?s :q ?u }",
         "Join(Extend(BGP(?s :p ?v), v2, ?v), BGP(?s :q ?u))"),
        ("{ ?s :p ?v MINUS {?s :q ?v} }", "Minus(BGP(?s :p ?v), BGP(?s :q ?v))"),
        ("{ ?s :p ?v . {} FILTER(?v < 1) FILTER(?v < 2) }",
         "Filter(?v < 1 && ?v < 2, BGP(?s :p ?v))"),
        ("{ ?s :p ?v . FILTER(?v < 1) ?s :q ?u }", "Filter(?v < 1, BGP(?s :p ?v . ?s :q ?u))"),
        ("{ ?s :p ?v . GRAPH :kb { ?s :q ?u } }", "Join(BGP(?s :p ?v), Graph(:kb, BGP(?s :q ?u)))"),
        ("{ VALUES (?a ?b) { (1 UNDEF) } }", 'Table(a b: "1"^^xsd:integer -)'),
    ],
)  # fmt: skip
def test_groups_become_the_algebra_of_the_specification(group, algebra):
    assert shown(translate_group(group_of(group))) == algebra


@pytest.mark.parametrize(
    ("path", "algebra"),
    [
        (":p/:q", "BGP(?s :p ?_:/0 . ?_:/0 :q ?o)"),
        ("^:p", "BGP(?o :p ?s)"),
        ("^(:p/:q)", "BGP(?o :p ?_:/0 . ?_:/0 :q ?s)"),
        (":p|^:q", "Union(BGP(?s :p ?o), BGP(?o :q ?s))"),
        (":p/(:q|:r)", "Join(BGP(?s :p ?_:/0), Union(BGP(?_:/0 :q ?o), BGP(?_:/0 :r ?o)))"),
    ],
)
def test_paths_become_joins_and_unions_where_they_can(path, algebra):
    assert shown(translate_group(group_of(f"{{ ?s {path} ?o }}"))) == algebra


@pytest.mark.parametrize("path", [":p*", ":p+", ":p?", "!:p", "(:p/:q)*"])
def test_repeated_and_negated_paths_stay_paths(path):
    assert isinstance(translate_group(group_of(f"{{ ?s {path} ?o }}")), n.Path)


def test_blank_nodes_are_variables_with_reserved_names():
    pattern = translate_group(group_of("{ _:a :p [] . [] :q _:a }"))
    assert isinstance(pattern, n.BGP)
    first, second = pattern.triples
    assert first.subject == second.object
    names = [
        t.name for t in (first.subject, first.object, second.subject) if isinstance(t, ast.Var)
    ]
    assert len(set(names)) == 3
    assert all(n.is_reserved(name) for name in names)


def test_literals_are_canonical_texts():
    pattern = translate_group(group_of('{ ?s ?p "x"@EN , "y"^^xsd:string , 01 }'))
    assert isinstance(pattern, n.BGP)
    assert [t.object for t in pattern.triples] == [
        '"x"@en',
        '"y"',
        '"01"^^<http://www.w3.org/2001/XMLSchema#integer>',
    ]


@pytest.mark.parametrize(
    ("group", "may", "must"),
    [
        ("{ ?a :p ?b }", "ab", "ab"),
        ("{ ?a :p ?b OPTIONAL { ?a :q ?c } }", "abc", "ab"),
        ("{ { ?a :p ?b } UNION { ?a :q ?c } }", "abc", "a"),
        ("{ ?a :p ?b MINUS { ?a :q ?c } }", "ab", "ab"),
        ("{ ?a :p ?b BIND(1/?b AS ?c) }", "abc", "ab"),
        ("{ VALUES (?a ?b) { (1 UNDEF) (2 3) } }", "ab", "a"),
        ("{ GRAPH ?g { ?a :p ?b } }", "abg", "abg"),
        ("{ { SELECT ?a (COUNT(?b) AS ?n) { ?a :p ?b } GROUP BY ?a } }", "an", "a"),
        ("{ ?a :p ?b FILTER(?c < 3) }", "ab", "ab"),
        ("{ ?a :p* ?b }", "ab", "ab"),
    ],
)
def test_variables_in_scope(group, may, must):
    pattern = translate_group(group_of(group))
    assert possible(pattern) == frozenset(may)
    assert certain(pattern) == frozenset(must)
