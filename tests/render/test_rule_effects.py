"""What `explain` says of the rules: only what they changed."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.rules import NAMES
from spaseq.render.rule_effects import EFFECTS, effects

HEAD = "PREFIX : <http://e/> SELECT ?x WITHIN 1 HOURS FROM STREAM S <http://e/s> "


def changes(body: str, **options: object) -> dict[str, list[str]]:
    return dict(effects(compile_query(HEAD + body, options=CompileOptions(**options))))


def test_every_rule_has_words() -> None:
    assert tuple(EFFECTS) == NAMES


def test_rules_that_change_nothing_are_not_named() -> None:
    found = changes("SEQ(A) { DEFINE GPM A ON S { ?x ?p ?p } }", disable=["compiled-runs"])
    assert found == {"shared-runs": ["partial matches share their parts"]}


@pytest.mark.parametrize(
    ("rule", "body", "said"),
    [
        (
            "pushed-predicates",
            "SEQ(A) { DEFINE GPM A ON S { ?x :a ?y } }",
            ["S: triples of 1 predicate are kept"],
        ),
        (
            "rare-triples-first",
            "SEQ(A; B) { DEFINE GPM A ON S { ?x :a ?y ; :b ?z } DEFINE GPM B ON S { ?x :a ?v } }",
            ["triple patterns of A are matched in order of their counts"],
        ),
        (
            "shared-patterns",
            "SEQ(A; B) { DEFINE GPM A ON S { ?x :a ?y } DEFINE GPM B ON S { ?z :a ?v } }",
            ["1 triple pattern of A, B evaluated once"],
        ),
        (
            "lazy-operands",
            "SEQ(A) { DEFINE GPM A ON S { ?x :a ?y OPTIONAL { ?x :b ?z } } }",
            ["A: the rest waits until the triple patterns match"],
        ),
    ],
)
def test_what_a_rule_changed(rule: str, body: str, said: list[str]) -> None:
    assert changes(body)[rule] == said
    assert rule not in changes(body, disable=[rule])


def test_patterns_of_different_streams_are_not_shared() -> None:
    body = """FROM STREAM T <http://e/t> SEQ(A; B) {
        DEFINE GPM A ON S { ?x :a ?y } DEFINE GPM B ON T { ?z :a ?v } }"""
    assert "shared-patterns" not in changes(body)
