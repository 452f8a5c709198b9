"""Division of a GPM: parts that one event decides, and parts that need earlier steps."""

from __future__ import annotations

import pytest

from spaseq.algebra import substitution
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import visible
from spaseq.algebra.translate import split_gpm, without_filters
from tests.algebra.text import expression, gpm_of, group_of, shown


@pytest.mark.parametrize(
    ("group", "local", "deferred"),
    [
        ("{ ?e :v ?x FILTER(?x > 3) }", "Filter(?x > 3, BGP(?e :v ?x))", []),
        ("{ ?e :v ?x FILTER(?x > ?old) }", "BGP(?e :v ?x)", ["?x > ?old"]),
        (
            "{ ?e :v ?x FILTER(?x > 3 && ?x > ?old) FILTER(?x < 9) }",
            "Filter(?x > 3 && ?x < 9, BGP(?e :v ?x))",
            ["?x > ?old"],
        ),
        ("{ ?e :v ?x FILTER(?x < PREV(?x)) }", "BGP(?e :v ?x)", ["?x < PREV(?x)"]),
        ("{ ?e :v ?x FILTER(?x < AVG(?y)) }", "BGP(?e :v ?x)", ["?x < AVG(?y)"]),
        ("{ ?e :v ?x FILTER(?x < FIRST(?y)) }", "BGP(?e :v ?x)", ["?x < FIRST(?y)"]),
        ("{ ?e :v ?x FILTER(?x < TIMESTAMP(A)) }", "BGP(?e :v ?x)", ["?x < TIMESTAMP(A)"]),
        ("{ ?e :v ?x FILTER(BOUND(?y)) }", "BGP(?e :v ?x)", ["BOUND(?y)"]),
        (
            "{ { ?e :v ?x FILTER(?x > ?old) } ?e :w ?y }",
            "Join(BGP(?e :v ?x), BGP(?e :w ?y))",
            ["?x > ?old"],
        ),
        (
            "{ ?e :v ?x . GRAPH :kb { ?x :limit ?l FILTER(?l > ?old) } }",
            "Join(BGP(?e :v ?x), Graph(:kb, BGP(?x :limit ?l)))",
            ["?l > ?old"],
        ),
        (
            "{ { ?e :v ?x FILTER(?x > ?old) } OPTIONAL { ?e :w ?y FILTER(?y > 1) } }",
            "LeftJoin(BGP(?e :v ?x), BGP(?e :w ?y), ?y > 1)",
            ["?x > ?old"],
        ),
    ],
)
def test_conjuncts_that_look_back_are_deferred(group, local, deferred):
    algebra = split_gpm(gpm_of(group))
    assert shown(algebra.pattern) == local
    assert [expression(e) for e in algebra.deferred] == deferred


def test_variables_of_a_gpm_leave_out_its_blank_nodes():
    algebra = split_gpm(gpm_of("{ ?e :v [ :w ?x ] OPTIONAL { ?e :u ?y } }"))
    assert algebra.possible == {"e", "x", "y"}
    assert algebra.certain == {"e", "x"}


@pytest.mark.parametrize(
    ("group", "sensitive"),
    [
        ("{ ?e :v ?x FILTER(?x > 3) GRAPH :kb { ?x :p ?y } }", ""),
        ("{ { ?e :v ?x } UNION { ?e :w ?y } }", ""),
        ("{ ?e :v ?x OPTIONAL { ?e :w ?y } }", "y"),
        ("{ ?e :v ?x OPTIONAL { ?e :w ?y FILTER(?y > ?z) } }", "yz"),
        ("{ ?e :v ?x MINUS { ?e :w ?y } }", "y"),
        ("{ ?e :v ?x BIND(?z + 1 AS ?w) }", "z"),
        ("{ { ?e :v ?x } UNION { ?e :w ?y } FILTER(!BOUND(?x)) }", "x"),
        ("{ ?e :v ?x FILTER NOT EXISTS { ?e :w ?z } }", "z"),
        ("{ ?x :p* ?y }", "xy"),
        ("{ ?x :p+ ?y }", ""),
        ("{ ?e :v ?x { SELECT ?x { ?x :p ?z } LIMIT 1 } }", "x"),
    ],
)
def test_variables_whose_earlier_values_would_change_the_event_s_own_solutions(group, sensitive):
    pattern, _ = substitution.lifted(translate_group(group_of(group)))
    assert visible(substitution.sensitive(pattern)) == frozenset(sensitive)


