"""The variables in expressions and group graph patterns."""

from __future__ import annotations

import pytest

from spaseq.lang import ast
from spaseq.lang.variables import (
    expression_variables,
    filters_of,
    graph_names,
    group_function_uses,
    looks_back,
    pattern_variables,
    prev_uses,
    timestamp_uses,
    variables_of,
)
from tests.algebra.text import group_of


def filter_of(text: str) -> ast.Expr:
    [expr] = filters_of(group_of(f"{{ ?s ?p ?o FILTER({text}) }}"))
    return expr


@pytest.mark.parametrize(
    ("text", "read", "back"),
    [
        ("?x + ?y < 3", "xy", False),
        ("IF(BOUND(?x), ?y, 'z') IN (?v, 1)", "xyv", False),
        ("?x < PREV(?y)", "xy", True),
        ("?x < AVG(?y)", "xy", True),
        ("?x < COUNT(DISTINCT ?y)", "xy", True),
        ("TIMESTAMP(A) > ?x", "x", True),
        ("?x > 1 && EXISTS { ?x :p ?z }", "x", False),
    ],
)
def test_variables_of_expressions(text, read, back):
    expr = filter_of(text)
    assert expression_variables(expr) == frozenset(read)
    assert looks_back(expr) is back


def test_uses_of_special_functions():
    expr = filter_of("PREV(?x) < MAX(?y) || TIMESTAMP(A) < TIMESTAMP(B)")
    assert [use.var.name for use in prev_uses(expr)] == ["x"]
    assert [use.function for use in group_function_uses(expr)] == ["MAX"]
    assert [use.gpm.name for use in timestamp_uses(expr)] == ["A", "B"]


@pytest.mark.parametrize(
    ("group", "in_scope", "mentioned"),
    [
        ("{ ?a ?b ?c FILTER(?d) }", "abc", "abcd"),
        ("{ ?a :p/:q* ?b OPTIONAL { ?a :q ?c } }", "abc", "abc"),
        ("{ ?a :p ?b MINUS { ?a :q ?c } }", "ab", "abc"),
        ("{ { ?a :p 1 } UNION { ?b :p 2 } }", "ab", "ab"),
        ("{ GRAPH ?g { ?a :p ?b } }", "gab", "gab"),
        ("{ BIND(?a AS ?b) VALUES (?c ?d) { (1 2) } }", "bcd", "abcd"),
        ("{ { SELECT ?a (?b + 1 AS ?c) { ?a :p ?b } } }", "ac", "abc"),
        ("{ { SELECT * { ?a :p ?b } } }", "ab", "ab"),
    ],
)
def test_variables_in_scope_of_groups(group, in_scope, mentioned):
    assert pattern_variables(group_of(group)) == frozenset(in_scope)
    assert variables_of(group_of(group)) == frozenset(mentioned)


def test_filters_are_found_at_any_depth_but_not_in_exists():
    group = group_of(
        "{ ?a :p ?b FILTER(?b) { ?c :p ?d FILTER(?d) } OPTIONAL { ?a :q ?e FILTER(?e) } "
        "FILTER EXISTS { ?f :p ?g FILTER(?g) } }"
    )
    plain = [e.name for e in filters_of(group) if isinstance(e, ast.Var)]
    assert plain == ["b", "d", "e"]


def test_graph_names_are_found_in_exists_too():
    group = group_of("{ GRAPH <http://e/kb> { ?a :p ?b } FILTER EXISTS { GRAPH ?g { ?c :p ?b } } }")
    names = [n.value if isinstance(n, ast.Iri) else n.name for n in graph_names(group)]
    assert names == ["http://e/kb", "g"]
