"""GPMs that differ in names and constants have one template."""

from __future__ import annotations

import pytest

from spaseq.compile import compile_query
from spaseq.plan.pattern_templates import TemplateUse, template_of
from spaseq.plan.query_plan import QueryPlan


def plan(pattern: str, more: str = "", window: str = "9 SECONDS") -> QueryPlan:
    return compile_query(
        f"PREFIX : <http://e/> SELECT * WITHIN {window} {more} FROM STREAM S <http://e/s> "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"
    )


def use(pattern: str) -> TemplateUse | None:
    own = plan(pattern)
    return template_of(own, own.patterns.gpms[0], {})


def made(pattern: str) -> TemplateUse:
    found = use(pattern)
    assert found is not None
    return found


def test_names_and_constants_are_no_part_of_a_template() -> None:
    one, other = made("?x :is :A ; :v ?v"), made("?thing :is 'B' ; :v ?price")
    assert one.template == other.template
    assert one.constants == ("<http://e/A>",) and other.constants == ('"B"',)
    names = {v: (one.names[v], other.names[v]) for v in one.names}
    assert set(names.values()) == {("x", "thing"), ("v", "price")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("?x :v ?y", "?x :w ?y"),
        ("?x :v ?y", "?x :v ?x"),
        ("?x :v ?y", "[] :v ?y"),
        ("?x :v ?y FILTER (STR(?y) > '1')", "?x :v ?y FILTER (STR(?y) > '2')"),
        ("?x :v ?y FILTER EXISTS { ?x :w 1 }", "?x :v ?y FILTER EXISTS { ?x :w 2 }"),
        ("?x :v ?y BIND (?y + 1 AS ?z)", "?x :v ?y BIND (?y + 2 AS ?z)"),
        ("?x :v ?y OPTIONAL { ?x :w 1 }", "?x :v ?y OPTIONAL { ?x :w 2 }"),
        ("?x :v ?y MINUS { ?x :w 1 }", "?x :v ?y MINUS { ?x :w 2 }"),
    ],
)
def test_what_is_not_a_free_constant_is_part_of_a_template(one: str, other: str) -> None:
    assert made(one).template != made(other).template


def test_a_filter_is_over_the_names_of_the_template() -> None:
    one, other = "?x :v ?y FILTER (STR(?y) > 'a')", "?a :v ?b FILTER (STR(?b) > 'a')"
    assert made(one).template == made(other).template


def test_a_simple_test_is_no_part_of_a_template() -> None:
    one, other = made("?x :v ?y FILTER (?y > 1 && ?y < 3)"), made("?a :v ?b")
    assert one.template == other.template
    assert len(one.tests) == 2 and not other.tests


def test_a_sub_select_has_the_names_of_the_template() -> None:
    one = "?x :v ?y { SELECT ?x (COUNT(?z) AS ?c) { ?x :w ?z } GROUP BY ?x }"
    other = "?y :v ?x { SELECT ?y (COUNT(?a) AS ?b) { ?y :w ?a } GROUP BY ?y }"
    assert made(one).template == made(other).template


@pytest.mark.parametrize(
    "pattern",
    [
        "?x :v ?y FILTER (RAND() < 1)",
        "?x :v ?y FILTER (STRUUID() != STR(?y))",
        "?x :v ?y BIND (BNODE() AS ?z)",
        "{ SELECT ?x (SAMPLE(?y) AS ?c) { ?x :v ?y } GROUP BY ?x }",
        "{ SELECT ?x { ?x :v ?y } LIMIT 1 }",
    ],
)
def test_what_may_differ_from_query_to_query_has_no_template(pattern: str) -> None:
    assert use(pattern) is None


def test_a_query_is_stateless_if_events_are_matched_without_others() -> None:
    assert plan("?x :v ?y", "PARTITION BY (?x)").is_stateless
    assert not plan("?x :v ?y", window="9 EVENTS").is_stateless
