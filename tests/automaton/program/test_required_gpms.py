"""Which GPMs every match of a sequence takes."""

from __future__ import annotations

import pytest

from spaseq.automaton.program.outer_steps import required_gpms
from spaseq.compile import compile_query
from spaseq.plan.query_plan import QueryPlan


def plan_of(sequence: str) -> QueryPlan:
    gpms = "".join(f"DEFINE GPM {g} ON S {{ ?{g} <http://e/is> <http://e/{g}> }} " for g in "ABC")
    return compile_query(
        f"SELECT * WITHIN 5 SECONDS FROM STREAM S <http://e/S> WHERE {{ SEQ ({sequence}) {gpms} }}"
    )


@pytest.mark.parametrize(
    ("sequence", "required"),
    [
        ("A; B; C", "A B C"),
        ("A; B?; C", "A C"),
        ("A; B*; C+", "A C"),
        ("A; B!; C", "A C"),
        ("A; (B | C)", "A"),
        ("((A; B) | (A; C))", "A"),
        ("A; (B & C)", "A B C"),
        ("(A AND B)", "A B"),
        ("(A AND (B | C))", "A"),
        ("(A | B); (A | C)", ""),
        ("A{2,3}; (B; C)?", "A"),
    ],
)
def test_required_gpms(sequence: str, required: str) -> None:
    plan = plan_of(sequence)
    assert required_gpms(plan.sequence.chain) == set(required.split())
    names = [plan.patterns.gpms[number].name for number in plan.required_gpms]
    assert names == required.split()
