"""Which families are matched together, and what their joint plan has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.families import Family, families_of
from spaseq.plan.joint_plans import joint_plans
from tests.thresholds import Force

QUERY = """PREFIX : <http://e/>
    SELECT ?x WITHIN {window} SECONDS {more} FROM STREAM S <http://e/s> WHERE {{ SEQ({steps})
    DEFINE GPM A ON S {{ ?x :a ?v FILTER (?v {op} {least}) }}
    DEFINE GPM B ON S {{ ?x {other} ?w FILTER (?w < ?v - {fall}) }} }}"""

USUAL = {"window": "10", "more": "", "steps": "A; B", "op": ">", "other": ":b"}


@pytest.fixture(autouse=True)
def _two_are_enough(force: Force) -> None:
    force("family_queries=2")


def families(*shapes: dict[str, str]) -> Sequence[Family]:
    options = CompileOptions(several=True)
    return families_of(
        [
            compile_query(QUERY.format(least=i, fall=2 * i, **{**USUAL, **shape}), options=options)
            for shape in shapes
            for i in range(3)
        ]
    )


@pytest.mark.parametrize(
    ("shape", "tables"),
    [
        ({"window": "20"}, 2),
        ({"steps": "A: B"}, 2),
        ({"more": "PARTITION BY (?x)"}, 2),
        ({"op": "<"}, 3),  # B has one table for both families
    ],
    ids=str,
)
def test_families_with_a_common_gpm_are_matched_together(
    shape: dict[str, str], tables: int
) -> None:
    (joint,) = joint_plans(families({}, shape))
    assert joint.families == (0, 1)
    assert len(joint.plan.patterns.gpms) == tables
    assert sorted(joint.origins) == [
        (f, g, row) for f in (0, 1) for g in (0, 1) for row in range(3)
    ]


def test_families_without_a_common_gpm_are_not() -> None:
    other = {"op": "<", "other": ":c"}
    assert joint_plans(families({}, other)) == ()
    joint = joint_plans(families({}, other, {"window": "20"}))
    assert [each.families for each in joint] == [(0, 2)]


def test_families_that_need_all_instants_are_matched_by_themselves() -> None:
    assert joint_plans(families({"steps": "A, B"}, {"steps": "A, B", "window": "20"})) == ()
