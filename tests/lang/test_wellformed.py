"""Rules of SPARQL 1.1 beyond its grammar (notes of section 19.8; sections 11.4, 18.2.1)."""

from __future__ import annotations

import re

import pytest

from spaseq.errors import QueryText
from spaseq.lang.functions import BUILT_INS
from spaseq.lang.parser import parse_source
from tests.docs.pages import ROOT
from tests.lang.good_queries import query


def messages(pattern: str) -> list[str]:
    return [d.message for d in parse_source(QueryText(query(pattern=pattern))).errors]


SHARED_LABEL = ["another basic graph pattern uses this blank node label too"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("_:a ?p 1 . _:a ?q 2", []),
        ("_:a ?p 1 FILTER(?p = 1) _:a ?q 2", []),
        ("_:a ?p 1 OPTIONAL { } _:a ?q 2", SHARED_LABEL),
        ("_:a ?p 1 { _:a ?q 2 }", SHARED_LABEL),
        ("{ _:a ?p 1 } UNION { _:a ?q 2 }", SHARED_LABEL),
        ("_:a ?p 1 FILTER EXISTS { _:a ?q 2 }", SHARED_LABEL),
        ("[] ?p 1 OPTIONAL { [] ?q 2 }", []),
    ],
)
def test_a_label_stays_within_one_basic_graph_pattern(pattern: str, expected: list[str]) -> None:
    assert messages(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("?s ?p ?x BIND(1 AS ?y) ?y ?q ?z", []),
        ("?s ?p ?x BIND(1 AS ?x)", ["?x is bound before this BIND in the same group"]),
        ("{ ?s ?p ?x } BIND(1 AS ?x)", ["?x is bound before this BIND in the same group"]),
        ("?s ?p ?x { BIND(1 AS ?x) }", []),
        ("MINUS { ?s ?p ?x } BIND(1 AS ?x)", []),
        ("FILTER(?x = 1) BIND(1 AS ?x)", []),
    ],
)
def test_bind_gives_a_value_to_a_new_variable(pattern: str, expected: list[str]) -> None:
    assert messages(pattern) == expected


UNGROUPED = "?o is neither grouped by nor in an aggregate"


@pytest.mark.parametrize(
    ("sub_query", "expected"),
    [
        ("SELECT ?s (COUNT(?o) AS ?n) (?n + 1 AS ?m) { ?s ?p ?o } GROUP BY ?s", []),
        ("SELECT ?t { ?s ?p ?o } GROUP BY (STR(?o) AS ?t)", []),
        ("SELECT ?o { ?s ?p ?o } GROUP BY (?o)", []),
        ("SELECT (STR(?o) AS ?t) { ?s ?p ?o } GROUP BY STR(?o)", [UNGROUPED]),
        ("SELECT (1 AS ?t) { ?s ?p ?o } GROUP BY (STR(?o) AS ?t)", ["?t already has a value"]),
        ("SELECT ?s { ?s ?p ?o } GROUP BY (STR(?o) AS ?s)", ["?s already has a value"]),
        ("SELECT ?s ?o { ?s ?p ?o } GROUP BY ?s", [UNGROUPED]),
        ("SELECT (COUNT(?s) + ?o AS ?n) { ?s ?p ?o }", [UNGROUPED]),
        (
            "SELECT * { ?s ?p ?o } GROUP BY ?s",
            ["SELECT * cannot stand with GROUP BY or an aggregate"],
        ),
        ("SELECT (1 AS ?s) { ?s ?p ?o }", ["?s already has a value"]),
        ("SELECT ?a (1 AS ?a) { ?s ?p ?o }", ["?a already has a value"]),
    ],
)
def test_sub_queries(sub_query: str, expected: list[str]) -> None:
    assert messages(sub_query) == expected


IN_PATTERN = (
    "{} cannot stand in the pattern of a sub-query: test it in HAVING, or give it a name in SELECT"
)


@pytest.mark.parametrize(
    ("sub_query", "expected"),
    [
        ("SELECT ?s { ?s ?p ?o FILTER(COUNT(?o) > 1) }", [IN_PATTERN.format("COUNT")]),
        ("SELECT ?s { ?s ?p ?o BIND(MAX(?o) AS ?n) }", [IN_PATTERN.format("MAX")]),
        (
            "SELECT ?s { ?s ?p ?o OPTIONAL { ?s ?q ?n FILTER(!(SUM(?o) > ?n)) } }",
            [IN_PATTERN.format("SUM")],
        ),
        (
            "SELECT ?s { ?s ?p ?o FILTER EXISTS { ?s ?p ?n FILTER(AVG(?o) > 1) } }",
            [IN_PATTERN.format("AVG")],
        ),
        (
            "SELECT ?s { { SELECT ?s { ?s ?p ?o FILTER(COUNT(*) > 1) } } }",
            [IN_PATTERN.format("COUNT")],
        ),
        (
            "SELECT ?s { ?s ?p ?o } GROUP BY ?s (COUNT(?o) AS ?n)",
            ["COUNT cannot stand in GROUP BY: it needs the groups first"],
        ),
        (
            "SELECT (SUM(COUNT(?o)) AS ?n) { ?s ?p ?o }",
            ["COUNT cannot stand in another aggregate, SUM: compute it in an inner sub-query"],
        ),
        ("SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(?o) > 1) ORDER BY SUM(?o)", []),
        ("SELECT ?s { ?s ?p ?o FILTER(?n > 1) { SELECT (COUNT(*) AS ?n) { ?a ?b ?c } } }", []),
    ],
)
def test_aggregates_stand_in_select_having_and_order_by(
    sub_query: str, expected: list[str]
) -> None:
    assert sorted(set(messages(sub_query))) == expected


def test_the_page_lists_all_functions() -> None:
    page = (ROOT / "docs" / "lookup.md").read_text("utf-8").partition("\n## Functions\n")[2]
    listed = page.partition("SPAseq adds")[0].upper()
    assert set(BUILT_INS) <= set(re.findall(r"\w+", listed))


@pytest.mark.parametrize(("name", "arity"), BUILT_INS.items())
def test_functions_take_as_many_arguments_as_the_specification_says(
    name: str, arity: tuple[int, int | None]
) -> None:
    fewest, most = arity
    for count in range(6):
        arguments = ", ".join(["?x"] * count)
        allowed = count >= fewest and (most is None or count <= most)
        assert (messages(f"FILTER({name}({arguments}))") == []) is allowed