@pytest.mark.parametrize(
    "group",
    [
        "{ ?e :v ?x ; :w/^:u ?y FILTER(?x > ?old && PREV(?x) < 3) GRAPH :kb { ?x :p ?z } }",
        "{ { ?e :v ?x FILTER(?x > ?old) } }",
        "{ ?e :v ?x OPTIONAL { ?e :w ?y FILTER(?y > ?x) } }",
        "{ ?e :v ?x MINUS { ?e :w 3 } FILTER NOT EXISTS { ?e :u ?x FILTER(?x > 1) } }",
        "{ ?e :v ?x FILTER EXISTS { ?e :w ?z OPTIONAL { ?z :u ?x } } }",
        "{ ?e :p*|!:q ?x BIND(?x + 1 AS ?y) VALUES ?z { 1 } }",
        "{ ?e :v ?x ; :at ?s SERVICE ?s { ?x :p ?y FILTER(?y > ?old) } }",
        "{ GRAPH ?g { ?x :p ?y } { SELECT ?x (COUNT(*) AS ?n) { ?x :q ?y } GROUP BY ?x } }",
    ],
)
def test_what_an_event_decides_alone(group):
    assert split_gpm(gpm_of(group), frozenset({"old"})).correlation is None


@pytest.mark.parametrize(
    ("group", "elsewhere", "reason"),
    [
        ("{ ?e :v ?x OPTIONAL { ?e :w ?y } }", "y", "?y"),
        ("{ ?e :v ?x OPTIONAL { ?e :w ?y FILTER(?y < PREV(?y)) } }", "", "PREV"),
        ("{ ?e :v ?x MINUS { ?e :w ?y } }", "y", "?y"),
        ("{ { ?e :v ?x FILTER(?x < ?y) } ?e :w ?y }", "y", "?y"),
        ("{ ?e :v ?x BIND(?x - ?old AS ?y) }", "old", "?old"),
        ("{ ?e :v ?x FILTER(EXISTS { ?e :w 1 } || ?x < ?old) }", "old", "EXISTS"),
        ("{ ?e :v ?x FILTER EXISTS { ?e :w ?z OPTIONAL { ?z :u ?old } } }", "old", "?old"),
        ("{ ?e :v ?x FILTER EXISTS { ?e :w ?z FILTER(?z < PREV(?x)) } }", "", "PREV"),
        ("{ ?e :v ?x SERVICE ?s { ?x :p ?y } }", "s", "?s"),
        ("{ ?e :v ?x SERVICE SILENT :s { ?x :p ?y FILTER(?y < ?old) } }", "old", "?old"),
    ],
)
def test_what_needs_the_bindings_of_earlier_steps(group, elsewhere, reason):
    gpm = gpm_of(group)
    correlation = split_gpm(gpm, frozenset(elsewhere.split())).correlation
    assert correlation is not None
    assert reason in correlation.reason
    assert split_gpm(gpm_of("{ ?e :v ?x }"), frozenset(elsewhere.split())).correlation is None


@pytest.mark.parametrize(
    ("group", "core"),
    [
        ("{ ?e :v ?x OPTIONAL { ?e :w ?old } }", "BGP(?e :v ?x)"),
        ("{ ?e :v ?x FILTER(?x > PREV(?x)) MINUS { ?e :w ?old } }", "BGP(?e :v ?x)"),
        (
            "{ { ?e :v ?x } UNION { ?e :w ?x FILTER(?x > ?old) } }",
            "Union(BGP(?e :v ?x), BGP(?e :w ?x))",
        ),
        ("{ ?e :v ?x . ?old :p* ?y }", "Join(BGP(?e :v ?x), Z)"),
    ],
)
def test_the_core_is_what_an_event_must_match_whatever_the_bindings(group, core):
    correlation = split_gpm(gpm_of(group), frozenset({"old"})).correlation
    assert correlation is not None
    assert shown(correlation.core) == core


def test_without_filters_leaves_out_every_filter_at_any_depth():
    pattern = translate_group(
        group_of(
            "{ ?e :v ?x FILTER(?x > 3) FILTER NOT EXISTS { ?e :u ?x } "
            "OPTIONAL { ?e :w ?y FILTER(?y > ?x) { ?y :z ?z FILTER(?z > 1) } } }"
        )
    )
    assert shown(without_filters(pattern)) == (
        "LeftJoin(BGP(?e :v ?x), Join(BGP(?e :w ?y), BGP(?y :z ?z)), true)"
    )
