"""Values of earlier steps in a pattern: the terms they replace, and the patterns they join."""

from __future__ import annotations

import pytest

from spaseq.algebra.groups import translate_group
from spaseq.algebra.substitution import lifted, mentions, sensitive, substituted
from spaseq.lang.parser import parse
from tests.algebra.text import expression, group_of, shown


@pytest.mark.parametrize(
    ("group", "values", "result"),
    [
        ("{ ?e :v ?x }", {}, "BGP(?e :v ?x)"),
        ("{ ?e :v ?x }", {"z": ":a"}, "BGP(?e :v ?x)"),
        ("{ ?e :v ?x }", {"x": ":a"}, "Join(BGP(?e :v :a), Table(x: :a))"),
        ("{ ?e :v+ ?x }", {"x": ":a"}, "Join(Path(), Table(x: :a))"),
        (
            "{ ?e :v ?y OPTIONAL { ?e :w ?x } }",
            {"x": ":a"},
            "LeftJoin(BGP(?e :v ?y), Join(BGP(?e :w :a), Table(x: :a)), true)",
        ),
        (
            "{ ?e :v ?x MINUS { ?e :w ?x } }",
            {"x": ":a"},
            "Minus(Join(BGP(?e :v :a), Table(x: :a)), Join(BGP(?e :w :a), Table(x: :a)))",
        ),
        (
            "{ GRAPH ?g { ?e :v ?y } }",
            {"g": ":kb"},
            "Join(Graph(:kb, BGP(?e :v ?y)), Table(g: :kb))",
        ),
        ("{ VALUES ?x { :a :b } }", {"x": ":a"}, "Join(Table(x: :a | :b), Table(x: :a))"),
        (
            "{ ?e :v ?y FILTER(?y > ?x) }",
            {"x": ":a"},
            "Project(Filter(?y > ?x, Join(BGP(?e :v ?y), Table(x: :a))), e y)",
        ),
        (
            "{ { SELECT ?y WHERE { ?x :v ?y } } }",
            {"x": ":a", "y": ":b"},
            "Project(Join(BGP(?x :v :b), Table(y: :b)), y)",
        ),
    ],
)
def test_values_take_the_place_of_variables(
    group: str, values: dict[str, str], result: str
) -> None:
    terms = {v: f"<http://e/{t[1:]}>" for v, t in values.items()}
    assert shown(substituted(translate_group(group_of(group)), terms)) == result


def test_an_endpoint_is_not_sent_blank_nodes() -> None:
    pattern = translate_group(group_of("{ SERVICE :s { ?x :v ?y } }"))
    found = substituted(pattern, {"x": "_:b", "y": "<http://e/a>"})
    inner = "Join(BGP(?x :v :a), Table(y: :a))"
    assert shown(found) == f"Join(Service(:s, {inner}), Table(x y: _:b :a))"


def test_an_expression_mentions_variables_in_exists_too() -> None:
    pattern = translate_group(group_of("{ ?e :v ?x FILTER(?x > ?y || EXISTS { ?e :w ?z }) }"))
    assert mentions(pattern.expr) == {"x", "y", "e", "z"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("group", "conditions", "values"),
    [
        ("{ GRAPH :kb { ?e :v ?y FILTER(?y > ?x) } }", ["?y > ?x"], set()),
        ("{ GRAPH ?g { ?e :v ?y FILTER(?y > ?x || EXISTS { ?e :w ?z }) } }", [], {"x", "z"}),
        ("{ SERVICE :s { ?e :v ?y FILTER(?y > ?x) } }", ["?y > ?x"], set()),
    ],
)
def test_conditions_stay_in_a_graph_into_which_they_look(
    group: str, conditions: list[str], values: set[str]
) -> None:
    pattern, deferred = lifted(translate_group(group_of(group)))
    assert [expression(each) for each in deferred] == conditions
    assert sensitive(pattern) == values


def test_exists_looks_into_the_graph_of_its_condition() -> None:
    group = "{ GRAPH :kb { ?e :v ?y FILTER(?y > ?x || NOT EXISTS { ?e :w ?z }) } }"
    pattern, [condition] = lifted(translate_group(group_of(group)))
    within = group_of("{ FILTER(?y > ?x || NOT EXISTS { GRAPH :kb { ?e :w ?z } }) }").elements[0]
    assert (condition, sensitive(pattern)) == (within.expr, set())  # type: ignore[union-attr]


def test_conditions_of_events_of_a_window_are_tested_afterwards() -> None:
    query = parse(
        "PREFIX : <http://e/> SELECT * FROM STREAM S :s FROM WINDOW W ON S RANGE 1 HOURS "
        "WHERE { SEQ(A) DEFINE GPM A ON W { EVENT AT ?u { ?e :v ?y FILTER(?u < ?t) } } }"
    )
    pattern, deferred = lifted(translate_group(query.gpms[0].pattern))
    assert ([expression(each) for each in deferred], sensitive(pattern)) == (["?u < ?t"], set())
