"""Patterns that `check` says no graph of a lift can match have no solution over any table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.compile import check_query
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lift_warnings import unmatched_patterns
from spaseq.rdf.terms.term import GENERATED_AT_TIME
from tests.lift.lifted_queries import lifts, triples
from tests.lift.lifting import PREFIXES
from tests.lift.test_lanes import tables


@st.composite
def cases(draw: Any) -> tuple[str, Any, str]:
    """(lift, table, query with one basic graph pattern)."""
    lift, template = draw(lifts())
    pattern = " . ".join(draw(st.lists(triples(template), min_size=1, max_size=3)))
    query = f"""{PREFIXES}SELECT * WITHIN 1 DAYS FROM STREAM S <http://e/s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"""
    return lift, draw(tables()), query


@pytest.mark.parametrize("examples", [30, pytest.param(200, marks=pytest.mark.thorough)])
def test_a_pattern_with_a_warning_has_no_solution(examples: int) -> None:
    seen = {"warned": 0, "answered": 0}

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(cases())
    def check(case: tuple[str, Any, str]) -> None:
        lift, table, text = case
        checked = check_query(text)
        if checked.query is None or checked.errors:
            return
        plan = compiled_lift(lift, "<lift>", GENERATED_AT_TIME)
        (gpm,) = checked.query.gpms
        warnings = [*unmatched_patterns(gpm, [plan], checked.source)]
        answers = list(spaseq.run(text, {"S": spaseq.Lifted(table, lift)}, runtime="local"))
        assert not (warnings and answers)
        seen["warned"] += bool(warnings)
        seen["answered"] += bool(answers)

    check()
    assert all(count > examples // 30 for count in seen.values()), seen
