"""Every case has the algebra, the plan and the automaton of its golden files."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from spaseq.algebra import nodes
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from spaseq.plan.query_plan import EvaluatorName
from spaseq.plan.rules import NAMES
from tests.golden.cases import CASES, DIRECTORY, STAGES, checked, options_of, rendered

IDENTITY = (DIRECTORY / "identity.rq").read_text("utf-8").split("\n----\n\n")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_case_becomes_its_golden_files(case: Path) -> None:
    found = rendered(case)
    assert found == {suffix: case.with_suffix(suffix).read_text("utf-8") for suffix in STAGES}


@pytest.mark.parametrize("text", IDENTITY)
def test_the_canonical_form_of_a_canonical_query_is_itself(text: str) -> None:
    assert format_query(parse(text)) == text


def test_every_algebra_node_has_a_case() -> None:
    shown = "".join(case.with_suffix(".algebra").read_text("utf-8") for case in CASES)
    kinds = {kind.__name__ for kind in get_args(nodes.Pattern)}
    kinds.remove("Given")  # it is made when a correlated GPM is evaluated
    assert {kind for kind in kinds if f"{kind}(" in shown} == kinds


def test_every_evaluator_has_a_case() -> None:
    found = {checked(case)[0].sequence.evaluator.name for case in CASES}
    assert found == set(get_args(EvaluatorName))


def test_every_rule_has_a_case_that_disables_it() -> None:
    disabled = {rule for case in CASES for rule in options_of(case.read_text("utf-8")).disable}
    assert disabled == set(NAMES)
