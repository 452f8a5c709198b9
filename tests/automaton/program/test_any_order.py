"""Brackets with AND as alternatives: what the steps of each order look up waiting runs by."""

from __future__ import annotations

import pytest

from spaseq.automaton.program.nfa import TakeLabel
from spaseq.compile import compile_query
from spaseq.plan.evaluators import program_of


@pytest.mark.parametrize(
    ("condition", "evaluator"),
    [
        ("?h > ?l", "compiled-registers"),
        ("STR(?h) > STR(?l)", "compiled-registers"),
        ("?h > ?l + RAND()", "registers"),
    ],
)
def test_the_second_step_of_each_order_joins_by_what_both_bind(
    condition: str, evaluator: str
) -> None:
    plan = compile_query(
        f"""PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>
        WHERE {{ SEQ((A AND B))
        DEFINE GPM A ON S {{ ?a :key ?k ; :low ?l }}
        DEFINE GPM B ON S {{ ?b :key ?k ; :high ?h FILTER ({condition}) }} }}"""
    )
    assert plan.sequence.evaluator.name == evaluator
    states = program_of(plan).automaton.states
    labels = [edge.label for state in states for edge in state.edges]
    found = {(label.name, label.key) for label in labels if isinstance(label, TakeLabel)}
    assert found == {("A", ()), ("B", ()), ("A", ("k",)), ("B", ("k",))}
